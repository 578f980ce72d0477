// A table that is sorted by its headings, and keeps its rows while they are the same. While somebody points at it, it
// holds still: new rows are counted, and wait.
import { fill, h, say } from "./dom.js";
import { grouped } from "./words.js";

/** Where a finger points, it does not stay. */
const POINTS = matchMedia("(hover: hover)");

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: Row, outcome: HTMLElement) => import("./dom.js").Child} cell `outcome`: where it is said what came of something done to the row
 * @property {(row: Row) => string | number} [sort] without it the column cannot be sorted by
 * @property {boolean} [isFigure] aligned at its end
 * @property {boolean} [isWide] takes what room is left
 * @property {boolean} [isActions] holds what can be done, and what came of it
 */

/**
 * @template Row
 * @typedef {object} Shape
 * @property {string} caption says what the table holds, to those who do not see it
 * @property {Column<Row>[]} columns the first one names the row
 * @property {(row: Row) => string} keyOf
 * @property {string} empty what is shown where there are no rows
 * @property {number} [most] how many rows are shown before one asks for more
 */

/**
 * @template Row
 */
export class Table {
  /** @param {Shape<Row>} shape */
  constructor(shape) {
    this.shape = shape;
    /** @type {Row[]} the newest */
    this.rows = [];
    /** @type {Row[]} as they are shown, and in that order */
    this.ordered = [];
    /** Whether the next rows are shown at once: somebody asked for them. */
    this.isAsked = false;
    /** Whether rows wait, or stand in an older order. */
    this.isHeld = false;
    /** @type {{ at: number, isDown: boolean } | null} */
    this.order = null;
    this.most = shape.most ?? 100;
    /** @type {Map<string, { element: HTMLElement, text: string }>} */
    this.known = new Map();
    /** @type {Map<string, HTMLElement>} */
    this.outcomes = new Map();
    this.heads = shape.columns.map((column, at) => this.#head(column, at));
    this.body = h("tbody", { role: "rowgroup" });
    this.more = h("button", { class: "quiet more", hidden: true, click: () => this.#showMore() });
    // Until the first answer nobody knows whether there are none.
    this.none = h("p", { class: "empty" }, "This is not known yet.");
    this.table = h(
      "table",
      { role: "table" },
      h("caption", {}, shape.caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...this.heads)),
      this.body,
    );
    this.fresh = h("button", { class: "quiet", click: () => this.#letIn() });
    this.waiting = h("div", { class: "fresh", hidden: true }, this.fresh);
    this.element = h(
      "div",
      { class: "table", tabindex: "-1", pointerleave: () => this.#leave(), focusout: (event) => this.#blur(event) },
      this.waiting,
      this.table,
      this.none,
      this.more,
    );
    this.table.hidden = true;
  }

  /** The next rows answer what somebody has just asked: they are shown at once. */
  release() {
    this.isAsked = true;
  }

  /**
   * @param {Row[]} rows in the order that they have while nobody sorts them
   * @param {string} [empty] what is shown where there are none, in place of the usual
   */
  show(rows, empty = this.shape.empty) {
    this.rows = rows;
    if (this.none.textContent !== empty) this.none.textContent = empty;
    const isStill = !this.isAsked && this.ordered.length > 0 && (this.#isPointedAt() || this.#isInUse());
    this.isAsked = false;
    if (isStill) this.#hold();
    else this.#show(this.#sorted());
  }

  #isPointedAt() {
    return POINTS.matches && this.element.matches(":hover");
  }

  /** Whether the keyboard is in it, or a menu of a row is open. */
  #isInUse() {
    return this.element.querySelector(":focus-visible, details[open]") !== null;
  }

  /** The rows stay where they are, with what is new about them. Those that are new wait. */
  #hold() {
    const { keyOf } = this.shape;
    const newest = new Map(this.rows.map((row) => [keyOf(row), row]));
    const known = new Set(this.ordered.map(keyOf));
    const fresh = this.rows.filter((row) => !known.has(keyOf(row))).length;
    // Where new rows push others off the end, these stay. Without new rows, those that are gone have been removed.
    const held = this.ordered.flatMap((row) => newest.get(keyOf(row)) ?? (fresh > 0 ? row : []));
    if (fresh > 0 && this.waiting.hidden) say("New rows wait. The button before the list shows them.");
    this.#show(held, fresh);
    this.isHeld = true;
  }

  /** Once nobody is at it any more, new rows need not wait. */
  #leave() {
    if (this.isHeld && !this.#isPointedAt() && !this.#isInUse()) this.#show(this.#sorted());
  }

  /** @param {Event} event */
  #blur(event) {
    const to = event instanceof FocusEvent ? event.relatedTarget : null;
    if (!(to instanceof Node && this.element.contains(to))) this.#leave();
  }

  #letIn() {
    this.#show(this.#sorted());
    // The button that had the focus is gone.
    this.element.focus({ preventScroll: true });
  }

  /**
   * @param {Row[]} rows in order
   * @param {number} [fresh] how many wait
   */
  #show(rows, fresh = 0) {
    this.ordered = rows;
    this.isHeld = false;
    this.waiting.hidden = fresh === 0;
    const count = `${grouped(fresh)} new`;
    if (this.fresh.textContent !== count) this.fresh.textContent = count;
    const shown = rows.slice(0, this.most);
    const focused = document.activeElement;
    const focus =
      focused instanceof HTMLElement ? { key: focused.closest("tr")?.dataset.key, name: focused.dataset.focus } : {};
    const keys = new Set(shown.map((row) => this.shape.keyOf(row)));
    for (const [key, { element }] of this.known)
      if (!keys.has(key)) {
        element.remove();
        this.known.delete(key);
      }
    /** @type {Element | null} */
    let last = null;
    for (const row of shown) {
      const element = this.#rowOf(row);
      /** @type {Element | null} */
      const place = last ? last.nextElementSibling : this.body.firstElementChild;
      if (place !== element) this.body.insertBefore(element, place);
      last = element;
    }
    this.table.hidden = rows.length === 0;
    this.none.hidden = rows.length > 0;
    this.more.hidden = rows.length <= this.most;
    this.more.textContent = `Show more: ${rows.length - shown.length} are left`;
    if (focus.key !== undefined && focus.name !== undefined && !document.contains(focused))
      /** @type {HTMLElement | null} */ (
        this.known.get(focus.key)?.element.querySelector(`[data-focus="${CSS.escape(focus.name)}"]`) ?? null
      )?.focus();
  }

