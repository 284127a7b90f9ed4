// Parts that several pages share: bars, chips, tables, links.

import { h } from "./dom.js";
import { APPLICATION, TONES } from "./states.js";
import { age, amount, exactly, number, of, percent, time, types } from "./units.js";

export const tone = (state) => TONES[state] || "wait";

/** An application in Waiting has nothing left to do. The word "idle" stands beside that name everywhere, so
 * that readers do not take the application for a pending one, which wants resources. */
export const stateName = (state) => (APPLICATION.idle.includes(state) ? `${state} (idle)` : state);

export const chip = (text, kind = tone(text)) => h("span", { class: `chip ${kind}` }, stateName(text));

/** The allocations of an application that were preempted, and those whose preemption is in progress. */
export const preempted = (row) => [
  row.preempting ? chip(`${number(row.preempting)} being preempted`, "bad") : null,
  row.preempted ? chip(`${number(row.preempted)} preempted`, "bad") : null,
];

export const legend = () => h("p", { class: "key" }, h("b", {}, "pending"), ": wants more resources, at least one of its asks has no node yet; a running application can be pending. ",
  h("b", {}, "idle"), `: has nothing left to do and nothing to ask for (state ${APPLICATION.idle.join(" or ")}); it completes soon.`);

/** A link to one of the pages. Empty parameters are left out; the partition of this page is kept. */
export function to(page, params, ...text) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "" && value !== undefined));
  const given = new URLSearchParams(location.search).get("partition");
  if (given && !query.has("partition")) query.set("partition", given);
  return h("a", { href: `${page || "./"}${query.size ? `?${query}` : ""}` }, ...text);
}

export const since = (ns) => h("time", { datetime: exactly(ns), title: exactly(ns) }, age(ns));
export const at = (ns) => h("time", { datetime: exactly(ns), title: exactly(ns) }, time(ns));

export const empty = (...text) => h("p", { class: "empty" }, ...text);

/** A part of the page with a heading of its own. */
export function panel(title, props, ...content) {
  const id = `part-${title.toLowerCase().replace(/\W+/g, "-")}`;
  return h("section", { class: `panel ${props?.class || ""}`, "aria-labelledby": id, key: props?.key ?? title },
    h("div", { class: "head" }, h("h2", { id }, title), props?.aside), ...content);
}

/** Columns with buttons to sort by. A column is [heading, class, name, descending]: one without a name cannot
 * be sorted by, and `descending` puts the largest first. The server sorts; a second press reverses the order. */
export const sortable = (columns, sort, set) => columns.map(([text, kind, name, down]) => {
  if (!name) return [text, kind];
  const now = sort === name ? "ascending" : sort === `-${name}` ? "descending" : "none";
  const next = now === "ascending" ? `-${name}` : now === "descending" ? name : down ? `-${name}` : name;
  return [text, kind, { now, press: () => set({ sort: next, offset: "" }) }];
});

export function heading([text, kind, order]) {
  if (!order) return h("th", { scope: "col", class: kind }, text);
  return h("th", { scope: "col", class: kind, "aria-sort": order.now },
    h("button", { type: "button", class: "sort", onclick: order.press }, text,
      h("span", { class: "arrow", "aria-hidden": "true" }, { ascending: "\u25b2", descending: "\u25bc", none: "\u2195" }[order.now])));
}

/** A table. Columns are [heading, class, order]. A row has a `key` and `cells`, a list; in a row with a
 * `version`, `cells` is a function that returns the list and runs only when the version has changed. */
export function table(label, columns, rows, ...rest) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {},
      h("thead", {}, h("tr", {}, columns.map(heading))),
      h("tbody", {}, rows.map((row) => (row.version === undefined
        ? h("tr", { key: row.key, class: row.class }, cells(columns, row.cells))
        : h("tr", { key: row.key, version: row.version, made: () => cells(columns, row.cells()) })))),
      rest));
}

const cells = (columns, all) => all.map((cell, index) => h(index ? "td" : "th", { class: columns[index]?.[1], scope: index ? null : "row" }, cell));

const width = (share) => `${Math.min(100, Math.max(0, share)).toFixed(2)}%`;

/** A bar of the usage of one resource type, with `pending` behind it and a mark at `guaranteed`. Without `max`
 * the bar shows the share of `whole` and is paler. A full bar stands out, unless it is `calm`. */
