// The pages of users and groups, of the configuration, and of the latest event records.

import { h } from "./dom.js";
import { at, bars, empty, facts, field, filters, heading, occasion, pager, panel, sortable, table, to } from "./parts.js";
import { amounts, number, plain } from "./units.js";

export const people = {
  title: () => "Users and groups",
  data: ({ partition, kind, text, sort, offset }) => ({ people: { partition, kind, text, sort, offset } }),
  controls: ({ params, set }) => {
    const { kind = "users", text = "" } = params();
    return [h("h1", { class: "quiet" }, "Users and groups"), filters("Filter users and groups", set,
      field("kind", "Show", kind, [["users", "users"], ["groups", "groups"]]), field("text", "Name contains", text))];
  },
  draw: ({ people: list }, { params, set }) => panel(`${number(list.total)} ${list.total === 1 ? list.kind.slice(0, -1) : list.kind}`, { key: "list", aside: pager(list, set) },
    list.rows.length
      ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Users and groups" }, h("table", { class: "people" },
        h("thead", {}, h("tr", {}, sortable([["Name", "", "name"], ["Holds", "", "holds", true], ["Running", "", "running", true], ["Limits"]], params().sort || "name", set).map(heading))),
        h("tbody", {}, list.rows.map((row) => h("tr", { key: row.name },
          h("th", { scope: "row" }, row.name === "*" ? "* (all others)" : list.kind === "users" ? to("applications", { user: row.name, state: "living" }, row.name) : row.name,
            row.groups.length ? h("small", {}, ` counts for ${row.groups.join(", ")}`) : null),
          h("td", {}, amounts(row.used) || "nothing"),
          h("td", {}, row.applications.length ? h("details", { key: "apps" }, h("summary", {}, number(row.running)), h("ul", { class: "plain" }, row.applications.map((id) => h("li", { key: id }, to("application", { id }, id))))) : "0"),
          h("td", { class: "limits" }, row.limits.length ? row.limits.map((limit) => h("div", { key: limit.queue },
            h("p", {}, to("queue", { path: limit.queue }, limit.queue), limit.shared ? " (for all others)" : "",
              limit.maxRunning ? `: ${number(limit.running)} of ${number(limit.maxRunning)} applications` : ""), bars(limit.used, limit.max))) : "none"))))))
      : empty("None.")),
};

export const configuration = {
  title: () => "Configuration",
  data: ({ partition }) => ({ configuration: { partition } }),
  draw: ({ configuration: data }) => [
    h("h1", { class: "quiet" }, "Configuration"),
    panel("Placement rules", {}, h("p", { class: "lead" }, "The first rule that finds a queue places the application."),
      h("ol", { class: "rules" }, data.rules.map((rule, index) => h("li", { key: index }, ruleText(rule))))),
    panel("Queues", { aside: data.checksum ? h("small", {}, `checksum ${data.checksum.slice(0, 12)}`) : null }, h("pre", { tabindex: "0", "aria-label": "Queues as YAML" }, data.yaml)),
    panel("Settings", { aside: `resource manager ${data.resourceManager}` }, Object.keys(data.extra).length ? facts(Object.entries(data.extra)) : empty("All settings have their defaults.")),
  ],
};

function ruleText(rule) {
  const filter = rule.filter;
  return [h("b", {}, rule.name), " ", Object.entries(rule.parameters).map(([name, value]) => `${name}: ${value}`).join(", "),
    filter ? h("small", {}, ` ${filter.type} ${[...filter.userList, filter.userExp].filter(Boolean).map((name) => `user ${name}`).concat([...filter.groupList, filter.groupExp].filter(Boolean).map((name) => `group ${name}`)).join(", ")}`) : null,
    rule.parentRule ? h("div", { class: "parent" }, "below: ", ruleText(rule.parentRule)) : null];
}

const TYPES = [["", "any"], ["APP", "application"], ["REQUEST", "ask"], ["NODE", "node"], ["QUEUE", "queue"], ["USERGROUP", "user or group"]];

export const events = {
  title: () => "Events",
  alone: true,
  data: ({ type, text, about }) => ({ events: { type, text, about } }),
  controls: ({ params, set }) => {
    const { type = "", text = "", about = "" } = params();
    return [h("h1", { class: "quiet" }, "Events"), filters("Filter events", set, field("type", "About a", type, TYPES), field("text", "Contains", text), field("about", "Id", about))];
  },
  draw: ({ events: data }) => panel(`${number(data.created)} events so far`, { key: "list", aside: data.rows.length ? `the latest ${number(data.rows.length)} that fit, of ${number(data.lookedAt)}` : null },
    data.rows.length
      ? table("Events", [["When", "num"], ["What", "line"], ["Object"], ["Reference"], ["Quantities", "words"], ["Text", "words"]], data.rows.map((each) => ({ key: each.id, cells: [
        at(each.time), occasion(each), subject(each), each.reference, amounts(each.resource), plain(each.text)] })))
      : empty(data.tracking ? "No event fits." : "Events are switched off (event.trackingEnabled).")),
};

const PAGE_OF = { APP: "application", NODE: "node" };

function subject(each) {
  if (each.type === "QUEUE") return to("queue", { path: each.object }, each.object);
  return PAGE_OF[each.type] ? to(PAGE_OF[each.type], { id: each.object }, each.object) : each.object;
}
