// The list of nodes with their utilisation, and the page of one node.

import { h } from "./dom.js";
import { happened, shown } from "./page-application.js";
import { bar, bars, chip, empty, facts, field, filters, pager, panel, since, sortable, table, to } from "./parts.js";
import { picture } from "./picture.js";
import { NODE } from "./states.js";
import { amounts, number, percent, types } from "./units.js";

const STATES = [["", "any"], ...NODE.present.map((state) => [state, state]), ["reserved", "reserved"], ["unhealthy", "not ready"]];

export const nodes = {
  title: () => "Nodes",
  data: ({ partition, state, text, type, sort, offset }) => ({ list: { partition, state, text, type, sort, offset } }),
  reads: { list: "nodes" },
  controls: ({ params, set }) => {
    const { state = "", text = "" } = params();
    return [h("h1", { class: "quiet" }, "Nodes"), filters("Filter nodes", set, field("text", "Name contains", text), field("state", "State", state, STATES))];
  },
  draw: ({ list }, { params, set }) => [
    heat(list, set),
    panel(list.total === 1 ? "1 node" : `${number(list.total)} nodes`, { key: "list", aside: pager(list, set) }, list.rows.length
      ? table("Nodes", [...sortable([["Node", "", "name"], ["State", "line", "state"], ["In state", "num opt", "since"]], params().sort || "name", set),
        ...types(...list.rows.map((row) => row.capacity)).slice(0, 3).map((type) => byFullness(type, list, params().sort, set)),
        ...sortable([["Allocations", "num", "allocations", true], ["Reserved for"], ...others(list, ["Others use", "opt"]), ["Rack", "opt line", "rack"]], params().sort, set)],
        list.rows.map((row) => ({ key: row.id, cells: [
          to("node", { id: row.id }, row.id),
          h("span", {}, chip(row.state), row.unhealthy ? chip("not ready", "bad") : null),
          since(row.since),
          ...types(...list.rows.map((each) => each.capacity)).slice(0, 3).map((type) => (row.capacity[type] === undefined ? "" : bar({ type, used: row.allocated[type] || 0, max: row.capacity[type], calm: true }))),
          number(row.allocations), reservedFor(row), ...others(list, amounts(row.occupied)), row.rack,
        ] })))
      : empty(list.all ? "No node fits. Fewer filters show more." : "No nodes yet.")),
  ],
};

/** A column that the table has only if other schedulers use something on one of its nodes. */
const others = (list, column) => (list.rows.some((row) => Object.keys(row.occupied).length) ? [column] : []);

/** The column of a resource type. Sorting by it sorts by utilisation, and the strip shows that type too. */
function byFullness(type, list, sort, set) {
  const mine = list.type === type;
  const now = mine && sort === "fullest" ? "descending" : mine && sort === "emptiest" ? "ascending" : "none";
  return [type, "barred", { now, press: () => set({ type, sort: now === "descending" ? "emptiest" : "fullest", offset: "" }) }];
}

const reservedFor = (row) => (row.reservations.length
  ? h("span", {}, to("application", { id: row.reservations[0].application }, row.reservations[0].application),
    row.reservations.length > 1 ? ` and ${row.reservations.length - 1} more` : "") : "");

