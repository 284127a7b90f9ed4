// Elements without HTML: everything that is inserted is a text, whatever it looks like.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "g", "path", "rect", "text", "tspan", "polygon", "title", "circle"]);

/** An element. `props` are attributes; functions become listeners, `style` is a map of properties,
 * `key` tells an element from its siblings from one time to the next. One with a `version` is made of
 * what `made` gives, and only where the one that is shown is of another version. */
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

/** Make the children of `place` what `fresh` are, and touch nothing that stays as it is: focus,
 * selection, scroll positions and opened details survive. */
export function show(place, fresh) {
  const holder = document.createDocumentFragment();
  append(holder, [fresh]);
  children(place, holder);
}

function alike(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && old.key === fresh.key;
}

function children(old, fresh) {
  const keyed = new Map();
  for (const child of old.childNodes) if (child.key !== undefined) keyed.set(child.key, child);
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    let found = wanted.key !== undefined ? keyed.get(wanted.key) : undefined;
    if (found === undefined && at !== null && wanted.key === undefined && alike(at, wanted)) found = at;
    const known = found !== undefined && alike(found, wanted);
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
    same(found, wanted);
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** Whatever is not there yet in a new part of the page. */
function make(fresh) {
  if (fresh.made) append(fresh, [fresh.made()]);
  for (const child of fresh.childNodes) make(child);
}

function same(old, fresh) {
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
  children(old, fresh);
}
