// One application: its lifecycle, why it is pending, its asks, its allocations and its story.

import { h } from "./dom.js";
import { bar, at, bars, chip, empty, facts, gang, occasion, panel, preempted, since, sortable, stateName, table, to } from "./parts.js";
import { picture } from "./picture.js";
import { amount, amounts, called, duration, now, number, of, plain } from "./units.js";

export const application = {
  title: ({ id }) => id || "Application",
  data: ({ partition, id, ask, sort }) => ({
    app: { partition, id, sort },
    waits: { optional: { partition, id, ask }, otherwise: { partition, id } },
    story: { partition, id },
    events: { about: id, limit: 30 },
    pictures: {},
  }),
  reads: { app: "application" },
  draw: ({ app, waits, story, events, pictures }, context) => {
    const row = app.row;
    return [
      h("h1", {}, row.id, " ", chip(row.state), preempted(row)),
      h("div", { class: "columns two" },
        panel("Details", {}, facts([
          ["Queue", row.queue ? to("queue", { path: row.queue }, row.queue) : ""],
          ["Placed by", app.placedBy ? `${app.placedBy}${app.queueAsked ? `, asked for ${app.queueAsked}` : ""}` : ""],
          ["User", row.user], ["Groups", app.groups.join(", ")],
          ["Submitted", h("span", {}, at(row.submitted), ", ", since(row.submitted), " ago")],
          ["Started", row.started ? h("span", {}, at(row.started), `, after ${duration(row.started - row.submitted)}`) : ""],
          ["Ended", row.finished ? at(row.finished) : ""],
          ["Priority", row.priority], ["In its state for", since(row.since)], ["Reason", row.reason ? plain(row.reason) : ""],
          ["Holds", amounts(row.allocated)], ["Asks for", amounts(row.pending)],
          ["Allocations ended", app.released ? number(app.released) : ""], ["Preempted", preemption(row)],
          ["Skipped until", app.backoffUntil > now() * 1e6 ? at(app.backoffUntil) : ""],
        ])),
        app.style ? gangPart(app) : limitsPart(app)),
      life(app, pictures.application),
      app.asks.length ? why(app, waits, context) : null,
      app.style && app.limits.length ? limitsPart(app) : null,
      asks(app, waits, context),
      held(app, context),
      happened(story),
      panel("Events", { aside: to("events", { about: row.id }, "all") }, events.rows.length
        ? table("Events", [["When", "num"], ["What", "line"], ["Reference"], ["Text", "words"]], events.rows.map((each) => ({ key: each.id, cells: [at(each.time), occasion(each), each.object === row.id ? each.reference : each.object, plain(each.text)] })))
        : empty(events.tracking ? `None among the latest ${number(events.lookedAt)} event records.` : "Events are switched off.")),
      Object.keys(app.tags).length ? panel("Tags", {}, facts(Object.entries(app.tags))) : null,
    ];
  },
};

function preemption(row) {
  const parts = [row.preempted ? `${number(row.preempted)} to make room for other asks` : "", row.preempting ? `${number(row.preempting)} in progress` : ""];
  return parts.filter(Boolean).join(", ");
}

const gangPart = (app) => panel("Gang", { aside: app.row.gang.whole ? chip("complete", "good") : chip("incomplete", "wait") },
  facts([["Style", app.style], ["Needs in total", amounts(app.placeholderAsk)], ["Placeholder timeout", app.placeholderTimeout ? duration(app.placeholderTimeout) : "none"],
    ...(app.waiting ? outlook(app.waiting) : [])]),
  app.taskGroups.length ? h("ul", { class: "groups" }, app.taskGroups.map((group) => h("li", { key: group.name },
    h("div", {}, h("b", {}, group.name), h("small", {}, ` ${number(group.count)} × ${amounts(group.resource)}`)), gang(group, true))))
    : gang(app.row.gang, true),
  h("p", { class: "key" }, h("span", { class: "swatch p0" }), "real ", h("span", { class: "swatch p1" }), "placeholder placed ", h("span", { class: "swatch p2" }), "pending ", h("span", { class: "swatch p3" }), "given up"));

/** What a gang waits for, whether and when its start may be planned, and the plan. */
function outlook(waiting) {
  const { plannedStart: plan, mayGatherFrom: from, timesOut } = waiting;
  const until = (ns) => h("span", {}, at(ns), ns > now() * 1e6 ? `, in ${duration(ns - now() * 1e6)}` : "");
  const some = (names, count, link) => [names.slice(0, 5).map((name, index) => [index ? ", " : "", link(name)]), count > 5 ? ` and ${number(count - 5)} more` : ""];
  const turn = waiting.mayGather ? "when its turn comes" : waiting.budgetLeft ? "" : "when the budget allows it";
  return [
    ["Waits for", waiting.lacks],
    ["Start may be planned", plan || !from ? "" : from > now() * 1e6 ? until(from) : turn],
    ["Planned start", plan ? until(plan.start) : ""],
    ["On nodes", plan ? h("span", {}, ...some(plan.nodes, plan.nodeCount, (id) => to("node", { id }, id))) : ""],
    ["Used until then by", plan && plan.userCount ? h("span", {}, ...some(plan.users, plan.userCount, (id) => to("application", { id }, id))) : ""],
    ["By expected ends", plan ? Object.entries(plan.estimates).filter(([, count]) => count).map(([source, count]) => `${number(count)} ${source}`).join(", ") : ""],
    ["Lent its nodes and overran", plan && plan.overran ? number(plan.overran) : ""],
    ["Budget for idle capacity", from || plan ? waiting.budgetLeft ? `${duration(waiting.budgetLeft)} of the whole cluster` : "spent" : ""],
    ["Its timeout ends the wait", timesOut ? until(timesOut) : ""],
  ];
}

