// Quantities and times as text. The server sends vcore in milli, memory in bytes and times in ns.

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

/** Two amounts of one type with the unit written once: `3 of 8 GiB`. */
export function of(type, used, whole) {
  const [left, right] = [amount(type, used), amount(type, whole)];
  const unit = right.split(" ")[1];
  if (used === 0) return `0 of ${right}`;
  if (type === "vcore") return `${left.split(" ")[0]} of ${right}`;
  return unit && left.endsWith(` ${unit}`) ? `${left.split(" ")[0]} of ${right}` : `${left} of ${right}`;
}

/** An amount with its type: `16 GiB memory`, `3 gpu`. The unit of vcore is enough: `2.5 cores`. */
export const called = (type, value) =>
  type === "vcore" ? amount(type, value) : isBytes(type) ? `${amount(type, value)} ${type}` : `${number(value)} ${type}`;

/** The types of several maps: vcore and memory first, then the others by name. */
export function types(...maps) {
  const names = new Set(maps.flatMap((map) => Object.keys(map || {})));
  const rank = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return [...names].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}

/** `4 cores, 8 GiB memory`; empty if every amount is zero. */
export const amounts = (map) =>
  types(map).filter((type) => map[type]).map((type) => called(type, map[type])).join(", ");

/** Pairs of a type and a quantity, separated by `between`, as one phrase. */
const phrase = (pairs, between) => amounts(Object.fromEntries(pairs.trim().split(/\s+/).filter(Boolean).map((pair) => {
  const end = pair.lastIndexOf(between);
  return [pair.slice(0, end), Number(pair.slice(end + 1))];
}))) || "nothing";

/** A text with its quantities in plain words. The scheduler's own texts have `memory=1024 vcore=100`, those of
 * events `map[memory:1024 vcore:100]`. */
export const plain = (text) => text
  .replace(/map\[((?:[^\s\]]+:\d+ ?)*)\]/g, (_, pairs) => phrase(pairs, ":"))
  .replace(/[A-Za-z][\w./-]*=\d+(?: [A-Za-z][\w./-]*=\d+)*/g, (pairs) => phrase(pairs, "="));

export const percent = (part, whole) => (whole > 0 ? (100 * part) / whole : part > 0 ? 100 : 0);

const clock = { server: 0, here: 0, stopped: false };

/** Set the clock to the server's current time (ns). */
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

/** The time that has passed since `ns`. */
export const age = (ns) => duration(now() * 1e6 - ns);

const two = (value) => String(value).padStart(2, "0");

/** `14:05:09`, with the date if it was not today. */
export function time(ns) {
  const then = new Date(ns / 1e6);
  const today = new Date(now());
  const hours = `${two(then.getHours())}:${two(then.getMinutes())}:${two(then.getSeconds())}`;
  if (then.toDateString() === today.toDateString()) return hours;
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())} ${hours}`;
}

export const exactly = (ns) => new Date(ns / 1e6).toISOString();
