import type { Queries } from "../../db/connection.ts";
import { joinObjects, keepText, type SharedKey, type SharedRow, sharedName, sharedRowsOf } from "./shared-rows.ts";
import { type Fields, type Json, type Reference, reference, referenceMarks, referenceOf, restore } from "./template.ts";

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
}

/** What the documents of one answer refer to. */
interface Related {
  /** By `sharedName`; null: there is none. */
  rows: Map<string, SharedRow | null>;
  shapes: Map<string, readonly string[]>;
}

/**
 * Renders stored documents as upstream's REST JSON: one text for each document, in order. What they refer to is loaded
 * with one statement per level, however many documents there are.
 */
export async function renderDocuments(
  queries: Queries,
  documents: readonly StoredDocument[],
  addresses: Addresses,
): Promise<string[]> {
  const wholes = documents.map(({ document, detail }) => (detail ? joinObjects(document, detail) : document));
  const related = await loadRelated(queries, documents, wholes, addresses.met);
  const homes = new Map<number, Home>();
  return documents.map(({ repositoryId, body }, index) => {
    const home = homeOf(repositoryId, related, addresses, homes);
    const whole = withoutDeleted(wholes[index] as string, home, related);
    return restore(whole, marksOf(home, body ?? null));
  });
}

/** Where documents of one repository are served, and what is embedded in them. */
interface Home {
  repositoryId: number;
  /** As they stand within JSON strings. */
  api: string;
  repository: string;
  page: string;
  /** Names these addresses. */
  variant: string;
  /** Of all homes of the answer. */
  homes: Map<number, Home>;
  related: Related;
  addresses: Addresses;
  /** Rendered references, by their marks. */
  texts: Map<string, string>;
  /** Whether any label that the documents refer to was deleted. */
  hasDeletedLabels: boolean;
}

function homeOf(repositoryId: number, related: Related, addresses: Addresses, homes: Map<number, Home>): Home {
  const known = homes.get(repositoryId);
  if (known) return known;
  const row = related.rows.get(sharedName({ kind: "r", repositoryId: 0, id: repositoryId }));
  const [fullName, htmlUrl] = [row?.fullName ?? "", row?.htmlUrl ?? ""];
  const prefix = `l${repositoryId}/`;
  const home: Home = {
    repositoryId,
    api: escaped(addresses.api),
    repository: escaped(`${addresses.api}/repos/${fullName}`),
    page: escaped(htmlUrl),
    variant: `${addresses.api}\n${fullName}\n${htmlUrl}`,
    homes,
    related,
    addresses,
    texts: new Map(),
    hasDeletedLabels: [...related.rows].some(([name, one]) => one?.isGone && name.startsWith(prefix)),
  };
  homes.set(repositoryId, home);
  return home;
}

function marksOf(home: Home, body: string | null) {
  return {
    api: home.api,
    repository: home.repository,
    page: home.page,
    body,
    shared: (mark: string) => {
      let text = home.texts.get(mark);
      if (text === undefined) {
        text = renderShared(referenceOf(mark), home);
        home.texts.set(mark, text);
      }
      return text;
    },
  };
}

function renderShared(found: Reference, home: Home): string {
  const row = home.related.rows.get(sharedName(keyOf(found, home.repositoryId)));
  // It is gone, or was never stored.
  if (!row || row.isGone) return "null";
  // A user has nothing of the repository.
  const variant = `${found.shape}\n${found.kind === "u" ? home.addresses.api : home.variant}`;
  const known = row.texts.get(variant);
  if (known !== undefined) return known;
  const fields = JSON.parse(row.document) as Fields;
  const keys = home.related.shapes.get(found.shape) ?? Object.keys(fields);
  const shown: Fields = {};
  for (const key of keys) {
    const value = fields[key];
    if (value !== undefined) shown[key] = value;
  }
  const at = found.kind === "r" ? homeOf(found.id, home.related, home.addresses, home.homes) : home;
  const text = restore(JSON.stringify(shown), marksOf(at, null));
  keepText(row, variant, text);
  return text;
}

function keyOf({ kind, id }: Reference, repositoryId: number): SharedKey {
  return { kind, repositoryId: kind === "l" || kind === "m" ? repositoryId : 0, id };
}

/** Deleting a label takes it off its issues without a word about them, so it is left out here. */
function withoutDeleted(document: string, home: Home, { rows }: Related): string {
  if (!home.hasDeletedLabels) return document;
  const isDeleted = (value: Json) => {
    const found = reference(value);
    return found?.kind === "l" && (rows.get(sharedName(keyOf(found, home.repositoryId)))?.isGone ?? false);
  };
  const fields = JSON.parse(document) as Fields;
  if (!Array.isArray(fields.labels) || !fields.labels.some(isDeleted)) return document;
  return JSON.stringify({ ...fields, labels: fields.labels.filter((value) => !isDeleted(value)) });
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Loads level by level; what a row referred to when it was last seen is asked for along with it. */
async function loadRelated(
  queries: Queries,
  documents: readonly StoredDocument[],
  wholes: readonly string[],
  met: Set<number> | undefined,
): Promise<Related> {
  const shared = sharedRowsOf(queries);
  const rows: Related["rows"] = new Map();
  const shapes = new Set<string>();
  let wanted = new Map<string, SharedKey>();
  const want = (key: SharedKey) => {
    const name = sharedName(key);
    if (rows.has(name) || wanted.has(name)) return;
    wanted.set(name, key);
    if (key.kind === "r") met?.add(key.id);
    const { id, repositoryId } = key;
    for (const inner of shared.remembered(key)?.references ?? [])
      want(keyOf(inner, key.kind === "r" ? id : repositoryId));
  };
  const marks = new Map<number, Set<string>>();
  for (const [index, { repositoryId }] of documents.entries()) {
    let ofRepository = marks.get(repositoryId);
    if (!ofRepository) {
      ofRepository = new Set();
      marks.set(repositoryId, ofRepository);
    }
    referenceMarks(wholes[index] as string, ofRepository);
  }
  for (const [repositoryId, ofRepository] of marks) {
    if (repositoryId !== 0) want({ kind: "r", repositoryId: 0, id: repositoryId });
    for (const mark of ofRepository) {
      const found = referenceOf(mark);
      shapes.add(found.shape);
      want(keyOf(found, repositoryId));
    }
  }
  while (wanted.size > 0) {
    const asked = wanted;
    wanted = new Map();
    const loaded = await shared.load(queries, [...asked.values()]);
    for (const name of asked.keys()) rows.set(name, loaded.get(name) ?? null);
    for (const [name, key] of asked) {
      for (const inner of rows.get(name)?.references ?? []) {
        shapes.add(inner.shape);
        want(keyOf(inner, key.kind === "r" ? key.id : key.repositoryId));
      }
    }
  }
  return { rows, shapes: await shared.loadShapes(queries, shapes) };
}
