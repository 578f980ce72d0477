import { hash } from "node:crypto";
import { type Fields, isObject, type Json, textOf } from "../../json.ts";

/** Kinds of shared resource: user, repository, label, milestone. */
export type SharedKind = "u" | "r" | "l" | "m";

/** A resource found inside another. `fields` are stripped already. */
export interface SharedResource {
  kind: SharedKind;
  id: number;
  fields: Fields;
}

/** The addresses that are cut out of a document. `fullName` and `htmlUrl` are those of the document's repository. */
export interface DocumentHome {
  /** Upstream's REST address without a trailing slash. */
  api: string;
  fullName?: string | undefined;
  htmlUrl?: string | undefined;
}

export interface Stripped {
  fields: Fields;
  shared: SharedResource[];
  /** The shapes that the fields refer to: id → keys joined by commas. */
  shapes: Map<string, string>;
}

/**
 * The ids of the shapes that were met in documents, by their keys. Documents that are read together share them: they
 * repeat a few shapes, and to make an id takes longer than to find it.
 */
export type ShapeIds = Map<string, string>;

/** The control characters that placeholders begin with: `strip` says what each stands for. */
export const PLACEHOLDER = { repository: 1, api: 2, page: 3, body: 4, reference: 5, literal: 6 } as const;
export const BODY_PLACEHOLDER = String.fromCharCode(PLACEHOLDER.body);

/**
 * Makes a template of a resource: cuts out everything that is stored elsewhere. Pure. `takeApart` is the first step of
 * the way back.
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
 * | `\u0005…` | a shared resource, stored once: its kind, id and shape, `\u0005u583231:5f3a9c01` |
 * | `\u0006…` | the rest literally; only what would read as a placeholder is escaped so |
 *
 * So a rename shows everywhere at once, answers carry the caller's own address, and no user is stored twice.
 */
export function strip(resource: Fields, home: DocumentHome, shapeIds: ShapeIds = new Map()): Stripped {
  const shared: SharedResource[] = [];
  const shapes = new Map<string, string>();

  const stripObject = (object: Fields, at: Addresses): Fields => {
    const fields: Fields = {};
    for (const key of Object.keys(object)) {
      const value = object[key];
      if (value !== undefined) fields[key] = stripValue(value, key, at);
    }
    return fields;
  };
  const stripValue = (value: Json, key: string, at: Addresses): Json => {
    if (typeof value === "string") return isAddressKey(key) ? stripAddress(value, at) : escapePlaceholder(value);
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map((element) => stripValue(element, key, at));
    const { id } = value;
    const kind = sharedKind(value, key);
    if (typeof id !== "number" || kind === null) return stripObject(value, at);
    shared.push({ kind, id, fields: stripObject(value, kind === "r" ? repositoryAddresses(value, at.api) : at) });
    const keys = Object.keys(value).join(",");
    const shape = shapeIds.getOrInsertComputed(keys, shapeIdOf);
    shapes.set(shape, keys);
    return `\u0005${kind}${id}:${shape}`;
  };

  const fields = stripObject(resource, addressesOf(home));
  return { fields, shared, shapes };
}

/** The beginnings of addresses in a document. */
interface Addresses {
  api: string;
  repository: string | null;
  page: string | null;
}

function addressesOf({ api, fullName, htmlUrl }: DocumentHome): Addresses {
  return { api, repository: fullName === undefined ? null : `${api}/repos/${fullName}`, page: htmlUrl ?? null };
}

/** A repository's own document keeps the address of its page: the addresses of its resources are made of it. */
function repositoryAddresses(repository: Fields, api: string): Addresses {
  return addressesOf({ api, fullName: textOf(repository.full_name) ?? undefined });
}

/**
 * Only these keys hold upstream's addresses. A `body` that begins with such an address is a person's text, and stays as
 * it is.
 */
function isAddressKey(key: string): boolean {
  return key === "url" || key === "href" || key.endsWith("_url");
}

function stripAddress(text: string, { api, repository, page }: Addresses): string {
  if (repository !== null) {
    const rest = after(text, repository);
    if (rest !== null) return `\u0001${rest}`;
  }
  const rest = after(text, api);
  if (rest !== null) return `\u0002${rest}`;
  if (page !== null) {
    const below = after(text, page);
    if (below !== null) return `\u0003${below}`;
  }
  return escapePlaceholder(text);
}

function escapePlaceholder(text: string): string {
  return isPlaceholder(text) ? `\u0006${text}` : text;
}

/** The original text of a stripped string that holds no address. */
export function literalOf(text: string): string {
  return text.charCodeAt(0) === PLACEHOLDER.literal ? text.slice(1) : text;
}

/** The rest of an address after `prefix`. Null if the address begins otherwise. */
function after(text: string, prefix: string): string | null {
  if (!text.startsWith(prefix)) return null;
  const rest = text.slice(prefix.length);
  return rest === "" || "/{?#".includes(rest.charAt(0)) ? rest : null;
}

function isPlaceholder(text: string): boolean {
  const code = text.charCodeAt(0);
  return code >= PLACEHOLDER.repository && code <= PLACEHOLDER.literal;
}

