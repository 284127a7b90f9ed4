// The overview of the cluster, and the tree of its queues.

import { h } from "./dom.js";
import { at, bar, bars, chip, empty, facts, legend, panel, states, table, to, tone } from "./parts.js";
import { APPLICATION, NODE } from "./states.js";
import { number, percent, types } from "./units.js";

const MOST_OPEN = 80; // with more queues than this, the tree is closed below the first level
const opened = new Map(); // path of a queue: whether the user opened or closed it
let sought = ""; // the text in "Find a queue"

export const cluster = {
  title: () => "Cluster",
  data: ({ partition }) => ({ queues: { partition } }),
  draw: ({ overview, queues }, context) => [
    h("h1", { class: "quiet" }, "Cluster"),
    h("div", { class: "tiles" }, tiles(overview)),
    h("div", { class: "columns" }, capacity(overview), applicationsPart(overview), health(overview)),
    tree(overview, queues, context),
  ],
};

function tiles(data) {
  const nodes = Object.values(data.nodes.states).reduce((sum, count) => sum + count, 0);
  const apps = data.applications;
  const living = APPLICATION.living.reduce((sum, name) => sum + (apps[name] || 0), 0);
  const tile = (key, count, label, note, link) =>
    h("div", { class: "tile", key }, h("b", {}, link ? link(number(count)) : number(count)), h("span", {}, label), h("small", {}, note || "\u00a0"));
  const some = (pairs) => pairs.filter(([count]) => count).map(([count, text]) => `${number(count)} ${text}`).join(", ");
  const found = (pairs) => pairs.filter(([count]) => count).map(([count, text, state], index) => [index ? ", " : "", to("applications", { state }, `${number(count)} ${text}`)]);
  return [
    tile("nodes", nodes, "nodes", some([...NODE.closed.map((state) => [data.nodes.states[state], state.toLowerCase()]), [data.nodes.reserved, "reserved"], [data.nodes.unhealthy, "not ready"], [data.nodes.failed, "failed"]]), (text) => to("nodes", {}, text)),
    tile("apps", living, "applications", found([...APPLICATION.running.map((state) => [apps[state], state.toLowerCase(), state]), [data.pendingApplications, "pending", "pending"], ...APPLICATION.idle.map((state) => [apps[state], "idle", state])]), (text) => to("applications", { state: "living" }, text)),
    tile("allocations", data.allocations, "allocations", some([[data.placeholders, "placeholders"]])),
    tile("asks", data.asks, "asks", "pending or parked"),
    tile("reservations", data.reservations, "reservations", ""),
    tile("queues", data.queues, "queues", ""),
  ];
}

const capacity = (data) => panel("Capacity", { aside: tone(data.resourceManager.state) === "good" ? null : chip(`resource manager ${data.resourceManager.state}`, "bad") },
  types(data.capacity).length
    ? bars(data.allocated, data.capacity, { pending: data.pending, calm: true })
    : empty("No nodes yet."),
  h("p", { class: "key" }, h("span", { class: "swatch used" }), "allocated ", h("span", { class: "swatch asked" }), "asked for"));

const applicationsPart = (data) => panel("Applications", {},
  states(data.applications, (state, text) => to("applications", { state }, text)), legend());

function health(data) {
  const found = data.health;
  const bad = found ? found.checks.filter((check) => !check.passed) : [];
  const word = !found ? chip("not checked yet", "done") : found.healthy ? chip("healthy", "good") : chip("unhealthy", "bad");
  return panel("Health", { aside: word },
    facts([
      ["Resource manager", `${data.resourceManager.id}${data.resourceManager.version ? ` ${data.resourceManager.version}` : ""}, ${data.resourceManager.state}`],
      ["Checks", found ? `${found.checks.length - bad.length} of ${found.checks.length} pass` : "the first runs within half a minute"],
      ["Messages refused because of a bug", data.failures ? number(data.failures) : ""],
      ["Node ordering", data.policies.nodes],
      ["Preemption", data.policies.preemption ? "on" : "off"],
    ]),
    bad.length ? h("ul", { class: "plain" }, bad.map((check) => h("li", { key: check.name }, h("b", {}, check.name), `: ${check.diagnosis}`))) : null,
    data.overdue.length ? h("details", { key: "overdue" }, h("summary", {}, `${data.overdue.length} in a state for too long`),
      h("ul", { class: "plain" }, data.overdue.map((each) => h("li", { key: `${each.key} ${each.time}` }, `${each.key} in ${each.state} at `, at(each.time))))) : null);
}

