// Elements made without HTML: every inserted value is text, so it can never become markup.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "g", "path", "rect", "text", "tspan", "polygon", "title", "circle"]);

/** A new element. `props` are attributes; functions become listeners, and `style` is a map of properties.
 * `key` identifies the element among its siblings in later calls of `show`. The children of an element with
 * a `version` come from the function `made`, which runs only if the element on the page has another
 * version. */
export function h(tag, props, ...children) {
  const element = DRAWN.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  element.listens = {};
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "made") element.made = value;
    else if (typeof value === "function") element.listens[name] = element[name] = value;
    else if (name === "key" || name === "version") element[name] = String(value);
    else if (name === "style") for (const [p, v] of Object.entries(value)) element.style.setProperty(p, v);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replace the children of `parent` by `fresh`. Children that have not changed stay the same elements, so
 * that focus, selection, scroll positions and open details are kept. */
export function show(parent, fresh) {
  const holder = document.createDocumentFragment();
  append(holder, [fresh]);
  updateChildren(parent, holder);
}

function sameElement(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && old.key === fresh.key;
}

function updateChildren(old, fresh) {
  const keyed = new Map();
  for (const child of old.childNodes) if (child.key !== undefined) keyed.set(child.key, child);
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    let found = wanted.key !== undefined ? keyed.get(wanted.key) : undefined;
    if (found === undefined && at !== null && wanted.key === undefined && sameElement(at, wanted)) found = at;
    const known = found !== undefined && sameElement(found, wanted);
    const current = known && wanted.version !== undefined && found.version === wanted.version;
    if (!known) {
      make(wanted);
      old.insertBefore(wanted, at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else old.insertBefore(found, at);
    if (current) continue;
    if (wanted.made) append(wanted, [wanted.made()]);
    update(found, wanted);
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** Make the children of a new element that have not been made yet. */
function make(fresh) {
  if (fresh.made) append(fresh, [fresh.made()]);
  for (const child of fresh.childNodes) make(child);
}

/** Change an element on the page to the attributes, listeners and children of a new one. */
function update(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (name === "style" || (name === "open" && old.nodeName === "DETAILS")) continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (name === "style" || (name === "open" && old.nodeName === "DETAILS")) continue;
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  if (old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
  for (const name of Object.keys(old.listens || {})) if (!(name in fresh.listens)) old[name] = null;
  Object.assign(old, fresh.listens);
  old.listens = fresh.listens;
  old.version = fresh.version;
  updateChildren(old, fresh);
}