const limitsPart = (app) => panel("Limits", {}, app.limits.length ? app.limits.map((limit) => h("div", { key: `${limit.kind} ${limit.queue}` },
  h("p", {}, `${limit.kind} ${limit.name} in `, to("queue", { path: limit.queue }, limit.queue), limit.shared ? " (limit for all others)" : "",
    limit.maxRunning ? `: ${number(limit.running)} of ${number(limit.maxRunning)} applications` : ""),
  bars(limit.used, limit.max))) : empty("No limit of a user or group applies to it."));

function life(app, drawing) {
  const times = new Map();
  const path = [];
  const history = app.history.length && app.history[0][1] === drawing.initial ? app.history : [[app.born, drawing.initial], ...app.history];
  history.forEach(([entered, state], index) => {
    const until = index + 1 < history.length ? history[index + 1][0] : now() * 1e6;
    const past = times.get(state) || { ns: 0, visits: 0 };
    times.set(state, { ns: past.ns + Math.max(0, until - entered), visits: past.visits + 1 });
    if (index) path.push([history[index - 1][1], state]);
  });
  const here = app.row.state;
  const states = new Map([...times].map(([state, { ns, visits }]) => [state,
    { tone: state === here ? "here" : "been", note: duration(ns) + (visits > 1 ? `, ${visits} times` : "") }]));
  const edges = new Map();
  path.forEach(([source, target], index) => {
    const key = `${source} ${target}`;
    edges.set(key, { tone: "been", note: edges.has(key) ? `${edges.get(key).note}, ${index + 1}` : String(index + 1) });
  });
  const words = history.map(([, state]) => state).join(", then ");
  return panel("Lifecycle", { class: "life", aside: h("span", {}, "in ", h("b", {}, stateName(here)), " for ", since(history.at(-1)[0])) },
    picture(drawing, { states, edges, label: `States of ${app.row.id}: ${words}.` }));
}

function why(app, waits, context) {
  if (!waits || !waits.ask) return null;
  const failing = waits.checks.filter((check) => !check.passed).length;
  const rest = failing > 1 ? ` ${failing} checks fail.` : "";
  return panel("Why it is pending", { class: "why", aside: h("span", {}, "ask ", h("b", {}, waits.ask), ", ", waits.state, ", for ", since(waits.since)) },
    h("p", { class: "first" }, plain(waits.verdict)),
    h("p", {}, `It asks for ${amounts(waits.resource) || "nothing"}.${rest}`),
    h("ol", { class: "checks" }, waits.checks.map((check, index) => h("li", { key: `${index} ${check.about} ${check.subject} ${check.type}`, class: check.passed ? "pass" : "fail" },
      h("span", { class: "verdict", role: "img", "aria-label": check.passed ? "passes" : "fails" }, check.passed ? "\u2713" : "\u2717"),
      h("span", { class: "about" }, check.about),
      h("div", { class: "told" }, ...result(check))))));
}

/** The result of a check: its text, the usage, and the change that alone makes the ask start, if there is one. */
function result(check) {
  if (check.numbers.kept !== undefined) return gangResult(check);
  if (!check.type) return [linked(check), remedy(check.remedy && plain(check.remedy))];
  const { limit, used, asked } = check.numbers;
  return [
    h("span", {}, `${check.subject}: asks for ${called(check.type, asked)}, ${remaining(check)}`),
    check.passed ? null : bar({ type: check.type, used, max: limit, pending: asked }),
    remedy(check.remedy),
  ];
}

/** What is left of a quota: `10 of 192 cores are left`. */
function remaining({ type, numbers: { limit, headroom } }) {
  const left = of(type, Math.max(0, headroom), limit);
  return `${left} ${left.startsWith("1 ") ? "is" : "are"} left`;
}