export function bar({ type, used, max, guaranteed, pending = 0, whole = 0, wide = false, calm = false }) {
  const limited = max !== undefined;
  if (!limited && !used && !pending && !guaranteed && !wide) return "";
  const full = limited ? max : whole;
  const share = percent(used, full);
  const said = [
    `${type}: ${limited ? of(type, used, max) : `${amount(type, used)}, no max`}`,
    guaranteed ? `guaranteed ${amount(type, guaranteed)}` : "",
    pending ? `${amount(type, pending)} asked for` : "",
  ].filter(Boolean).join(", ");
  const kind = limited && share > 100 ? "over" : limited && share >= 90 && !calm ? "high" : "";
  return h("div", { class: `usage ${wide ? "wide" : ""}`, title: said },
    h("div", { class: `bar ${kind} ${limited ? "" : "free"}`, role: "img", "aria-label": said },
      pending ? h("span", { class: "asked", style: { left: width(share), width: width(Math.min(percent(pending, full), 100 - Math.min(share, 100))) } }) : null,
      h("span", { class: "used", style: { width: width(share) } }),
      guaranteed ? h("span", { class: "mark", style: { left: width(percent(guaranteed, full)) } }) : null),
    h("span", { class: "said", "aria-hidden": "true" },
      limited ? of(type, used, max) : amount(type, used)));
}

/** One bar for each type of a usage against its maximum. */
export const bars = (used, max, more = {}) =>
  h("div", { class: "bars" }, types(max).map((type) =>
    h("div", { class: "named", key: type }, h("span", { class: "name" }, type),
      bar({ type, used: used[type] || 0, max: max[type], wide: true, calm: more.calm, pending: more.pending?.[type], guaranteed: more.guaranteed?.[type] }))));

/** The members of a gang, or of one of its task groups, as a bar. */
export function gang(group, wide = false) {
  const parts = [["replaced", "real"], ["placed", "placed"], ["pending", "pending"], ["givenUp", "given up"]];
  const said = parts.filter(([name]) => group[name]).map(([name, text]) => `${group[name]} ${text}`).join(", ");
  const text = group.count ? `${said} of ${group.count}` : "nothing asked for yet";
  return h("div", { class: `usage gang ${wide ? "wide" : ""}`, title: text },
    h("div", { class: "bar", role: "img", "aria-label": `gang: ${text}` },
      parts.map(([name], index) => group[name]
        ? h("span", { key: name, class: `part p${index}`, style: { width: width(percent(group[name], group.count)) } }) : null)),
    h("span", { class: "said", "aria-hidden": "true" }, wide ? text : group.count ? `${group.replaced + group.placed}/${group.count}` : "none yet"));
}

/** Counts by state as one bar with a legend of links. */
export function states(counts, link) {
  const names = Object.keys(counts);
  const total = names.reduce((sum, name) => sum + counts[name], 0);
  if (!total) return empty("None.");
  return h("div", { class: "states" },
    h("div", { class: "bar tall", "aria-hidden": "true" }, names.map((name) =>
      h("span", { key: name, class: `part t-${tone(name)}`, style: { width: width(percent(counts[name], total)) } }))),
    h("ul", { class: "legend" }, names.map((name) =>
      h("li", { key: name }, chip(name), " ", link ? link(name, number(counts[name])) : h("b", {}, number(counts[name]))))));
}

/** Pairs of a name and a value as a description list; pairs without a value are left out. */
export const facts = (pairs) =>
  h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false)
    .map(([name, value]) => h("div", { key: name }, h("dt", {}, name), h("dd", {}, value))));

/** The kind of an event record in words: `app alloc`, `request`. */
export const occasion = (each) => {
  const words = each.detail || (each.change === "NONE" ? each.type : `${each.type} ${each.change}`);
  return words.toLowerCase().replaceAll("_", " ");
};

/** The range of rows that a page of a list shows, with buttons to the pages before and after it. */
export function pager(data, set) {
  const last = Math.min(data.total, data.offset + data.rows.length);
  const text = data.total ? `${number(data.offset + 1)} to ${number(last)} of ${number(data.total)}` : "0";
  return h("div", { class: "pager" },
    h("button", { type: "button", disabled: data.offset === 0, onclick: () => set({ offset: Math.max(0, data.offset - data.limit) || "" }) }, "Previous"),
    h("span", { role: "status" }, text),
    h("button", { type: "button", disabled: last >= data.total, onclick: () => set({ offset: data.offset + data.limit }) }, "Next"));
}

/** A field of a filter form: a text field, or a choice among `choices`, each [value, text]. */
export function field(name, label, value, choices) {
  const id = `filter-${name}`;
  const control = choices
    ? h("select", { id, name }, choices.map(([option, text]) => h("option", { value: option, selected: option === value }, text)))
    : h("input", { id, name, type: "search", value, maxlength: "256", autocomplete: "off", spellcheck: "false" });
  return h("div", { class: "field" }, h("label", { for: id }, label), control);
}

/** A filter form that takes effect while the user types; `set` receives the parameter that changed. */
export function filters(label, set, ...fields) {
  let timer = 0;
  const change = (event) => {
    clearTimeout(timer);
    const { name, value } = event.target;
    timer = setTimeout(() => set({ [name]: value.trim(), offset: "" }), event.type === "change" ? 0 : 250);
  };
  return h("form", { class: "filters", role: "search", "aria-label": label, oninput: change, onchange: change, onsubmit: (event) => event.preventDefault() }, ...fields);
}

