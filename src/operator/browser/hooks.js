// Our webhooks at upstream: what is wrong with each, in words, and the repair.
import { button, inWords, menu, run } from "./commands.js";
import { ask, h } from "./dom.js";
import { searchField, Table } from "./table.js";
import { badge, counted, grouped, moment } from "./words.js";

/** @typedef {{ level: "problem" | "warning", says: string, todo: string }} Finding */
/** @typedef {{ repository: string, hookId: number | null, checkedUntil: string | null, missed: number, deliveredAt: string | null, problem: string | null, findings: Finding[] | null }} Hook */

/** How commands name the webhook of a GitHub App. */
const APP = "app";
/** @type {Finding} */
const DELETED = { level: "problem", says: "It was deleted at upstream", todo: "`Repair` registers a new one" };
const UNKNOWN = { hookId: null, checkedUntil: null, missed: 0, deliveredAt: null, problem: null };

export function create() {
  return new HooksView();
}

class HooksView {
  constructor() {
    /** What checks found, by repository. It is as old as this page. @type {Map<string, Finding[]>} */
    this.found = new Map();
    /** Null: not told yet. @type {Omit<Hook, "findings">[] | null} */
    this.hooks = null;
    this.search = "";
    /** @type {Table<any>} */
    this.table = new Table({
      caption: "Our webhook of each mirrored repository, and what is wrong with it",
      keyOf: (/** @type {Hook} */ { repository }) => repository,
      empty: "Nothing is mirrored yet, so there are no hooks.",
      columns: [
        ...COLUMNS,
        { title: "What can be done", isActions: true, cell: (row, outcome) => this.#actions(row, outcome) },
      ],
    });
    this.element = h(
      "div",
      {},
      h("h1", { tabindex: "-1" }, "Hooks"),
      h(
        "p",
        { class: "muted" },
        "Upstream's webhooks make changes arrive within a second. A check asks upstream, and costs about two requests for each hook.",
      ),
      this.#bar(),
      this.table.element,
    );
  }

  asked() {
    return /** @type {const} */ (["hooks", {}]);
  }

  /** @param {any} data */
  show(data) {
    this.hooks = data.hooks;
    this.#showFound();
  }

  #showFound() {
    if (this.hooks === null) return;
    // The App's own webhook is no repository's: a check tells of it.
    const app = this.found.has(APP) ? [{ ...UNKNOWN, repository: APP }] : [];
    this.table.show(
      [...app, ...this.hooks]
        .filter(({ repository }) => repository.toLowerCase().includes(this.search))
        .map((hook) => ({ ...hook, findings: this.found.get(hook.repository) ?? null })),
    );
  }

  #bar() {
    const outcome = h("div", { class: "outcome", role: "status" });
    return h(
      "div",
      { class: "bar" },
      searchField({
        id: "hooks-search",
        label: "Search",
        placeholder: "owner/name",
        change: (value) => {
          this.search = value.toLowerCase();
          this.table.release();
          this.#showFound();
        },
      }),
      h(
        "div",
        { class: "end" },
        h(
          "span",
          { class: "buttons" },
          button("Check all", (event) => this.#check([], event.currentTarget, outcome), { kind: "primary" }),
          button("Register all", (event) => this.#register([], event.currentTarget, outcome)),
          button("Change all secrets", (event) => this.#rotate([], event.currentTarget, outcome)),
        ),
        outcome,
      ),
    );
  }

  /** @param {Hook} row @param {HTMLElement} outcome */
  #actions({ repository }, outcome) {
    const words = [repository];
    const all = button("All hooks at upstream", (event) =>
      run(
        { command: "hooks list", words },
        { button: event.target, outcome, begins: "Asking upstream …", ends: listed },
      ),
    );
    const secret = button("Change its secret", (event) => this.#rotate(words, event.target, outcome));
    const remove = button("Delete it at upstream", (event) => this.#remove(repository, event.target, outcome), {
      kind: "danger",
    });
    return h(
      "span",
      { class: "buttons" },
      button("Check", (event) => this.#check(words, event.currentTarget, outcome), {
        label: `Check the hook of ${repository}`,
      }),
      button("Repair", (event) => this.#register(words, event.currentTarget, outcome), {
        label: `Repair the hook of ${repository}`,
      }),
      menu(`the hook of ${repository}`, ...(repository === APP ? [all, secret] : [all, secret, remove])),
    );
  }

  /**
   * @param {string[]} words none: all
   * @param {EventTarget | null} pressed
   * @param {HTMLElement} outcome
   */
  async #check(words, pressed, outcome) {
    const told = await run(
      { command: "hooks check", words },
      { button: pressed, outcome, begins: "Asking upstream …", ends: checked },
    );
    for (const one of told?.document.repositories ?? []) this.found.set(one.repository, one.findings);
    this.#showFound();
  }

  /**
   * @param {string[]} words
   * @param {EventTarget | null} pressed
   * @param {HTMLElement} outcome
   */
  async #register(words, pressed, outcome) {
    const told = await run(
      { command: "hooks register", words },
      { button: pressed, outcome, begins: "Registering it, and waiting for its ping …", ends: registered },
    );
    this.#keep(told?.document.registered ?? []);
  }

  /**
   * @param {string[]} words
   * @param {EventTarget | null} pressed
   * @param {HTMLElement} outcome
   */
  async #rotate(words, pressed, outcome) {
    const told = await run(
      { command: "hooks rotate", words },
      { button: pressed, outcome, begins: "Changing the secret, and waiting for the ping …" },
    );
    this.#keep(told?.document.rotated ?? []);
  }

  /** @param {{ repository: string, finding: Finding | null }[]} changed */
  #keep(changed) {
    for (const { repository, finding } of changed) this.found.set(repository, finding ? [finding] : []);
    this.#showFound();
  }

  /**
   * @param {string} repository
   * @param {EventTarget | null} pressed
   * @param {HTMLElement} outcome
   */
  async #remove(repository, pressed, outcome) {
    const text = "Changes are found by catch-up only, minutes later, until it is registered again.";
    if (!(await ask({ title: `Delete the hook of ${repository}?`, text, yes: "Delete it" }))) return;
    const told = await run({ command: "hooks remove", words: [repository] }, { button: pressed, outcome });
    for (const one of told?.document.removed ?? []) if (one.problem === null) this.found.set(one.repository, [DELETED]);
    this.#showFound();
  }
}

