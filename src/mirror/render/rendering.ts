import type { Queries } from "../../../db/database.ts";
import { PEOPLE } from "../../../db/revisions.ts";
import {
  CUT,
  type Fields,
  type Json,
  type Piece,
  type Reference,
  reference,
  referenceOf,
  takeApart,
} from "../store/template.ts";
import type { Reading } from "../unchanged/reading.ts";
import {
  domainOf,
  joinObjects,
  keyOf,
  type SharedKey,
  type SharedRow,
  type SharedRows,
  sharedName,
  sharedRowsOf,
} from "./shared-rows.ts";

/** A stored document, as the reads of the mirror answer it. */
export interface StoredDocument {
  /** 0 for a user. For a repository its own id. */
  repositoryId: number;
  document: string;
  body?: string | null;
  /** The keys that only a single resource shows; give it where one is served. */
  detail?: string | null;
}

/** The addresses under which the answer is served. */
export interface Addresses {
  /** The API's address as the caller wrote it, without a trailing slash. */
  api: string;
  /** Where the repositories are noted that are shown, or would be if they were known. */
  met?: Set<number> | undefined;
  /** What the request has learnt of how repositories stand: what has not changed need not be asked for. */
  reading?: Reading | undefined;
}

/** What the documents of one answer refer to. */
interface Related {
  /** By `sharedName`; null: there is none. */
  rows: Map<string, SharedRow | null>;
  shapes: Map<string, readonly string[]>;
}

/** A reference that any number of documents of one repository have. */
interface Mention {
  found: Reference;
  key: SharedKey;
  /** Its `sharedName`. */
  name: string;
  /** Once it is rendered. */
  text: string | undefined;
}

/** Of one repository's documents, by marks. */
type Mentions = Map<string, Mention>;

/**
 * Renders stored documents as upstream's REST JSON: one text for each document, in order. What they refer to is loaded
 * with one statement per level, however many documents there are.
 */
export async function renderDocuments(
  queries: Queries,
  documents: readonly StoredDocument[],
  addresses: Addresses,
): Promise<string[]> {
  const answer = await answerOf(queries, takenApart(documents, "text"), addresses);
  return documents.map((document, index) => {
    const parts: string[] = [];
    append(parts, index, document, answer);
    return parts.join("");
  });
}

/**
 * The same as one JSON list, in UTF-8. Its parts are put together as bytes: one letter beyond Latin-1 makes a text of half a
 * megabyte twice as long, and it would be encoded once for its ETag and once to be sent. Null where a repository is embedded in
 * one of them, of which not everybody is shown the same.
 */
export async function renderList(
  queries: Queries,
  documents: readonly StoredDocument[],
  addresses: Addresses,
): Promise<Buffer | null> {
  const apart = takenApart(documents, "bytes");
  for (const mentions of apart.mentions.values())
    for (const { found } of mentions.values()) if (found.kind === "r") return null;
  const answer = await answerOf(queries, apart, addresses);
  const parts: string[] = ["["];
  for (const [index, document] of documents.entries()) {
    if (index > 0) parts.push(",");
    append(parts, index, document, answer);
  }
  parts.push("]");
  return Buffer.from(parts.join(""), "latin1");
}

/** Documents taken apart, in the form in which they are answered. */
interface Apart {
  form: Form;
  /** Each document's text as it is stored. */
  wholes: readonly string[];
  /** Each document's. */
  pieces: readonly Piece<Mention>[][];
  /** By repository. */
  mentions: ReadonlyMap<number, Mentions>;
}

function takenApart(documents: readonly StoredDocument[], form: Form): Apart {
  const mentions = new Map<number, Mentions>();
  const wholes = documents.map(({ document, detail }) => (detail ? joinObjects(document, detail) : document));
  const pieces = documents.map(({ repositoryId }, index) => {
    const ofRepository = mentions.get(repositoryId) ?? new Map();
    mentions.set(repositoryId, ofRepository);
    return piecesOf(inForm(wholes[index] as string, form), repositoryId, ofRepository);
  });
  return { form, wholes, pieces, mentions };
}

async function answerOf(queries: Queries, apart: Apart, addresses: Addresses): Promise<Answer> {
  const shared = sharedRowsOf(queries);
  const usersVariants = new UsersVariants(apart.form, addresses);
  const related = await loadRelated(queries, shared, apart.mentions, addresses, usersVariants);
  return { ...apart, shared, related, addresses, homes: new Map(), usersVariants };
}

