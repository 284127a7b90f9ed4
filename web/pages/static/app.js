// The frame around every page: which one it is, its data every two seconds, pause, errors.

import { h, show } from "./dom.js";
import { setClock, stopClock } from "./units.js";
import { application } from "./page-application.js";
import { applications } from "./page-applications.js";
import { cluster } from "./page-cluster.js";
import { configuration, events, people } from "./page-others.js";
import { lifecycles } from "./page-lifecycles.js";
import { node, nodes } from "./page-nodes.js";
import { queue } from "./page-queue.js";

const PAGES = { "": cluster, queue, applications, application, nodes, node, lifecycles, people, configuration, events };
const BELONGS = { queue: "./", application: "applications", node: "nodes" };
const PERIOD = 2000;
const PATIENCE = 15000;

const byId = (id) => document.getElementById(id);
const content = byId("content");
const path = location.pathname.split("/").pop();
const page = PAGES[path] || cluster;
const known = new Map(); // address of data: what came last
let paused = false;
let timer = 0;
let round = 0;

const params = () => Object.fromEntries(new URLSearchParams(location.search));

/** Ask for something else: the address says what is shown, so that it can be kept and sent. */
function set(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === undefined) query.delete(name);
    else query.set(name, value);
  }
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
  refresh();
}

const context = { params, set, draw };

async function read(name, asked) {
  const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== undefined && value !== ""));
  const address = `data/${name}${query.size ? `?${query}` : ""}`;
  const token = sessionStorage.getItem("token");
  const answer = await fetch(address, {
    cache: "no-cache",
    credentials: "omit",
    signal: AbortSignal.timeout(PATIENCE),
    headers: token ? { Authorization: `Bearer ${token}` } : {},
  });
  if (answer.headers.has("Quadriga-Time")) setClock(Number(answer.headers.get("Quadriga-Time")));
  const tag = answer.headers.get("ETag");
  const last = known.get(address);
  if (answer.ok && last && tag && last.tag === tag) return last.data;
  const data = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(data.error || data.message || answer.statusText), { status: answer.status });
  if (known.size > 40) known.clear();
  known.set(address, { tag, data });
  return data;
}

/** What is optional may be gone by now, such as an ask that was allocated: then `otherwise` is asked. */
async function one(name, asked) {
  if (!asked.optional) return read(name, asked);
  for (const each of [asked.optional, asked.otherwise]) {
    try {
      return await read(name, each);
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  }
  return null;
}

async function refresh() {
  clearTimeout(timer);
  const mine = ++round;
  try {
    const asked = page.data(params());
    const names = Object.keys(asked);
    const [overview, ...found] = await Promise.all([
      page.alone ? null : read("overview", { partition: params().partition }),
      ...names.map((name) => one(page.reads?.[name] || name, asked[name])),
    ]);
    if (mine !== round) return;
    last = { overview, ...Object.fromEntries(names.map((name, place) => [name, found[place]])) };
    byId("banner").hidden = true;
    status("live");
    partitions(overview);
    const first = content.getAttribute("aria-busy") === "true";
    draw();
    if (first) bringIntoSight();
  } catch (error) {
    if (mine !== round) return;
    failed(error);
  }
  content.setAttribute("aria-busy", "false");
  schedule();
}

/** Of a picture that is wider than the window, the state that the entity is in. */
function bringIntoSight() {
  for (const state of content.querySelectorAll(".picture .here")) {
    const frame = state.closest(".picture");
    const [box, around] = [state.getBoundingClientRect(), frame.getBoundingClientRect()];
    frame.scrollLeft += box.left + box.width / 2 - around.left - around.width / 2;
  }
}

let last = null;

function draw() {
  if (!last) return;
  if (last.overview && last.overview.partitions.length === 0 && !page.alone) {
    show(content, h("p", { class: "empty" }, "No resource manager has registered yet. As soon as one does, its cluster is shown here."));
    return;
  }
  show(content, page.draw(last, context));
  document.title = `${page.title(params())} · Quadriga`;
}

function failed(error) {
  const banner = byId("banner");
  if (error.status === 401) {
    status("no access");
    banner.hidden = false;
    if (!banner.querySelector("form")) show(banner, tokenForm());
    return;
  }
  if (error.status === 404 || error.status === 400) {
    status("live");
    banner.hidden = true;
    last = null;
    show(content, h("div", { class: "empty" }, h("h1", {}, page.title(params())), h("p", {}, `${error.message}.`),
      h("p", {}, "It may have ended and been forgotten, or the address is wrong. "), h("p", {}, h("a", { href: BELONGS[path] || "./" }, "Back"))));
    return;
  }
  const text = error.status ? `The scheduler cannot answer: ${error.message}.` : "The scheduler is away: no answer.";
  status("away");
  show(banner, [h("strong", {}, text), last ? " What is shown is the last that it said. Trying again every few seconds." : " Trying again every few seconds."]);
  banner.hidden = false;
}

function tokenForm() {
  return h("form", { class: "token", onsubmit: (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", byId("token").value.trim());
    refresh();
  } }, h("label", { for: "token" }, "This scheduler shows its data to those with a token only. It is kept until the browser tab is closed."),
  h("input", { id: "token", type: "password", autocomplete: "off", required: true }), h("button", {}, "Show"));
}

function status(text) {
  const place = byId("status");
  place.className = `status ${text.replace(" ", "-")}`;
  const said = paused && text === "live" ? "paused" : text;
  if (place.textContent !== said) place.textContent = said;
}

function partitions(overview) {
  if (!overview || overview.partitions.length < 2) return;
  const chosen = byId("partition");
  const wanted = overview.partitions.map((each) => each.key);
  if ([...chosen.options].map((option) => option.value).join("\n") !== wanted.join("\n")) {
    chosen.replaceChildren(...wanted.map((key) => h("option", { value: key }, key)));
  }
  if (document.activeElement !== chosen) chosen.value = overview.partition;
  byId("partitions").hidden = false;
}

function schedule() {
  clearTimeout(timer);
  if (!paused && !document.hidden) timer = setTimeout(refresh, PERIOD);
}

function pause(wanted) {
  paused = wanted;
  stopClock(paused);
  byId("pause").setAttribute("aria-pressed", String(paused));
  byId("pause").textContent = paused ? "Go on" : "Pause";
  status("live");
  if (paused) clearTimeout(timer);
  else refresh();
}

byId("pause").addEventListener("click", () => pause(!paused));
byId("partition").addEventListener("change", (event) => {
  location.assign(`./?${new URLSearchParams({ partition: event.target.value })}`);
});
document.addEventListener("visibilitychange", () => (document.hidden || paused ? clearTimeout(timer) : refresh()));
window.addEventListener("popstate", refresh);
const here = BELONGS[path] || path || "./";
for (const link of document.querySelectorAll("nav a")) {
  const name = link.getAttribute("href");
  if (name === here) link.setAttribute("aria-current", "page");
  if (params().partition) link.setAttribute("href", `${name}?${new URLSearchParams({ partition: params().partition })}`);
}
if (page.controls) show(byId("controls"), page.controls(context));
refresh();
