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
let misses = 0; // rounds in a row in which what the page is about was not there
let over = false; // it has stopped asking, until somebody wants it to
const ENOUGH = 3;

const params = () => Object.fromEntries(new URLSearchParams(location.search));

/** Ask for something else: the address says what is shown, so that it can be kept and sent. */
function set(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === undefined) query.delete(name);
    else query.set(name, value);
  }
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
  ask();
}

/** Begin anew, also after the page has stopped asking. */
function ask() {
  over = false;
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
    const [first, ...rest] = await Promise.allSettled([
      page.alone ? null : read("overview", { partition: params().partition }),
      ...names.map((name) => one(page.reads?.[name] || name, asked[name])),
    ]);
    if (mine !== round) return;
    if (first.status === "rejected") throw first.reason;
    const overview = first.value;
    // before a resource manager has registered nothing is there, and everything may come
    const empty = overview && overview.partitions.length === 0;
    const wrong = rest.find((each) => each.status === "rejected");
    if (wrong && !empty) throw Object.assign(wrong.reason, { missing: wrong.reason.status === 404 });
    const found = rest.map((each) => each.value);
    misses = 0;
    last = { overview, ...Object.fromEntries(names.map((name, place) => [name, found[place]])) };
    byId("banner").hidden = true;
    status("live");
    partitions(overview);
    const fresh = content.getAttribute("aria-busy") === "true";
    draw();
    if (fresh) bringIntoSight();
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
    stop("no access");
    sessionStorage.removeItem("token"); // a wrong one would only be sent again
    banner.hidden = false;
    show(banner, tokenForm(Boolean(error.token)));
    if (!last) show(content, h("p", { class: "empty" }, "Nothing is shown without a token."));
    byId("token").focus();
    return;
  }
  if (error.status === 404 || error.status === 400) {
    misses += 1;
    if (error.status === 400 || (error.missing && misses >= ENOUGH)) stop("stopped");
    else status("live");
    banner.hidden = true;
    const gone = last !== null || content.querySelector(".gone.was");
    last = null;
    show(content, h("div", { class: `empty gone ${gone ? "was" : ""}` }, h("h1", {}, page.title(params())), h("p", {}, `${error.message}.`),
      h("p", {}, error.status === 400 ? "The address asks for what there cannot be."
        : gone ? "It was here until now: it has ended, and the scheduler has forgotten it."
          : "It may have ended and been forgotten, or the address is wrong."),
      over ? h("p", {}, "This page does not ask for it any more. ", h("button", { type: "button", onclick: ask }, "Ask again")) : null,
      h("p", {}, h("a", { href: BELONGS[path] || "./" }, "Back"))));
    return;
  }
  const text = error.status ? `The scheduler cannot answer: ${error.message}.` : "The scheduler is away: no answer.";
  status("away");
  show(banner, [h("strong", {}, text), last ? " What is shown is the last that it said. Trying again every few seconds." : " Trying again every few seconds."]);
  banner.hidden = false;
}

/** Nothing is asked for until somebody wants it (`ask`). */
function stop(text) {
  over = true;
  clearTimeout(timer);
  byId("pause").disabled = true;
  status(text);
}

function tokenForm(wrong) {
  return h("form", { class: "token", onsubmit: (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", byId("token").value.trim());
    byId("token").value = "";
    ask();
  } }, wrong ? h("strong", { id: "wrong" }, "This token is wrong.") : null,
  h("label", { for: "token" }, "This scheduler shows its data to those with a token only. It is kept until the browser tab is closed."),
  h("input", { id: "token", type: "password", autocomplete: "off", required: true, "aria-describedby": wrong ? "wrong" : null, "aria-invalid": wrong ? "true" : null }), h("button", {}, "Show"));
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
  if (!paused && !over && !document.hidden) timer = setTimeout(refresh, PERIOD);
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
document.addEventListener("visibilitychange", () => (document.hidden || paused || over ? clearTimeout(timer) : refresh()));
window.addEventListener("popstate", ask);
const here = BELONGS[path] || path || "./";
for (const link of document.querySelectorAll("nav a")) {
  const name = link.getAttribute("href");
  if (name === here) link.setAttribute("aria-current", "page");
  if (params().partition) link.setAttribute("href", `${name}?${new URLSearchParams({ partition: params().partition })}`);
}
if (page.controls) show(byId("controls"), page.controls(context));
refresh();
