// Whether all is well, on every view: the worst trouble in one line, and all of them when one asks.
import { inWords } from "./commands.js";
import { fill, h } from "./dom.js";

/** @typedef {{ name: string, level: "problem" | "warning", says: string, since: string | null, todo: string }} Trouble */
/** @typedef {{ state: "well" | "warning" | "problem" | "unknown", line: string, troubles: Trouble[], unknown: string[] }} Health */

let shown = "";

/** @param {Health} health */
export function showHealth(health) {
  const place = document.getElementById("health");
  const text = JSON.stringify(health);
  if (!place || text === shown) return;
  shown = text;
  const { state, line, troubles } = health;
  const isOpen = place.querySelector("details")?.open ?? false;
  place.className = `health ${state}`;
  if (troubles.length < 2) return fill(place, h("p", {}, inWords(line)));
  fill(
    place,
    h(
      "details",
      { open: isOpen },
      h("summary", {}, inWords(line)),
      h("ul", {}, ...troubles.map(({ says, todo }) => h("li", {}, inWords(says), ". ", inWords(todo)))),
    ),
  );
}
