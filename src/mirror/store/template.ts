import { hash } from "node:crypto";
import { type Fields, type Json, largeNumber, textOf, wholeOf } from "../../json.ts";
import { isPlaceholder, type SharedKind } from "../../kinds/contract/placeholders.ts";
import { botLogin, withLogin } from "../documents/bots.ts";

/** A resource found inside another. `fields` are stripped already. */
export interface SharedResource {
  kind: SharedKind;
  id: number;
  fields: Fields;
  /** It is a bot under a login that may be another than its App's, which nothing here shows. */
  isNamedElsewhere?: boolean;
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

/**
 * Makes a template of a resource: cuts out everything that is stored elsewhere (`PLACEHOLDER`). Pure. `takeApart` is the
 * first step of the way back.
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
    if (key === PEOPLES_OWN) return literalIn(value);
    if (value === null || typeof value !== "object") return value;
    const digits = largeNumber(value);
    if (digits !== null) return `\u0007${digits}`;
    if (Array.isArray(value)) return value.map((element) => stripValue(element, key, at));
    // A number that no key can be would fail the rows of the whole answer.
    const id = wholeOf(value.id);
    const kind = sharedKind(value, key);
    if (id === null || kind === null) return stripObject(value, at);
    const stripped = stripObject(value, kind === "r" ? repositoryAddresses(value, at.api) : at);
    const isBot = kind === "u" && value.type === "Bot";
    const login = isBot ? botLogin(value) : null;
    shared.push({
      kind,
      id,
      fields: login === null ? stripped : withLogin(stripped, login),
      isNamedElsewhere: isBot && login === null,
    });
    const keys = Object.keys(value).join(",");
    const shape = shapeIds.getOrInsertComputed(keys, shapeIdOf);
    shapes.set(shape, keys);
    const place = isBot && login !== value.login ? `:${encodeURIComponent(String(value.login))}` : "";
    return `\u0005${kind}${id}:${shape}${place}`;
  };

  const fields = stripObject(resource, addressesOf(home));
  return { fields, shared, shapes };
}

/**
 * The key of a deployment whose value its maker chooses, with all keys below it. What looks like a person or an address
 * there is none of upstream's.
 */
const PEOPLES_OWN = "payload";

function literalIn(value: Json): Json {
  if (typeof value === "string") return escapePlaceholder(value);
  if (value === null || typeof value !== "object") return value;
  const digits = largeNumber(value);
  if (digits !== null) return `\u0007${digits}`;
  if (Array.isArray(value)) return value.map(literalIn);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, literalIn(inner)]));
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

/** The rest of an address after `prefix`. Null if the address begins otherwise. */
function after(text: string, prefix: string): string | null {
  if (!text.startsWith(prefix)) return null;
  const rest = text.slice(prefix.length);
  return rest === "" || "/{?#".includes(rest.charAt(0)) ? rest : null;
}

/**
 * Upstream has no type names in its JSON, so a shared resource is known by the keys that only its kind has.
 * One without an id (answers from before 2017), or without what its row must have, stays where it is.
 */
function sharedKind(value: Fields, key: string): SharedKind | null {
  if (typeof value.login === "string" && typeof value.type === "string" && "followers_url" in value) return "u";
  if (
    typeof value.full_name === "string" &&
    typeof value.name === "string" &&
    value.owner !== undefined &&
    "issues_url" in value
  )
    return "r";
  if ((key === "labels" || key === "label") && typeof value.name === "string" && "color" in value) return "l";
  const isTitled = typeof value.title === "string" && typeof value.state === "string";
  if (key === "milestone" && typeof value.number === "number" && isTitled && "labels_url" in value) return "m";
  return null;
}

function shapeIdOf(keys: string): string {
  return hash("sha256", keys).slice(0, 8);
}
