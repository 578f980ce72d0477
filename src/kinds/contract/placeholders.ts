import type { Json } from "../../json.ts";

/** Kinds of shared resource: user, repository, label, milestone. */
export type SharedKind = "u" | "r" | "l" | "m";

/**
 * The control characters that placeholders begin with.
 *
 * Documents are stored as templates of what upstream sent: whole, in its key order, unknown keys included, except that
 * what can change elsewhere is cut out and put back when the document is served. A string that begins with a control
 * character is such a cut:
 *
 * | placeholder | stands for |
 * | --- | --- |
 * | `\u0001…` | the repository's API address, then the rest: `\u0001/issues/5` |
 * | `\u0002…` | the API's address, then the rest: `\u0002/users/octocat` |
 * | `\u0003…` | the repository's page, then the rest |
 * | `\u0004` | the column `body` |
 * | `\u0005…` | a shared resource, stored once: its kind, id and shape, `\u0005u583231:5f3a9c01`; and a bot's login there, if it is another than its App's, `\u0005u175728472:5f3a9c01:Copilot` |
 * | `\u0007…` | a number of these digits, which a double would change |
 * | `\u0006…` | the rest literally; only what would read as a placeholder is escaped so |
 *
 * So a rename shows everywhere at once, answers carry the caller's own address, and no user is stored twice.
 */
export const PLACEHOLDER = { repository: 1, api: 2, page: 3, body: 4, reference: 5, literal: 6, number: 7 } as const;
export const BODY_PLACEHOLDER = String.fromCharCode(PLACEHOLDER.body);

/** Whether a string begins as placeholders do. */
export function isPlaceholder(text: string): boolean {
  const code = text.charCodeAt(0);
  return code >= PLACEHOLDER.repository && code <= PLACEHOLDER.number;
}

/** As `strip` writes a number. Documents of earlier versions may have other texts that begin so. */
const IS_NUMBER = /^.-?\d+(?:\.\d+)?$/s;

/** The original text of a stripped string that holds no address. */
export function literalOf(text: string): string {
  const code = text.charCodeAt(0);
  return code === PLACEHOLDER.literal || (code === PLACEHOLDER.number && IS_NUMBER.test(text)) ? text.slice(1) : text;
}

/** A placeholder that stands for a shared resource. */
export interface TemplateReference {
  kind: SharedKind;
  id: number;
  shape: string;
  /** The login that a bot has in this place; null: that of its row. */
  login: string | null;
}

/** Reads a stripped value as a reference; null when it is something else. */
export function reference(value: Json | undefined): TemplateReference | null {
  return typeof value === "string" && value.charCodeAt(0) === 5 ? referenceOf(value.slice(1)) : null;
}

/** `u583231:5f3a9c01` as a reference. */
export function referenceOf(text: string): TemplateReference {
  const [head = "", shape = "", login] = text.split(":");
  // `strip` writes the kind as the text's first character. TypeScript does not know that.
  return {
    kind: text.charAt(0) as SharedKind,
    id: Number(head.slice(1)),
    shape,
    login: login === undefined ? null : decodeURIComponent(login),
  };
}

/** The same reference without the login of its place. */
export function withoutLogin(placeholder: string): string {
  return placeholder.split(":", 2).join(":");
}

/** The id of the shared resource that a stripped value stands for; null when it is none. */
export function referenceId(value: Json | undefined): number | null {
  return reference(value)?.id ?? null;
}
