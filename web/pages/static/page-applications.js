// Applications, a page at a time.

import { h } from "./dom.js";
import { chip, empty, field, filters, gang, pager, panel, since, table, to } from "./parts.js";
import { amounts, duration, number, plain } from "./units.js";

const STATES = [["", "any"], ["living", "living"], ["ended", "ended"], "New", "Accepted", "Starting", "Running", "Waiting", "Resuming", "Killing", "Completed", "Killed", "Rejected"]
  .map((each) => (typeof each === "string" ? [each, each] : each));

export const applications = {
  title: () => "Applications",
  data: ({ partition, queue, user, state, text, offset }) => ({ list: { partition, queue, user, state, text, offset } }),
  reads: { list: "applications" },
  controls: ({ params, set }) => {
    const { queue = "", user = "", state = "", text = "" } = params();
    return [h("h1", { class: "quiet" }, "Applications"), filters("Filter applications", set,
      field("text", "Id contains", text), field("queue", "In queue", queue), field("user", "User", user), field("state", "State", state, STATES))];
  },
  draw: ({ list }, { set }) => panel(list.total === 1 ? "1 application" : `${number(list.total)} applications`, { key: "list", aside: pager(list, set) },
    list.rows.length
      ? table("Applications", [["Application"], ["State", "line"], ["Gang", "barred"], ["Queue", "path"], ["User", "opt"], ["Asks", "num"], ["Allocations", "num"], ["Holds", "words"], ["Age", "num"]],
        list.rows.map((row) => ({ key: `${row.id} ${row.submitted}`, cells: [
          to("application", { id: row.id }, row.id),
          h("span", {}, chip(row.state), row.reservations ? h("small", { title: "has nodes reserved" }, " reserved") : null),
          row.gang ? gang(row.gang) : "",
          row.queue ? to("queue", { path: row.queue }, row.queue) : "",
          row.user,
          row.asks ? number(row.asks) : "",
          row.allocations + row.placeholders ? `${number(row.allocations)}${row.placeholders ? ` + ${number(row.placeholders)}` : ""}` : "",
          row.message ? h("span", { class: "clip", title: row.message }, plain(row.message)) : amounts(row.allocated),
          row.finished ? h("span", { title: "from submission to end" }, duration(row.finished - row.submitted)) : since(row.submitted),
        ] })))
      : empty("No application fits.", " Fewer filters show more.")),
};