function piecesOf(document: string, repositoryId: number, mentions: Mentions): Piece<Mention>[] {
  return takeApart(document, (mark) => {
    let mention = mentions.get(mark);
    if (!mention) {
      const found = referenceOf(mark);
      const key = keyOf(found, repositoryId);
      mention = { found, key, name: sharedName(key), text: undefined };
      mentions.set(mark, mention);
    }
    return mention;
  });
}

function append(parts: string[], index: number, { repositoryId, body }: StoredDocument, answer: Answer): void {
  const home = homeOf(repositoryId, answer);
  const { form, wholes } = answer;
  const whole = withoutDeleted(wholes[index] as string, home);
  const isWhole = whole === wholes[index];
  const pieces = isWhole ? answer.pieces[index] : piecesOf(inForm(whole, form), repositoryId, home.mentions);
  appendPieces(parts, pieces as Piece<Mention>[], home, body == null ? null : inForm(body, form));
}

function appendPieces(parts: string[], pieces: readonly Piece<Mention>[], home: Home, body: string | null): void {
  for (const piece of pieces) {
    if (typeof piece === "string") parts.push(piece);
    else if (typeof piece === "object") {
      piece.text ??= renderShared(piece, home);
      parts.push(piece.text);
    } else parts.push(piece === CUT.body ? JSON.stringify(body) : (home.cuts[piece] as string));
  }
}

/** "bytes": each character of a string stands for one byte of it in UTF-8. */
type Form = "text" | "bytes";

function inForm(text: string, form: Form): string {
  // Where it is ASCII both are the same.
  return form === "text" || Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString("latin1");
}

interface Answer extends Apart {
  shared: SharedRows;
  related: Related;
  addresses: Addresses;
  /** By repository. */
  homes: Map<number, Home>;
  usersVariants: UsersVariants;
}

/** Where documents of one repository are served, and what is embedded in them. */
interface Home {
  repositoryId: number;
  answer: Answer;
  mentions: Mentions;
  /** The addresses as they stand within JSON strings, by `CUT`. */
  cuts: Readonly<Record<number, string>>;
  /** Names these addresses. */
  variant: string;
  /** Whether any label that the documents refer to was deleted. */
  hasDeletedLabels: boolean;
}

function homeOf(repositoryId: number, answer: Answer): Home {
  const known = answer.homes.get(repositoryId);
  if (known) return known;
  const { related, addresses, form } = answer;
  const row = related.rows.get(sharedName({ kind: "r", repositoryId: 0, id: repositoryId }));
  const [fullName, htmlUrl] = [row?.fullName ?? "", row?.htmlUrl ?? ""];
  const prefix = `l${repositoryId}/`;
  const home: Home = {
    repositoryId,
    answer,
    mentions: answer.mentions.get(repositoryId) ?? new Map(),
    cuts: {
      [CUT.repository]: escaped(`${addresses.api}/repos/${fullName}`, form),
      [CUT.api]: escaped(addresses.api, form),
      [CUT.page]: escaped(htmlUrl, form),
    },
    variant: `${form}\n${addresses.api}\n${fullName}\n${htmlUrl}`,
    hasDeletedLabels: [...related.rows].some(([name, one]) => one?.isGone && name.startsWith(prefix)),
  };
  answer.homes.set(repositoryId, home);
  return home;
}

function renderShared({ found, name }: Mention, home: Home): string {
  const { shared, related, form, usersVariants } = home.answer;
  const row = related.rows.get(name);
  // It is gone, or was never stored.
  if (!row || row.isGone) return "null";
  const variant = found.kind === "u" ? usersVariants.of(found.shape) : `${found.shape}\n${home.variant}`;
  const known = row.texts.get(variant);
  if (known !== undefined) return known;
  if (row.document === null) throw new Error(`${name} was loaded without what it is rendered from`);
  const fields = JSON.parse(row.document) as Fields;
  const keys = related.shapes.get(found.shape) ?? Object.keys(fields);
  const shown: Fields = {};
  for (const key of keys) {
    const value = fields[key];
    if (value !== undefined) shown[key] = value;
  }
  const at = found.kind === "r" ? homeOf(found.id, home.answer) : home;
  const parts: string[] = [];
  appendPieces(parts, piecesOf(inForm(JSON.stringify(shown), form), at.repositoryId, at.mentions), at, null);
  const text = parts.join("");
  shared.keepText(name, row, variant, text);
  return text;
}

