// The frame around every page: it chooses the page, reads its data every two seconds, and shows errors. See D81.

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
// the list that a page of one object belongs to
const PARENT = { queue: "./", application: "applications", node: "nodes" };
const PERIOD = 2000; // milliseconds between two reads
const PATIENCE = 15000; // milliseconds until a read without an answer fails

const byId = (id) => document.getElementById(id);
const content = byId("content");
const path = location.pathname.split("/").pop();
const page = PAGES[path] || cluster;
const known = new Map(); // the latest data and its tag, by address
let paused = false;
let timer = 0;
let round = 0;
let misses = 0; // rounds in a row in which the object of the page was not found
let stopped = false; // the page does not read until the user asks for it
const MISSES_TO_STOP = 3;
const MOST_KNOWN = 40; // addresses in `known`

const params = () => Object.fromEntries(new URLSearchParams(location.search));

/** Change the parameters. They are in the address of the page, so the user can keep and send it. */
function set(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === undefined) query.delete(name);
    else query.set(name, value);
  }
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
  restart();
}

/** Read now, and go on reading if the page had stopped. */
function restart() {
  stopped = false;
  misses = 0;
  byId("pause").disabled = false;
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
  if (!answer.ok) throw Object.assign(new Error(data.error || data.message || answer.statusText), { status: answer.status, token });
  if (known.size > MOST_KNOWN) known.clear();
  known.set(address, { tag, data });
  return data;
}

/** Read the optional object, such as an ask. If it is gone, for example allocated, read `otherwise`. */
async function readOptional(name, asked) {
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
    const [first, ...rest] = await Promise.allSettled([
      page.alone ? null : read("overview", { partition: params().partition }),
      ...names.map((name) => readOptional(page.reads?.[name] || name, asked[name])),
    ]);
    if (mine !== round) return;
    if (first.status === "rejected") throw first.reason;
    const overview = first.value;
    // before a resource manager registers there is no data, and that is not an error
    const empty = overview && overview.partitions.length === 0;
    const wrong = rest.find((each) => each.status === "rejected");
    if (wrong && !empty) throw Object.assign(wrong.reason, { missing: wrong.reason.status === 404 });
    const found = rest.map((each) => each.value);
    misses = 0;
    last = { overview, ...Object.fromEntries(names.map((name, index) => [name, found[index]])) };
    byId("banner").hidden = true;
    status("live");
    partitions(overview);
    const firstDraw = content.getAttribute("aria-busy") === "true";
    draw();
    if (firstDraw) scrollToCurrentState();
  } catch (error) {
    if (mine !== round) return;
    failed(error);
  }
  content.setAttribute("aria-busy", "false");
  schedule();
}

/** Scroll a picture that is wider than the window to the current state. */
function scrollToCurrentState() {
  for (const state of content.querySelectorAll(".picture .here")) {
    const frame = state.closest(".picture");
    const [box, around] = [state.getBoundingClientRect(), frame.getBoundingClientRect()];
    frame.scrollLeft += box.left + box.width / 2 - around.left - around.width / 2;
  }
}

let last = null; // the data that the page shows
function draw() {
  if (!last) return;
  if (last.overview && last.overview.partitions.length === 0 && !page.alone) {
    show(content, h("p", { class: "empty" }, "No resource manager has registered yet. Its cluster appears here as soon as one registers."));
    return;
  }
  show(content, page.draw(last, context));
  document.title = `${page.title(params())} · Quadriga`;
}

function failed(error) {
  const banner = byId("banner");
  if (error.status === 401) {
    stop("no access");
    sessionStorage.removeItem("token"); // a wrong token must not be sent again
    banner.hidden = false;
    show(banner, tokenForm(Boolean(error.token)));
    if (!last) show(content, h("p", { class: "empty" }, "The page needs a token to show data."));
    byId("token").focus();
    return;
  }
  if (error.status === 404 || error.status === 400) {
    misses += 1;
    if (error.status === 400 || (error.missing && misses >= MISSES_TO_STOP)) stop("stopped");
    else status("live");
    banner.hidden = true;
    const gone = last !== null || content.querySelector(".gone.was");
    last = null;
    show(content, h("div", { class: `empty gone ${gone ? "was" : ""}` }, h("h1", {}, page.title(params())), h("p", {}, `${error.message}.`),
      h("p", {}, error.status === 400 ? "The address has a parameter that is not valid."
        : gone ? "It was here until now: it has ended, and the scheduler has forgotten it."
          : "It may have ended, and the scheduler may have forgotten it, or the address is wrong."),
      stopped ? h("p", {}, "The page has stopped asking for it. ", h("button", { type: "button", onclick: restart }, "Ask again")) : null,
      h("p", {}, h("a", { href: PARENT[path] || "./" }, "Back"))));
    return;
  }
  const text = error.status ? `The scheduler cannot answer: ${error.message}.` : "The scheduler is away: it does not answer.";
  status("away");
  show(banner, [h("strong", {}, text), last ? " The page shows the latest known data and tries again every few seconds." : " The page tries again every few seconds."]);
  banner.hidden = false;
}

/** Stop reading until the user asks for it (`restart`). */
function stop(text) {
  stopped = true;
  clearTimeout(timer);
  byId("pause").disabled = true;
  status(text);
}

function tokenForm(wrong) {
  return h("form", { class: "token", onsubmit: (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", byId("token").value.trim());
    byId("token").value = "";
    restart();
  } }, wrong ? h("strong", { id: "wrong" }, "This token is wrong.") : null,
  h("label", { for: "token" }, "This scheduler shows its data to users with a token only. The browser keeps the token until you close this tab."),
  h("input", { id: "token", type: "password", autocomplete: "off", required: true, "aria-describedby": wrong ? "wrong" : null, "aria-invalid": wrong ? "true" : null }), h("button", {}, "Show"));
}

function status(text) {
  const element = byId("status");
  element.className = `status ${text.replace(" ", "-")}`;
  const shown = paused && text === "live" ? "paused" : text;
  if (element.textContent !== shown) element.textContent = shown;
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
  if (!paused && !stopped && !document.hidden) timer = setTimeout(refresh, PERIOD);
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
document.addEventListener("visibilitychange", () => (document.hidden || paused || stopped ? clearTimeout(timer) : refresh()));
window.addEventListener("popstate", restart);
const here = PARENT[path] || path || "./";
for (const link of document.querySelectorAll("nav a")) {
  const name = link.getAttribute("href");
  if (name === here) link.setAttribute("aria-current", "page");
  if (params().partition) link.setAttribute("href", `${name}?${new URLSearchParams({ partition: params().partition })}`);
}
if (page.controls) show(byId("controls"), page.controls(context));
refresh();
