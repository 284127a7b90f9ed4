// The lifecycles of the scheduler, in the order of the data: how many objects are in each state, and how often each transition was taken.

import { h } from "./dom.js";
import { at, panel, table } from "./parts.js";
import { picture } from "./picture.js";
import { number } from "./units.js";

export const lifecycles = {
  title: () => "Lifecycles",
  data: () => ({ lives: {}, pictures: {} }),
  reads: { lives: "lifecycles" },
  draw: ({ lives, pictures }) => [
    h("h1", { class: "quiet" }, "Lifecycles"),
    h("p", { class: "lead" }, "A box is a state, with the number of objects in it now, in all partitions; objects that have ended and are forgotten are not counted. ",
      "The numbers at the arrows count the transitions among the latest ", number(lives.remembered), lives.since !== null ? [", since ", at(lives.since)] : null, "."),
    h("div", { class: "gallery" }, Object.entries(lives.lifecycles).map(([name, life]) => panelOf(name, pictures[name], life))),
  ],
};

function panelOf(name, drawing, data) {
  const title = name.replaceAll("_", " ").replace(/^./, (first) => first.toUpperCase());
  const states = new Map(Object.entries(data.states).map(([state, count]) => [state, { tone: "been", note: number(count) }]));
  const edges = new Map();
  for (const { source, target, count } of data.taken) {
    const key = `${source} ${target}`;
    edges.set(key, { tone: "been", sum: (edges.get(key)?.sum || 0) + count });
  }
  for (const edge of edges.values()) edge.note = number(edge.sum);
  const words = Object.entries(data.states).map(([state, count]) => `${count} ${state}`).join(", ") || "none";
  return panel(title, {},
    picture(drawing, { states, edges, label: `States of the ${title.toLowerCase()} lifecycle: ${words}.` }),
    data.taken.length ? h("details", { key: "taken" }, h("summary", {}, "Transitions as a table"),
      table(`Transitions of the ${title.toLowerCase()} lifecycle`, [["From"], ["Trigger"], ["To"], ["Times", "num"]],
        data.taken.map((each) => ({ key: `${each.source} ${each.trigger} ${each.target}`, cells: [each.source, each.trigger, each.target === each.source ? "stays" : each.target, number(each.count)] })))) : null);
}