function heat(list, set) {
  if (!list.cells.length) return null;
  const choose = h("div", { class: "choices", role: "group", "aria-label": "Resource" }, types(Object.fromEntries(list.types.map((type) => [type, 1]))).map((type) =>
    h("button", { type: "button", key: type, "aria-pressed": String(type === list.type), onclick: () => set({ type }) }, type)));
  return panel("Utilisation", { aside: choose },
    h("ol", { class: "heat" }, list.cells.map((cell) => {
      const name = cell.nodes > 1 ? `${cell.nodes} nodes from ${cell.node} on` : cell.node;
      const said = [`${name}: ${cell.full} % of ${list.type}`, cell.nodes > 1 ? `at most ${cell.most} %` : "",
        cell.draining ? (cell.nodes > 1 ? `${cell.draining} draining` : "draining") : "", cell.reserved ? (cell.nodes > 1 ? `${cell.reserved} reserved` : "reserved") : ""].filter(Boolean).join(", ");
      const link = cell.nodes > 1 ? to("nodes", { offset: cell.at || "", type: list.type }) : to("node", { id: cell.node });
      link.setAttribute("class", `h${Math.min(10, Math.ceil(cell.full / 10))}${cell.draining ? " draining" : ""}${cell.reserved ? " reserved" : ""}`);
      link.setAttribute("title", said);
      link.setAttribute("aria-label", said);
      return h("li", { key: cell.node }, link);
    })),
    h("p", { class: "key" }, "0 % ", [0, 2, 4, 6, 8, 10].map((step) => h("span", { class: `swatch h${step}`, key: step })), " 100 % ",
      h("span", { class: "swatch h2 draining" }), "draining ", h("span", { class: "swatch h2 reserved" }), "reserved"));
}

export const node = {
  title: ({ id }) => id || "Node",
  data: ({ partition, id, sort }) => ({ node: { partition, id, sort }, story: { partition, id }, pictures: {} }),
  reads: { story: "node-story" },
  draw: ({ node: data, story, pictures }, { params, set }) => {
    const row = data.row;
    return [
      h("h1", {}, row.id, " ", chip(row.state), row.unhealthy ? chip("not ready", "bad") : null),
      h("div", { class: "columns two" },
        panel("Usage", {}, bars(row.allocated, row.capacity, { calm: true }), facts([["Free", amounts(row.available)], ["Others use", amounts(row.occupied)]])),
        panel("Details", {}, facts([["Host", row.host], ["Rack", row.rack], ...Object.entries(data.attributes)]))),
      row.reservations.length ? panel("Reserved for", {}, h("ul", { class: "plain" }, row.reservations.map((each) => h("li", { key: each.ask },
        to("application", { id: each.application, ask: each.ask }, `${each.application}, ask ${each.ask}`), ", for ", since(each.since))))) : null,
      panel("Allocations", { aside: shown(data.held, row.allocations, params().sort) }, data.held.length
        ? table("Allocations", sortable([["Application", "", "application"], ["Allocation", "", "key"], ["State", "line", "state"], ["Holds", "words", "holds", true], ["Of the node", "num"], ["For", "num", "since"]], params().sort, set), data.held.map((each) => ({ key: each.uuid, cells: [
          to("application", { id: each.application }, each.application), each.uuid,
          h("span", {}, chip(each.state), each.placeholder ? h("small", {}, " placeholder") : null, each.reason ? h("small", { title: each.message }, ` ${each.reason}`) : null), amounts(each.resource),
          `${Math.round(Math.max(...types(each.resource).map((type) => percent(each.resource[type], row.capacity[type] || 0))))} %`, since(each.since)] })))
        : empty("Nothing runs here.")),
      data.foreign.length ? panel("Run by other schedulers", {}, table("Run by other schedulers", [["Key"], ["Uses"], ["May be preempted"]],
        data.foreign.map((each) => ({ key: each.key, cells: [each.key, amounts(each.resource), each.preemptable ? "yes" : "no"] })))) : null,
      panel("Lifecycle", {}, picture(pictures.node, { states: new Map([[row.state, { tone: "here", note: "" }], ...passed(story, row.state)]), edges: taken(story), label: `${row.id} is ${row.state}.` })),
      happened(story),
    ];
  },
};

const passed = (story, here) => story.rows.filter((each) => each.source !== here).map((each) => [each.source, { tone: "been", note: "" }]);
const taken = (story) => new Map(story.rows.map((each, index) => [`${each.source} ${each.target}`, { tone: "been", note: String(story.rows.length - index) }]).reverse());
