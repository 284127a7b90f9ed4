// The picture of a lifecycle: states as boxes, edges as arrows, both marked with live data. The server
// sends the coordinates.

import { h } from "./dom.js";

/** Height of one line of a label. */
const LINE = 16;

/** `marks.states` and `marks.edges` map a state, or "source target", to { tone, note }. Without any mark the
 * picture shows the plain lifecycle. `marks.label` describes the picture in words. */
export function picture(drawing, marks) {
  const [width, height] = drawing.box;
  const edges = [...drawing.edges].sort((a, b) => Boolean(marks.edges.get(name(a))) - Boolean(marks.edges.get(name(b))));
  const faint = marks.states.size > 0;
  return h("div", { class: "scroll picture", tabindex: "0", role: "region", "aria-label": marks.label, key: drawing.name },
    h("svg", { viewBox: `0 0 ${drawing.width} ${drawing.height}`, class: faint ? "marked" : "", role: "img", "aria-label": marks.label,
      style: { "min-width": `${Math.round(drawing.width * 0.7)}px`, "max-width": `${drawing.width}px` } },
      edges.map((edge) => arrow(edge, marks.edges.get(name(edge)))),
      drawing.states.map((state) => {
        const mark = marks.states.get(state.name);
        const [x, y] = [state.x - width / 2, state.y - height / 2];
        return h("g", { class: `state ${mark ? mark.tone : ""}`, key: state.name, "data-state": state.name },
          h("title", {}, `${state.name}: ${state.lasts}`),
          h("rect", { x, y, width, height, rx: 9 }),
          state.final ? h("rect", { x: x + 4, y: y + 4, width: width - 8, height: height - 8, rx: 6, class: "inner" }) : null,
          h("text", { x: state.x, y: state.y + (mark?.note ? -3 : 5), class: "name" }, state.name),
          mark?.note ? h("text", { x: state.x, y: state.y + 16, class: "note" }, mark.note) : null);
      }),
      edges.map((edge) => label(edge, marks.edges.get(name(edge))))));
}

const name = (edge) => `${edge.source} ${edge.target}`;

const words = (edge) => edge.lines.join(" ");

/** A Bezier curve and the head of the arrow, from its end to the tip. */
function arrow(edge, mark) {
  const [start, ...controls] = edge.path;
  const [[x, y], [tipX, tipY]] = [edge.path.at(-1), edge.tip];
  const [acrossX, acrossY] = [(tipY - y) / 2, (x - tipX) / 2];
  const head = [edge.tip, [x + acrossX, y + acrossY], [x - acrossX, y - acrossY]];
  return h("g", { class: `edge ${mark ? mark.tone : ""}`, key: name(edge), "data-edge": name(edge) },
    h("title", {}, `${edge.source} to ${edge.target}: ${words(edge)}`),
    h("path", { d: `M${start}C${controls.join(" ")}` }),
    h("polygon", { points: head.map((point) => point.join(",")).join(" ") }));
}

/** The triggers in their lines and, below them, the note of the mark. */
function label(edge, mark) {
  const [x, y] = edge.label;
  const lines = mark?.note ? [...edge.lines, mark.note] : edge.lines;
  const top = y - (lines.length - 1) * LINE / 2 + 4;
  return h("text", { class: `label ${mark ? mark.tone : ""}`, key: `${name(edge)} label` },
    lines.map((text, at) => h("tspan", { x, y: top + at * LINE, class: at < edge.lines.length ? "" : "count" }, text)));
}
