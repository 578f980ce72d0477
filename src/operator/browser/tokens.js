// Tain's own tokens, which callers of its API show.
import { button, run } from "./commands.js";
import { ask, h } from "./dom.js";
import { Table } from "./table.js";
import { agoOf, badge, counted, grouped, moment, now, spanOf } from "./words.js";

export function create(/** @type {{ refresh: () => void }} */ page) {
  /** @type {Table<any>} */
  const table = new Table({
    caption: "The tokens that were made, and when each was last used",
    keyOf: (/** @type {any} */ { id }) => id,
    empty: "There is no token yet. One is made below.",
    columns: [
      ...COLUMNS,
      { title: "What can be done", isActions: true, cell: (row, outcome) => actions(row, outcome, page) },
    ],
  });

  const [all, outcome] = revokeAll(page);
  return {
    element: h(
      "div",
      {},
      h("h1", { tabindex: "-1" }, "Tokens"),
      h("p", { class: "muted" }, "Only a token's hash is kept: it is shown once, when it is made."),
      table.element,
      h("div", { class: "end" }, all, outcome),
      form(page),
    ),
    asked: () => /** @type {const} */ (["tokens", {}]),
    /** @param {any} data */
    show({ tokens }) {
      table.show(tokens);
      all.hidden = tokens.every((/** @type {any} */ { revokedAt }) => revokedAt !== null);
    },
  };
}

/** @type {import("./table.js").Column<any>[]} */
const COLUMNS = [
  {
    title: "Token",
    cell: ({ id, name }) => h("span", { class: "name" }, name === null ? "" : `${name} `, h("code", {}, id)),
    sort: ({ id, name }) => name ?? id,
  },
  { title: "Answers as", cell: ({ login, userId }) => login ?? `user ${userId}`, sort: ({ login }) => login ?? "" },
  { title: "May", isWide: true, cell: mayOf },
  { title: "Repositories", isWide: true, cell: ({ repositories }) => repositories?.join(", ") ?? "all" },
  {
    title: "Limit",
    isFigure: true,
    cell: ({ hourlyLimit }) =>
      hourlyLimit === null ? "its user's" : hourlyLimit === 0 ? "none" : `${grouped(hourlyLimit)} an hour`,
  },
  {
    title: "Last used",
    cell: ({ lastUsedAt }) => moment(lastUsedAt),
    sort: ({ lastUsedAt }) => (lastUsedAt ? -Date.parse(lastUsedAt) : 0),
  },
  { title: "State", cell: stateOf, sort: (row) => stateOf(row).textContent ?? "" },
];

/** @param {any} row @param {HTMLElement} outcome @param {{ refresh: () => void }} page */
function actions(row, outcome, page) {
  if (row.revokedAt !== null) return null;
  return button(
    "Revoke",
    async (event) => {
      const pressed = event.currentTarget;
      const used = row.lastUsedAt === null ? "It was never used." : `It was last used ${agoOf(row.lastUsedAt)}.`;
      if (
        !(await ask({
          title: `Revoke token ${row.name ?? row.id}?`,
          text: `${used} Every process refuses it within ten seconds, for good.`,
          yes: "Revoke it",
        }))
      )
        return;
      await run(
        { command: "token revoke", words: [row.id] },
        { button: pressed, outcome: outcome, ends: () => "Revoked." },
      );
      page.refresh();
    },
    { kind: "danger", label: `Revoke token ${row.name ?? row.id}` },
  );
}

/** @param {{ refresh: () => void }} page */
function revokeAll(page) {
  const outcome = h("div", { class: "outcome", role: "status" });
  const all = button(
    "Revoke all",
    async (event) => {
      const pressed = event.currentTarget;
      const text =
        "Every process refuses each of them within ten seconds, for good. The next npm start makes itself a new one.";
      if (!(await ask({ title: "Revoke all tokens?", text, yes: "Revoke all" }))) return;
      const ends = (/** @type {import("./commands.js").Told} */ { document }) =>
        `${counted(document.revoked.length, "token")} revoked.`;
      await run({ command: "token revoke", flags: ["all"] }, { button: pressed, outcome, ends });
      page.refresh();
    },
    { kind: "danger" },
  );
  return /** @type {const} */ ([all, outcome]);
}

/** @param {any} token */
function mayOf({ permissions, canWrite }) {
  if (permissions === null) return canWrite ? "reads and writes" : "reads";
  return permissions.length === 0 ? "metadata:read" : permissions.join(", ");
}

/** @param {any} token */
function stateOf({ revokedAt, expiresAt }) {
  if (revokedAt !== null) return badge("off", `revoked ${agoOf(revokedAt)}`);
  if (expiresAt === null) return badge("good", "valid");
  const leftMs = Date.parse(expiresAt) - now();
  return leftMs > 0 ? badge("good", `valid for ${spanOf(leftMs)}`) : badge("off", "expired");
}

/** @param {{ refresh: () => void }} page */
function form(page) {
  const outcome = h("div", { class: "outcome", role: "status" });
  const input = (/** @type {string} */ name, /** @type {string} */ placeholder) =>
    /** @type {HTMLInputElement} */ (
      h("input", { id: `token-${name}`, placeholder, autocomplete: "off", spellcheck: "false" })
    );
  const fields = /** @type {const} */ ([
    ["name", "Name", "none", "Such as ci-bot"],
    ["login", "Answers as", "upstream's own user", "A login that is mirrored"],
    ["repos", "Repositories", "all", "owner/name,owner/*"],
    ["permissions", "Permissions", "all kinds", "issues:write,pull_requests:read"],
    ["limit", "Limit", "its user's", "Requests an hour, or off"],
    ["expires", "Expires", "never", "30d, or 2027-01-31"],
  ]);
  const inputs = fields.map(([name, label, placeholder, hint]) => ({
    name,
    label,
    hint,
    of: input(name, placeholder),
  }));
  const write = /** @type {HTMLInputElement} */ (h("input", { id: "token-write", type: "checkbox" }));
  const submit = h("button", { class: "primary" }, "Make the token");
  return h(
    "form",
    {
      class: "card form",
      submit: async (event) => {
        event.preventDefault();
        const given = inputs.map(({ name, of }) => [name, of.value.trim()]);
        const values = Object.fromEntries(given.filter(([, value]) => value !== ""));
        const told = await run(
          { command: "token create", values, flags: write.checked ? ["write"] : [] },
          { button: submit, outcome, begins: "Making it …", ends: made },
        );
        if (told) page.refresh();
      },
    },
    h("h2", {}, "Make a token"),
    h(
      "div",
      { class: "fields" },
      ...inputs.map(({ name, label, hint, of }) =>
        h(
          "div",
          { class: "field" },
          h("label", { for: `token-${name}` }, label),
          of,
          h("span", { class: "muted hint" }, hint),
        ),
      ),
    ),
    h(
      "p",
      { class: "check" },
      write,
      h(
        "label",
        { for: "token-write" },
        "May write everything, at upstream too. With permissions, these say what it may write.",
      ),
    ),
    submit,
    outcome,
  );
}

/** @param {import("./commands.js").Told} told */
function made({ document }) {
  return h(
    "span",
    {},
    `It answers as ${document.login}, and is shown this once: `,
    h("code", { class: "secret" }, document.token),
  );
}