/** @type {import("./table.js").Column<any>[]} */
const COLUMNS = [
  {
    title: "Repository",
    cell: ({ repository }) => h("span", { class: "name" }, repository),
    sort: ({ repository }) => repository.toLowerCase(),
  },
  { title: "State", cell: stateOf, sort: (row) => stateOf(row).textContent ?? "" },
  {
    title: "Last delivery",
    cell: ({ deliveredAt }) => moment(deliveredAt, "none yet"),
    sort: ({ deliveredAt }) => (deliveredAt ? -Date.parse(deliveredAt) : 0),
  },
  { title: "Missed", isFigure: true, cell: ({ missed }) => grouped(missed), sort: ({ missed }) => missed },
  { title: "What is wrong", isWide: true, cell: wrongOf },
];

/** @param {Hook} hook */
function stateOf({ findings, problem, hookId, deliveredAt }) {
  if (findings?.some(({ level }) => level === "problem")) return badge("bad", "broken");
  if (findings && findings.length > 0) return badge("warn", "in doubt");
  if (findings) return badge("good", "well");
  if (problem !== null) return badge("bad", "cannot be checked");
  if (hookId !== null || deliveredAt !== null) return badge("good", "delivers");
  return badge("off", "not known yet");
}

/** @param {Hook} hook */
function wrongOf({ findings, problem }) {
  const said = findings ?? (problem === null ? [] : [{ level: "problem", says: problem, todo: "" }]);
  if (said.length === 0) return "";
  return h(
    "ul",
    { class: "findings" },
    ...said.map(({ level, says, todo }) =>
      h(
        "li",
        {},
        h("span", { class: level === "problem" ? "trouble" : "doubt" }, inWords(says)),
        todo && h("span", { class: "muted" }, ". ", inWords(todo)),
      ),
    ),
  );
}

/** @param {import("./commands.js").Told} told */
function checked({ document }) {
  const broken = document.repositories.filter((/** @type {any} */ { findings }) =>
    findings.some((/** @type {Finding} */ { level }) => level === "problem"),
  );
  const of = counted(document.repositories.length, "hook");
  return broken.length === 0
    ? `Nothing is wrong with ${of}.`
    : `Something is wrong with ${grouped(broken.length)} of ${of}.`;
}

/** @param {import("./commands.js").Told} told */
function registered({ document, code }) {
  if (code === 0)
    return document.registered.length === 0 ? "Nothing is mirrored yet." : "Registered, and the ping arrived.";
  const [first] = document.registered.filter((/** @type {any} */ { finding }) => finding);
  return first ? inWords(`${first.repository}: ${first.finding.says}`) : "No ping arrived.";
}

/** @param {import("./commands.js").Told} told */
function listed({ document: { repositories } }) {
  const [{ hooks, problem }] = repositories;
  if (problem !== null) return inWords(problem);
  if (hooks.length === 0) return "Upstream has no hook there.";
  return h(
    "ul",
    { class: "findings" },
    ...hooks.map((/** @type {any} */ { id, isOurs, url, isActive, events, lastResponse }) =>
      h(
        "li",
        {},
        h("code", {}, String(id)),
        ` ${isOurs ? "ours" : "another's"}, ${isActive ? "on" : "off"}, last answer ${lastResponse.code ?? lastResponse.status}, to `,
        h("span", { class: "url" }, url),
        h("span", { class: "muted" }, ` ${events.join(", ")}`),
      ),
    ),
  );
}
