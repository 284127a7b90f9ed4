// One queue: its usage, the quotas on its path, its limits and its settings.

import { h } from "./dom.js";
import { bar, chip, empty, facts, legend, panel, states, table, to } from "./parts.js";
import { amount, amounts, number, types } from "./units.js";

export const queue = {
  title: ({ path }) => path || "Queue",
  data: ({ partition, path }) => ({ queue: { partition, path } }),
  draw: ({ queue: data, overview }) => {
    const row = data.row;
    return [
      h("nav", { class: "crumbs", "aria-label": "Queues above" }, data.above.map((each) => h("span", { key: each.path }, to("queue", { path: each.path }, each.name), " / "))),
      h("h1", {}, row.path, " ", chip(row.state), row.managed ? null : chip("dynamic", "done")),
      h("div", { class: "columns" },
        panel("Usage", {}, types(overview.capacity, row.max, row.allocated).map((type) => h("div", { class: "named", key: type }, h("span", { class: "name" }, type),
          bar({ type, used: row.allocated[type] || 0, max: row.max[type], guaranteed: row.guaranteed[type], pending: row.pending[type], whole: overview.capacity[type], wide: true }))),
        facts([["Guaranteed", amounts(row.guaranteed)], ["Asked for", amounts(row.pending)], ["Being preempted", amounts(data.preempting)],
          ["Headroom", types(data.headroom).map((type) => amount(type, data.headroom[type]) + (type === "vcore" ? "" : ` ${type}`)).join(", ")]])),
        panel("Applications", { aside: row.maxRunning ? `${number(row.running)} of ${number(row.maxRunning)} run` : `${number(row.running)} run` },
          states(row.applications, (state, text) => to("applications", { queue: row.path, state }, text)),
          row.pendingApplications ? h("p", {}, to("applications", { queue: row.path, state: "pending" }, `${number(row.pendingApplications)} pending`)) : null, legend())),
      panel("Quotas on the path", {}, table("Quotas on the path", [["Queue"], ["Type"], ["Usage", "barred"], ["Guaranteed", "num"], ["Running", "num"]],
        [...data.above, row].flatMap((each) => types(overview.capacity, each.max).map((type, index) => ({ key: `${each.path} ${type}`, cells: [
          index ? "" : each.path, type,
          bar({ type, used: each.allocated[type] || 0, max: each.max[type], guaranteed: each.guaranteed[type], pending: each.pending[type], whole: overview.capacity[type] }),
          each.guaranteed[type] ? amount(type, each.guaranteed[type]) : "",
          index ? "" : `${number(each.running)}${each.maxRunning ? ` of ${number(each.maxRunning)}` : ""}`,
        ] }))))),
      panel("Limits", {}, data.limits.length
        ? table("Limits", [["For"], ["Resources"], ["Applications", "num"]], data.limits.map((each) => ({ key: `${each.kind} ${each.name}`,
          cells: [each.name === "*" ? `every other ${each.kind}` : `${each.kind} ${each.name}`, amounts(each.max) || "no limit", each.applications || "no limit"] })))
        : empty("No limit is set here.")),
      h("div", { class: "columns" },
        panel("Settings", {}, facts([...Object.entries(data.settings), ...Object.entries(data.properties)].map(([name, value]) => [name, typeof value === "boolean" ? (value ? "yes" : "no") : String(value)]))),
        row.leaf && !data.template ? null : panel("Below", {}, data.children.length
          ? h("ul", { class: "plain" }, data.children.map((path) => h("li", { key: path }, to("queue", { path }, path)))) : empty("No queues below."),
        data.template ? facts([["Template: max", amounts(data.template.maxResource) || "none"], ["Template: guaranteed", amounts(data.template.guaranteedResource) || "none"], ["Template: applications", data.template.maxApplications || "no limit"]]) : null)),
    ];
  },
};