/**
 * Upstream has no type names in its JSON, so a shared resource is known by the keys that only its kind has.
 * One without an id (answers from before 2017) stays where it is.
 */
function sharedKind(value: Fields, key: string): SharedKind | null {
  if (typeof value.login === "string" && typeof value.type === "string" && "followers_url" in value) return "u";
  if (typeof value.full_name === "string" && value.owner !== undefined && "issues_url" in value) return "r";
  if ((key === "labels" || key === "label") && typeof value.name === "string" && "color" in value) return "l";
  if (key === "milestone" && typeof value.number === "number" && "labels_url" in value) return "m";
  return null;
}

function shapeIdOf(keys: string): string {
  return hash("sha256", keys).slice(0, 8);
}

/** A placeholder that stands for a shared resource. */
export interface TemplateReference {
  kind: SharedKind;
  id: number;
  shape: string;
}

/** Reads a stripped value as a reference; null when it is something else. */
export function reference(value: Json | undefined): TemplateReference | null {
  return typeof value === "string" && value.charCodeAt(0) === 5 ? referenceOf(value.slice(1)) : null;
}

/** `u583231:5f3a9c01` as a reference. */
export function referenceOf(text: string): TemplateReference {
  const colon = text.indexOf(":");
  // `strip` writes the kind as the text's first character. TypeScript does not know that.
  return {
    kind: text.charAt(0) as SharedKind,
    id: Number(text.slice(1, colon)),
    shape: text.slice(colon + 1),
  };
}

/** The id of the shared resource that a stripped value stands for; null when it is none. */
export function referenceId(value: Json | undefined): number | null {
  return reference(value)?.id ?? null;
}

/** Whether two stripped values mean the same. The shape in which a shared resource was sent does not count. */
export function sameValue(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a === "string" && typeof b === "string") {
    const [left, right] = [reference(a), reference(b)];
    return left !== null && right !== null && left.kind === right.kind && left.id === right.id;
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      a.length === b.length &&
      a.every((element, index) => sameValue(element, b[index]))
    );
  }
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && sameValue(a[key], b[key]));
}

/** The new value, with the known shapes kept for resources that both values embed. */
export function withShapesOf(known: Json | undefined, value: Json): Json {
  if (typeof value === "string") return known !== undefined && sameValue(known, value) ? known : value;
  if (!isObject(value) || !isObject(known)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withShapesOf(known[key], part)]));
}

// In JSON text a placeholder is the escape \u000N just after a string's opening quote. An opening quote never follows a
// backslash, and a quote inside a string always does. So no user's text can be taken for a placeholder.
const ESCAPE = "\\u000";
const QUOTE = 34;
const BACKSLASH = 92;
/** The length of a placeholder in JSON text, with the quote before it. */
const PLACEHOLDER_LENGTH = 7;

function isPlaceholderAt(document: string, at: number): boolean {
  return document.charCodeAt(at - 1) === QUOTE && document.charCodeAt(at - 2) !== BACKSLASH;
}

/** A piece of a document's text where something was cut out. */
export type Cut = (typeof PLACEHOLDER)["repository" | "api" | "page" | "body"];

/** A piece of a stored document's text: JSON as it is, what was cut out, or what `found` made of a reference. */
export type Piece<Found extends object> = string | Cut | Found;

/**
 * Takes a stored document's text apart, to be joined again with what was cut out. Text in, text out: nothing is parsed.
 * `found` gets what stands behind the placeholder of a reference; see `referenceOf`.
 */
export function takeApart<Found extends object>(document: string, found: (text: string) => Found): Piece<Found>[] {
  const pieces: Piece<Found>[] = [];
  let from = 0;
  for (let at = document.indexOf(ESCAPE); at >= 0; at = document.indexOf(ESCAPE, Math.max(at + 1, from))) {
    if (!isPlaceholderAt(document, at)) continue;
    const rest = at - 1 + PLACEHOLDER_LENGTH;
    const code = document.charCodeAt(at + ESCAPE.length) - 48;
    switch (code) {
      case PLACEHOLDER.repository:
      case PLACEHOLDER.api:
      case PLACEHOLDER.page:
        pieces.push(document.slice(from, at), code);
        from = rest;
        break;
      case PLACEHOLDER.body:
        pieces.push(document.slice(from, at - 1), code);
        from = rest + 1;
        break;
      case PLACEHOLDER.reference: {
        const end = document.indexOf('"', rest);
        pieces.push(document.slice(from, at - 1), found(document.slice(rest, end)));
        from = end + 1;
        break;
      }
      case PLACEHOLDER.literal:
        pieces.push(document.slice(from, at));
        from = rest;
        break;
      default:
        break;
    }
  }
  pieces.push(from === 0 ? document : document.slice(from));
  return pieces;
}

/** All references in a stored document's text, each once. */
export function references(document: string): TemplateReference[] {
  const texts = new Set<string>();
  takeApart(document, (text) => texts.add(text));
  return [...texts].map(referenceOf);
}
