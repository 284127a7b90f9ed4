// Quantities and times as people say them. vcore comes in milli, memory in bytes, times in ns.

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const FIRST = ["vcore", "memory"];

const grouped = new Intl.NumberFormat("en");

export const number = (value) => grouped.format(value);

/** Three digits are enough: 1.25, 12.5, 125, 1,250. */
function short(value) {
  const size = Math.abs(value);
  return grouped.format(Number(value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0)));
}

const isBytes = (type) => /memory|storage|hugepages/i.test(type);

/** `2.5 cores`, `16 GiB`, `3`. */
export function amount(type, value) {
  if (type === "vcore") return `${short(value / 1000)} ${value === 1000 ? "core" : "cores"}`;
  if (!isBytes(type)) return number(value);
  let at = 0;
  let size = value;
  while (Math.abs(size) >= 1024 && at < BINARY.length - 1) [size, at] = [size / 1024, at + 1];
  return `${short(size)} ${BINARY[at]}`;
}

/** The same for several of one type, the unit said once: `3 of 8 GiB`. */
export function of(type, used, whole) {
  const [left, right] = [amount(type, used), amount(type, whole)];
  const unit = right.split(" ")[1];
  if (used === 0) return `0 of ${right}`;
  if (type === "vcore") return `${left.split(" ")[0]} of ${right}`;
  return unit && left.endsWith(` ${unit}`) ? `${left.split(" ")[0]} of ${right}` : `${left} of ${right}`;
}

/** `vcore` is said by its unit. */
export const called = (type, value) =>
  type === "vcore" ? amount(type, value) : isBytes(type) ? `${amount(type, value)} ${type}` : `${number(value)} ${type}`;

/** vcore and memory first, then by name. */
export function types(...maps) {
  const names = new Set(maps.flatMap((map) => Object.keys(map || {})));
  const rank = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return [...names].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}

/** `4 cores, 8 GiB memory`, or nothing. */
export const amounts = (map) =>
  types(map).filter((type) => map[type]).map((type) => called(type, map[type])).join(", ");

/** Pairs of a type and a quantity as one phrase, whatever stands between the two. */
const phrase = (pairs, between) => amounts(Object.fromEntries(pairs.trim().split(/\s+/).filter(Boolean).map((pair) => {
  const place = pair.lastIndexOf(between);
  return [pair.slice(0, place), Number(pair.slice(place + 1))];
}))) || "nothing";

/** Texts of the scheduler have `memory=1024 vcore=100`, those of events `map[memory:1024 vcore:100]`. */
export const plain = (text) => text
  .replace(/map\[((?:[^\s\]]+:\d+ ?)*)\]/g, (_, pairs) => phrase(pairs, ":"))
  .replace(/[A-Za-z][\w./-]*=\d+(?: [A-Za-z][\w./-]*=\d+)*/g, (pairs) => phrase(pairs, "="));

export const percent = (part, whole) => (whole > 0 ? (100 * part) / whole : part > 0 ? 100 : 0);

const clock = { server: 0, here: 0, stopped: false };

/** What the server's clock said (ns) just now. */
export function setClock(ns) {
  clock.server = ns / 1e6;
  clock.here = performance.now();
}

export const stopClock = (stopped) => {
  if (stopped) setClock(now() * 1e6);
  clock.stopped = stopped;
};

/** The server's time in ms. */
export const now = () => clock.server + (clock.stopped ? 0 : performance.now() - clock.here);

/** `850 ms`, `12 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(ns) {
  const ms = Math.max(0, ns / 1e6);
  if (ms < 1) return "0 s";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const from = parts.findIndex(([size]) => seconds >= size);
  let rest = seconds;
  return parts.slice(from, from + 2).map(([size, unit]) => {
    const whole = Math.floor(rest / size);
    rest -= whole * size;
    return whole ? `${whole} ${unit}` : "";
  }).filter(Boolean).join(" ");
}

/** How long ago (ns). */
export const age = (ns) => duration(now() * 1e6 - ns);

const two = (value) => String(value).padStart(2, "0");

/** `14:05:09`, of another day with its date. */
export function time(ns) {
  const then = new Date(ns / 1e6);
  const today = new Date(now());
  const hours = `${two(then.getHours())}:${two(then.getMinutes())}:${two(then.getSeconds())}`;
  if (then.toDateString() === today.toDateString()) return hours;
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())} ${hours}`;
}

export const exactly = (ns) => new Date(ns / 1e6).toISOString();