/** The result of the check for a whole gang: the quota, what is used of it, and what other gangs keep. */
function gangResult(check) {
  const { limit, used, kept, asked, headroom } = check.numbers;
  const named = check.holders.reduce((sum, each) => sum + each.amount, 0);
  return [
    h("span", {}, `the whole gang needs ${called(check.type, asked)}, ${check.subject} has room for ${headroom > 0 ? called(check.type, headroom) : "nothing"}: `,
      `quota ${amount(check.type, limit)}, used ${amount(check.type, used)}`,
      check.holders.map((each) => [`, ${amount(check.type, each.amount)} kept for the gang `, to("application", { id: each.application }, each.application)]),
      kept > named ? `, ${amount(check.type, kept - named)} kept for ${number(check.held - check.holders.length)} other gangs` : ""),
    bar({ type: check.type, used: used + kept, max: limit, pending: asked }),
    remedy(check.remedy),
  ];
}

/** The text of a check with links to the node that it names and to the applications that hold what the ask
 * lacks. The names are found in their order in the text, so a name within another one is not mistaken for it. */
function linked(check) {
  const names = check.holders.length ? check.holders.flatMap((each) => [
    each.node && [each.node, to("node", { id: each.node }, each.node)],
    each.ask && [each.ask, h("b", {}, each.ask)],
    [each.application, to("application", { id: each.application, ask: each.ask }, each.application)],
  ].filter(Boolean)) : [];
  if (check.node) names.unshift([check.node, to("node", { id: check.node }, check.node)]);
  const parts = [];
  let text = check.text;
  for (const [name, link] of names) {
    const found = text.search(new RegExp(`(^|\\s)${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?=$|[\\s,;:])`));
    if (found < 0) continue;
    const start = text.indexOf(name, found);
    parts.push(plain(text.slice(0, start)), link);
    text = text.slice(start + name.length);
  }
  return h("span", {}, parts, plain(text));
}

const remedy = (text) => (text ? h("p", { class: "remedy" }, "Smallest change: ", h("b", {}, text)) : null);

const asks = (app, waits, context) => panel("Asks", {}, app.asks.length
  ? table("Asks", [["Ask"], ["State", "line"], ["Pending", "num"], ["Each", "words"], ["Task group"], ["Priority", "num opt"], ["Since", "num"], ["Why"]],
    app.asks.map((each) => ({ key: each.key, class: waits && waits.ask === each.key ? "chosen" : "", cells: [
      h("span", {}, each.keys[0], each.alike > 1 ? h("small", { title: each.keys.join(", ") }, ` and ${number(each.alike - 1)} like it`) : null),
      h("span", {}, chip(each.state), each.placeholder ? h("small", {}, " placeholder") : null),
      number(each.pending), amounts(each.resource),
      each.taskGroup || (each.requiredNode ? `on ${each.requiredNode}` : ""),
      each.priority, since(each.since),
      h("span", {}, h("button", { type: "button", class: "link", "aria-pressed": String(Boolean(waits && waits.ask === each.key)), onclick: () => context.set({ ask: each.key }) }, "explain"),
        each.reservations.length ? h("small", {}, ` reserves ${each.reservations.join(", ")}`) : null),
    ] })), app.kindsOfAsks > app.asks.length ? h("caption", {}, `${number(app.kindsOfAsks)} kinds, of which ${number(app.asks.length)} are shown`) : null)
  : empty("It asks for nothing."));

/** The number of allocations, and which of them the table shows if it does not show all. */
export const shown = (rows, all, sort) => (all > rows.length ? `the ${sort ? "first" : "newest"} ${number(rows.length)} of ${number(all)}` : all ? number(all) : null);

const held = (app, { params, set }) => {
  const { sort } = params();
  const all = app.row.allocations + app.row.placeholders;
  return panel("Allocations", { aside: shown(app.held, all, sort) }, app.held.length
    ? table("Allocations", sortable([["Allocation", "", "key"], ["State", "line", "state"], ["Node", "", "node"], ["Holds", "words", "holds", true], ["Task group", "", "group"], ["For", "num", "since"]], sort, set), app.held.map((each) => ({ key: each.uuid, cells: [
      each.uuid,
      h("span", {}, chip(each.state), each.placeholder ? h("small", {}, " placeholder") : null, each.reason ? h("small", { title: each.message }, ` ${each.reason}`) : null),
      to("node", { id: each.node }, each.node), amounts(each.resource), each.taskGroup, since(each.since)] })))
    : empty("It holds nothing."));
};

export function happened(story) {
  return panel("Story", { aside: story.more ? "the latest" : null }, story.rows.length
    ? table("Story", [["When", "num"], ["Object", "path"], ["Transition", "line"], ["Cause", "path"]], story.rows.map((each) => ({ key: each.seq, cells: [
      at(each.time), h("span", {}, h("small", {}, `${each.kind.replaceAll("_", " ")} `), each.key),
      h("span", { class: "step" }, each.source, h("i", {}, ` ${each.trigger} \u2192 `), h("b", {}, each.target)), h("span", {}, each.cause, each.reason ? h("small", {}, ` ${each.reason}`) : null)] })))
    : empty("The journal has no transition of it."),
  story.forgotten ? h("p", { class: "key" }, `The journal keeps the latest ${number(story.remembered)} transitions of all objects, since `, at(story.since), ".") : null);
}

