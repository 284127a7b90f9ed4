// The list of applications, fifty at a time.

import { h } from "./dom.js";
import { chip, empty, field, filters, gang, legend, pager, panel, preempted, since, sortable, table, to } from "./parts.js";
import { APPLICATION } from "./states.js";
import { amounts, duration, number, plain } from "./units.js";

const STATES = [["", "any"], ["pending", "pending: wants resources"], ...APPLICATION.idle.map((state) => [state, `idle: nothing left to do (${state})`]), ["preempted", "preempted"],
  ["living", "living"], ["ended", "ended"], ...APPLICATION.others.map((state) => [state, state])];

/** A column that the table has only if one of its applications is a gang. */
const gangs = (list, column) => (list.rows.some((row) => row.gang) ? [column] : []);

export const applications = {
  title: () => "Applications",
  data: ({ partition, queue, user, state, text, sort, offset }) => ({ list: { partition, queue, user, state, text, sort, offset } }),
  reads: { list: "applications" },
  controls: ({ params, set }) => {
    const { queue = "", user = "", state = "", text = "" } = params();
    return [h("h1", { class: "quiet" }, "Applications"), filters("Filter applications", set,
      field("text", "Id contains", text), field("queue", "In queue", queue), field("user", "User", user), field("state", "State", state, STATES))];
  },
  draw: ({ list }, { params, set }) => panel(list.total === 1 ? "1 application" : `${number(list.total)} applications`, { key: "list", aside: pager(list, set) },
    list.rows.length
      ? table("Applications", sortable([["Application", "", "id"], ["State", "", "state"], ["In state", "num", "since"], ["Reason", "why-so"], ...gangs(list, ["Gang", "gangs"]), ["Queue", "path", "queue"], ["User", "opt", "user"],
        ["Pending", "num", "asks", true], ["Allocations", "num", "allocations", true], ["Holds", "words held", "holds", true], ["Age", "num opt", "age", true]], params().sort, set),
        list.rows.map((row) => ({ key: `${row.id} ${row.submitted}`, cells: [
          to("application", { id: row.id }, row.id),
          h("span", {}, chip(row.state), preempted(row), row.reservations ? h("small", { title: "has nodes reserved" }, " reserved") : null),
          since(row.since),
          row.reason ? h("span", { class: "clip", title: row.reason }, plain(row.reason)) : "",
          ...gangs(list, row.gang ? gang(row.gang) : ""),
          row.queue ? to("queue", { path: row.queue }, row.queue) : "",
          row.user,
          row.asks ? number(row.asks) : "",
          row.allocations + row.placeholders ? `${number(row.allocations)}${row.placeholders ? ` + ${number(row.placeholders)}` : ""}` : "",
          amounts(row.allocated),
          row.finished ? h("span", { title: "from submission to end" }, duration(row.finished - row.submitted)) : since(row.submitted),
        ] })))
      : empty("No application fits.", " Fewer filters show more."), legend()),
};