const isOpen = (row, many) => (opened.has(row.path) ? opened.get(row.path) : !many || row.depth < 1);

/** The rows whose parents are open; during a search, the rows that match, with all their parents. */
function visible(rows) {
  if (sought) {
    const wanted = new Set();
    for (const row of rows) {
      if (!row.path.toLowerCase().includes(sought)) continue;
      const names = row.path.split(".");
      names.forEach((_, end) => wanted.add(names.slice(0, end + 1).join(".")));
    }
    return rows.filter((row) => wanted.has(row.path));
  }
  const many = rows.length > MOST_OPEN;
  let closed = Infinity;
  return rows.filter((row) => {
    if (row.depth > closed) return false;
    closed = isOpen(row, many) ? Infinity : row.depth;
    return true;
  });
}

function tree(overview, data, context) {
  const shown = types(overview.capacity).slice(0, 3);
  const many = data.rows.length > MOST_OPEN;
  const rows = visible(data.rows);
  const fold = (row) => {
    if (!row.children) return h("span", { class: "fold" });
    const open = sought ? true : isOpen(row, many);
    return h("button", { class: "fold", type: "button", "aria-expanded": String(open), "aria-label": `${open ? "Close" : "Open"} ${row.path}`,
      onclick: () => { opened.set(row.path, !open); context.draw(); } }, open ? "\u25be" : "\u25b8");
  };
  const seek = h("div", { class: "field inline" }, h("label", { for: "seek" }, "Find a queue"),
    h("input", { id: "seek", type: "search", autocomplete: "off", maxlength: "256", oninput: (event) => { sought = event.target.value.trim().toLowerCase(); context.draw(); } }));
  return panel("Queues", { aside: seek },
    rows.length ? null : empty("No queue has this text in its path."),
    rows.length ? table("Queues", [["Queue", "tree"], ...shown.map((type) => [type, "barred"]), ["Running", "num"], ["Pending", "num"], ["Limits", "num opt"]],
      rows.map((row) => ({ key: row.path, version: JSON.stringify([row, sought || isOpen(row, many), overview.capacity]), cells: () => [
        h("span", { class: "branch", style: { "--depth": row.depth } }, fold(row), to("queue", { path: row.path }, row.name),
          tone(row.state) === "good" ? null : chip(row.state), row.managed ? null : h("small", { title: "created by a placement rule" }, "dynamic")),
        ...shown.map((type) => bar({ type, used: row.allocated[type] || 0, max: row.max[type], guaranteed: row.guaranteed[type], pending: row.pending[type], whole: overview.capacity[type] })),
        row.maxRunning ? h("span", { class: percent(row.running, row.maxRunning) >= 100 ? "full" : "" }, `${number(row.running)} of ${number(row.maxRunning)}`) : number(row.running),
        row.pendingApplications ? to("applications", { queue: row.path, state: "pending" }, number(row.pendingApplications)) : "0",
        row.limits || "",
      ] }))) : null,
    h("p", { class: "key" }, h("span", { class: "swatch used" }), "used ", h("span", { class: "swatch asked" }), "asked for ", h("span", { class: "swatch tick" }), "guaranteed ",
      h("span", { class: "swatch free" }), "no max: share of the cluster",
      data.total > data.rows.length ? ` The first ${number(data.rows.length)} of ${number(data.total)} queues.` : ""));
}