/** Names the texts of users: there is nothing of the repository in them. Many are looked up, so each name is made once. */
class UsersVariants {
  readonly #suffix: string;
  readonly #known = new Map<string, string>();

  constructor(form: Form, { api }: Addresses) {
    this.#suffix = `${form}\n${api}`;
  }

  of(shape: string): string {
    let variant = this.#known.get(shape);
    if (variant === undefined) {
      variant = `${shape}\n${this.#suffix}`;
      this.#known.set(shape, variant);
    }
    return variant;
  }
}

/** Deleting a label takes it off its issues without a word about them, so it is left out here. */
function withoutDeleted(document: string, { hasDeletedLabels, repositoryId, answer }: Home): string {
  if (!hasDeletedLabels) return document;
  const isDeleted = (value: Json) => {
    const found = reference(value);
    return found?.kind === "l" && (answer.related.rows.get(sharedName(keyOf(found, repositoryId)))?.isGone ?? false);
  };
  const fields = JSON.parse(document) as Fields;
  if (!Array.isArray(fields.labels) || !fields.labels.some(isDeleted)) return document;
  return JSON.stringify({ ...fields, labels: fields.labels.filter((value) => !isDeleted(value)) });
}

function escaped(text: string, form: Form): string {
  return inForm(JSON.stringify(text).slice(1, -1), form);
}

/** Loads level by level; what a row referred to when it was last seen is asked for along with it. */
async function loadRelated(
  queries: Queries,
  shared: SharedRows,
  mentions: ReadonlyMap<number, Mentions>,
  { met, reading }: Addresses,
  usersVariants: UsersVariants,
): Promise<Related> {
  const rows: Related["rows"] = new Map();
  const shapes = new Set<string>();
  const standings = await reading?.now(new Set([PEOPLE, ...mentions.keys()]));

  let wanted = new Map<string, SharedKey>();
  const users: { name: string; key: SharedKey; variant: string }[] = [];
  const want = (shape: string, name: string, key: SharedKey) => {
    shapes.add(shape);
    if (key.kind === "u") users.push({ name, key, variant: usersVariants.of(shape) });
    wantRow(name, key);
  };
  const wantRow = (name: string, key: SharedKey) => {
    if (rows.has(name) || wanted.has(name)) return;
    if (key.kind === "r") met?.add(key.id);
    const known = shared.remembered(name);
    if (known && isCurrent(known, standings?.get(domainOf(key))?.revision)) rows.set(name, known);
    else wanted.set(name, key);
    if (known) wantReferences(key, known);
  };
  const wantReferences = ({ kind, id, repositoryId }: SharedKey, row: SharedRow) => {
    for (const inner of row.references) {
      const innerKey = keyOf(inner, kind === "r" ? id : repositoryId);
      want(inner.shape, sharedName(innerKey), innerKey);
    }
  };
  for (const [repositoryId, ofRepository] of mentions) {
    const home: SharedKey = { kind: "r", repositoryId: 0, id: repositoryId };
    if (repositoryId !== 0) wantRow(sharedName(home), home);
    for (const { found, name, key } of ofRepository.values()) want(found.shape, name, key);
  }
  const load = async (asked: ReadonlyMap<string, SharedKey>, isAnew: boolean) => {
    const loaded = await shared.load(queries, [...asked.values()], isAnew);
    for (const [name, key] of asked) {
      const row = loaded.get(name) ?? null;
      rows.set(name, row);
      if (!row) continue;
      // It is as new as what was asked before it.
      const standing = standings?.get(domainOf(key));
      if (standing) row.asOf = standing.revision;
      wantReferences(key, row);
    }
  };
  while (wanted.size > 0) {
    const asked = wanted;
    wanted = new Map();
    await load(asked, false);
  }
  const unrendered = new Map<string, SharedKey>();
  for (const { name, key, variant } of users) {
    const row = rows.get(name);
    if (row?.document === null && !row.texts.has(variant)) unrendered.set(name, key);
  }
  if (unrendered.size > 0) await load(unrendered, true);
  return { rows, shapes: await shared.loadShapes(queries, shapes) };
}

function isCurrent({ asOf }: SharedRow, revision: string | null | undefined): boolean {
  return revision !== undefined && asOf === revision;
}