  /** @param {string} key */
  #outcomeOf(key) {
    const known = this.outcomes.get(key) ?? h("div", { class: "outcome", role: "status" });
    this.outcomes.set(key, known);
    return known;
  }

  #showMore() {
    this.most += 200;
    this.#show(this.#sorted());
  }

  /** @param {Row} row */
  #rowOf(row) {
    const key = this.shape.keyOf(row);
    const text = JSON.stringify(row);
    const known = this.known.get(key);
    if (known?.text === text) return known.element;
    const element = known?.element ?? h("tr", { role: "row", "data-key": key });
    const openAt = [...element.querySelectorAll("details")].findIndex(({ open }) => open);
    fill(element, ...this.shape.columns.map((column, at) => this.#cell(column, row, at)));
    element.querySelectorAll("details")[openAt]?.setAttribute("open", "");
    this.known.set(key, { element, text });
    return element;
  }

  /**
   * @param {Column<Row>} column
   * @param {Row} row
   * @param {number} at
   */
  #cell(column, row, at) {
    const { title, cell, isActions = false } = column;
    const props = { class: classOf(column), "data-label": title };
    const outcome = this.#outcomeOf(this.shape.keyOf(row));
    return at === 0
      ? h("th", { ...props, scope: "row", role: "rowheader" }, cell(row, outcome), isActions && outcome)
      : h("td", { ...props, role: "cell" }, cell(row, outcome), isActions && outcome);
  }

  /**
   * @param {Column<Row>} column
   * @param {number} at
   */
  #head(column, at) {
    const props = { scope: "col", role: "columnheader", class: classOf(column) };
    if (!column.sort) return h("th", props, column.title);
    return h("th", props, h("button", { class: "sort", click: () => this.#sortBy(at) }, column.title));
  }

  /** @param {number} at */
  #sortBy(at) {
    this.order = this.order?.at !== at ? { at, isDown: false } : this.order.isDown ? null : { at, isDown: true };
    for (const [other, head] of this.heads.entries()) {
      head.removeAttribute("aria-sort");
      if (other === this.order?.at) head.setAttribute("aria-sort", this.order.isDown ? "descending" : "ascending");
    }
    this.#show(this.#sorted());
  }

  #sorted() {
    const by = this.order && this.shape.columns[this.order.at]?.sort;
    if (!by || !this.order) return this.rows;
    const sign = this.order.isDown ? -1 : 1;
    return this.rows.toSorted((one, other) => {
      const [a, b] = [by(one), by(other)];
      return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en"));
    });
  }
}

/**
 * @template Row
 * @param {Column<Row>} column
 */
function classOf({ isFigure, isWide, isActions }) {
  return [isFigure && "figure", isWide && "wide", isActions && "actions"].filter(Boolean).join(" ") || null;
}

/**
 * A field that narrows what is shown.
 * @param {{ id: string, label: string, placeholder?: string, change: (value: string) => void }} field
 */
export function searchField({ id, label, placeholder, change }) {
  const field = /** @type {HTMLInputElement} */ (
    h("input", {
      id,
      type: "search",
      placeholder,
      autocomplete: "off",
      spellcheck: "false",
      input: () => change(field.value.trim()),
    })
  );
  return h("div", { class: "field" }, h("label", { for: id }, label), field);
}

/**
 * A choice of one.
 * @param {{ id: string, label: string, options: [value: string, text: string][], change: (value: string) => void }} field
 */
export function choice({ id, label, options, change }) {
  const field = /** @type {HTMLSelectElement} */ (
    h(
      "select",
      { id, change: () => change(field.value) },
      ...options.map(([value, text]) => h("option", { value }, text)),
    )
  );
  return h("div", { class: "field" }, h("label", { for: id }, label), field);
}
