// A lifecycle as it is drawn: boxes on a grid, edges along it, marked with what one knows of it.

import { h } from "./dom.js";

const RADIUS = 9;

/** `marks.states` and `marks.edges` (by "source target") map to { tone, note }; without any the plain
 * lifecycle is shown. `label` says in words what the picture shows. */
export function picture(drawing, marks) {
  const [width, height] = drawing.box;
  const edges = [...drawing.edges].sort((a, b) => Boolean(marks.edges.get(name(a))) - Boolean(marks.edges.get(name(b))));
  const faint = marks.states.size > 0;
  return h("div", { class: "scroll picture", tabindex: "0", role: "region", "aria-label": marks.label, key: drawing.name },
    h("svg", { viewBox: `0 0 ${drawing.width} ${drawing.height}`, class: faint ? "marked" : "", role: "img", "aria-label": marks.label,
      style: { "min-width": `${Math.round(drawing.width * 0.62)}px`, "max-width": `${drawing.width}px` } },
      edges.map((edge) => way(edge, marks.edges.get(name(edge)))),
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
      edges.map((edge) => label(edge, drawing, marks.edges.get(name(edge))))));
}

const name = (edge) => `${edge.source} ${edge.target}`;

const words = (edge) => edge.triggers.map((each) => each.replaceAll("_", " ")).join(", ");

function way(edge, mark) {
  const points = edge.points;
  const [[x1, y1], [x2, y2]] = [points.at(-2), points.at(-1)];
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  const head = [[x2, y2], [x2 - 9 * dx + 4.5 * dy, y2 - 9 * dy - 4.5 * dx], [x2 - 9 * dx - 4.5 * dy, y2 - 9 * dy + 4.5 * dx]];
  return h("g", { class: `edge ${mark ? mark.tone : ""}`, key: name(edge), "data-edge": name(edge) },
    h("title", {}, `${edge.source} to ${edge.target}: ${words(edge)}`),
    h("path", { d: line(points) }),
    h("polygon", { points: head.map((point) => point.join(",")).join(" ") }));
}

function label(edge, drawing, mark) {
  const [x, y, anchor] = place(edge, drawing);
  return h("text", { x, y, class: `label ${mark ? mark.tone : ""}`, key: `${name(edge)} label`, "text-anchor": anchor },
    words(edge), mark?.note ? h("tspan", { class: "count" }, ` ${mark.note}`) : null);
}

/** With round corners. */
function line(points) {
  let path = `M${points[0]}`;
  for (let at = 1; at < points.length - 1; at += 1) {
    const [before, corner, after] = [points[at - 1], points[at], points[at + 1]];
    path += `L${towards(corner, before)}Q${corner} ${towards(corner, after)}`;
  }
  return `${path}L${points.at(-1)}`;
}

function towards([x, y], [toX, toY]) {
  const length = Math.hypot(toX - x, toY - y) || 1;
  const step = Math.min(RADIUS, length / 2) / length;
  return [x + (toX - x) * step, y + (toY - y) * step];
}

/** Beside the start of the edge: above it or below, left of it or right, on the side of the box's middle
 * where it leaves, so that two that leave side by side have their labels apart. */
function place(edge, drawing) {
  const [[x1, y1], [x2, y2]] = edge.points;
  const source = drawing.states.find((state) => state.name === edge.source);
  if (y1 === y2) {
    const y = y1 > source.y ? y1 + 15 : y1 - 6;
    return edge.points.length === 2 ? [(x1 + x2) / 2, y, "middle"] : [x1 + (x2 > x1 ? 8 : -8), y, x2 > x1 ? "start" : "end"];
  }
  const y = edge.points.length === 2 ? (y1 + y2) / 2 + 4 : y1 + (y2 > y1 ? 18 : -10);
  return x1 < source.x ? [x1 - 6, y, "end"] : [x1 + 6, y, "start"];
}
