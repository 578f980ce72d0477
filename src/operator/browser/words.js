// How figures and moments are said.
import { h } from "./dom.js";

const UNITS = /** @type {const} */ ([
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
]);

/** How far this machine's clock is before the server's, in ms: `Date` of the newest answer says so. */
let ahead = 0;

/** @param {string | null} date */
export function learnClock(date) {
  const at = date === null ? Number.NaN : Date.parse(date);
  if (!Number.isNaN(at)) ahead = Math.abs(Date.now() - at) > 2_000 ? Date.now() - at : 0;
}

/** By the server's clock, epoch ms. */
export function now() {
  return Date.now() - ahead;
}

/**
 * `3 min`: the largest unit, rounded down.
 * @param {number} ms
 */
export function spanOf(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [size, name] = UNITS.find(([size]) => seconds >= size) ?? UNITS[3];
  return `${Math.floor(seconds / size)} ${name}`;
}

/** @param {number | string | Date} at */
export function agoOf(at) {
  const ms = now() - new Date(at).getTime();
  return ms < 1_500 ? "just now" : `${spanOf(ms)} ago`;
}

/** @param {number | string | Date} at */
export function inOf(at) {
  const ms = new Date(at).getTime() - now();
  return ms <= 0 ? "now" : `in ${spanOf(ms)}`;
}

/**
 * A moment, as long ago as it is by then; `keepTime` keeps it right.
 * @param {string | number | null} at
 * @param {string} never what is said where there is none
 */
export function moment(at, never = "never") {
  if (at === null) return h("span", { class: "muted" }, never);
  const iso = new Date(at).toISOString();
  return h("time", { datetime: iso, title: new Date(at).toLocaleString() }, agoOf(at));
}

/** Says anew how long ago each moment of the page is. */
export function keepTime() {
  for (const each of document.querySelectorAll("time[datetime]")) {
    const said = agoOf(each.getAttribute("datetime") ?? "");
    if (each.textContent !== said) each.textContent = said;
  }
}

/** @param {number} value */
export function grouped(value) {
  return value.toLocaleString("en");
}

/**
 * `1 token`, `2 tokens`.
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function counted(count, one, many = `${one}s`) {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/**
 * @param {number | Date} at
 * @returns {string} hours and minutes of this machine's time zone
 */
export function clock(at) {
  return new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

/**
 * A state, in words and in a colour. The colour adds nothing to the word.
 * @param {"good" | "busy" | "warn" | "bad" | "off"} tone
 * @param {string} word
 */
export function badge(tone, word) {
  return h("span", { class: `badge ${tone}` }, word);
}
