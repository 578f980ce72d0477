// The page: its views, which of them is shown, and what keeps it as things are.
import { AskError, load } from "./api.js";
import * as audits from "./audits.js";
import * as deliveries from "./deliveries.js";
import * as way from "./delivery-way.js";
import * as doctor from "./doctor.js";
import { fill, h } from "./dom.js";
import * as fleet from "./fleet.js";
import { showHealth } from "./health.js";
import * as home from "./home.js";
import * as hooks from "./hooks.js";
import * as queues from "./queues.js";
import * as quota from "./quota.js";
import * as targets from "./targets.js";
import * as tokens from "./tokens.js";
import { clock, keepTime, now } from "./words.js";
import * as writes from "./writes.js";

/**
 * @typedef {object} View
 * @property {HTMLElement} element
 * @property {() => readonly [view: string, asked: Record<string, string>] | null} asked null: it asks by itself
 * @property {(data: any) => void} show
 * @property {() => void} [opened]
 */

const VIEWS = /** @type {const} */ ({
  home: ["Home", home],
  fleet: ["Repositories", fleet],
  quota: ["Quota", quota],
  deliveries: ["Deliveries", deliveries],
  delivery: ["Delivery", way],
  hooks: ["Hooks", hooks],
  targets: ["Targets", targets],
  audits: ["Audits", audits],
  queues: ["Processes", queues],
  tokens: ["Tokens", tokens],
  writes: ["Writes", writes],
  doctor: ["Doctor", doctor],
});
/** @typedef {keyof typeof VIEWS} Name */

const EVERY_MS = 2_000;
/** Where much is told, or the last question failed. */
const SELDOM_MS = 10_000;
const MANY = 300;
const TIME_MS = 1_000;

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const live = /** @type {HTMLElement} */ (document.getElementById("live"));
const tabs = /** @type {HTMLElement} */ (document.getElementById("tabs"));

/** @type {Map<Name, View>} */
const made = new Map();
const page = { refresh: () => void turn() };
/** @type {Name} */
let shown = "home";
/** @type {unknown} */
let last = null;
/** @type {ReturnType<typeof setTimeout>} */
let next;
let turns = 0;

/** A view that is reached from another one, and has no tab of its own. @type {Partial<Record<Name, Name>>} */
const BELOW = { delivery: "deliveries" };

/** What stands behind the name says what of it is shown. @returns {Name} */
function named() {
  const [name = ""] = location.hash.slice(1).split("/");
  return Object.hasOwn(VIEWS, name) ? /** @type {Name} */ (name) : "home";
}

/** @param {{ isFirst: boolean }} how */
function open({ isFirst }) {
  shown = named();
  const [title, { create }] = VIEWS[shown];
  /** @type {View} */
  const view = made.get(shown) ?? create(page);
  made.set(shown, view);
  for (const link of tabs.querySelectorAll("a")) {
    if (link.getAttribute("href") === `#${BELOW[shown] ?? shown}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${title} – Tain`;
  fill(main, view.element);
  last = null;
  tabs.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (!isFirst) view.element.querySelector("h1")?.focus({ preventScroll: true });
  if (!isFirst) window.scrollTo(0, 0);
  view.opened?.();
  void turn();
}

/** Asks once, shows the answer, and comes again. A question that another one has overtaken shows nothing. */
async function turn() {
  clearTimeout(next);
  const own = ++turns;
  const view = made.get(shown);
  const asked = view?.asked() ?? null;
  let waitMs = EVERY_MS;
  try {
    const data = await load(asked?.[0] ?? "home", asked?.[1] ?? {});
    if (own !== turns) return;
    showHealth(data.health);
    if (asked && data !== last) view?.show(data);
    last = data;
    if ((data.repositories ?? data.hooks ?? []).length > MANY) waitMs = SELDOM_MS;
    tell(true, `Live, ${clock(now())}`);
  } catch (error) {
    if (own !== turns) return;
    if (!(error instanceof AskError)) throw error;
    if (error.health) showHealth(error.health);
    tell(false, error.message);
    waitMs = SELDOM_MS;
  }
  if (!document.hidden) next = setTimeout(turn, waitMs);
}

/**
 * @param {boolean} isWell
 * @param {string} text
 */
function tell(isWell, text) {
  live.className = isWell ? "live muted" : "live trouble";
  // A clock that is read aloud every minute helps nobody; trouble does.
  if (isWell) live.removeAttribute("role");
  else live.setAttribute("role", "alert");
  if (live.textContent !== text) live.textContent = text;
}

/** A menu closes when one leaves it, or says so. @param {Event} event */
function closeMenus(event) {
  if (event instanceof KeyboardEvent && event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (event.type !== "keydown" && event.target instanceof Node && menu.contains(event.target)) continue;
    menu.removeAttribute("open");
    if (event.type === "keydown") menu.querySelector("summary")?.focus();
  }
}

fill(
  tabs,
  ...Object.entries(VIEWS)
    .filter(([name]) => !Object.hasOwn(BELOW, name))
    .map(([name, [title]]) => h("li", {}, h("a", { href: `#${name}` }, title))),
);
document.addEventListener("click", closeMenus);
document.addEventListener("keydown", closeMenus);
window.addEventListener("hashchange", () => open({ isFirst: false }));
document.addEventListener("visibilitychange", () => void (document.hidden || turn()));
setInterval(keepTime, TIME_MS);
open({ isFirst: true });
