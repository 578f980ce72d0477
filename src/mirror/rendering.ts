import { sql } from "drizzle-orm";
import type { Queries } from "../../db/connection.ts";
import { type Fields, type Json, type Reference, reference, references, restore } from "./template.ts";

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

interface Repository {
  /** With its detail: a shape may have keys of it. */
  document: string;
  fullName: string;
  htmlUrl: string;
  isGone: boolean;
}

/** What the documents of one answer refer to. */
interface Related {
  users: Map<number, string>;
  repositories: Map<number, Repository>;
  /** Keyed `repositoryId/id`; null: deleted at upstream. */
  labels: Map<string, string | null>;
  milestones: Map<string, string | null>;
  shapes: Map<string, string[]>;
}

/**
 * Renders stored documents as upstream's REST JSON: one text for each document, in order. What they refer to is loaded
 * with one query per kind and level, however many documents there are.
 */
export async function renderDocuments(
  queries: Queries,
  documents: StoredDocument[],
  addresses: Addresses,
): Promise<string[]> {
  const related = await loadRelated(queries, documents, addresses.met);
  const rendered = new Map<string, string>();
  return documents.map((one) => renderDocument(one, related, addresses, rendered));
}

function renderDocument(
  one: StoredDocument,
  related: Related,
  addresses: Addresses,
  rendered: Map<string, string>,
): string {
  const whole = one.detail ? joinObjects(one.document, one.detail) : one.document;
  return renderText(
    withoutDeleted(whole, one.repositoryId, related),
    one.repositoryId,
    one.body ?? null,
    related,
    addresses,
    rendered,
  );
}

function renderText(
  document: string,
  repositoryId: number,
  body: string | null,
  related: Related,
  addresses: Addresses,
  rendered: Map<string, string>,
): string {
  const home = related.repositories.get(repositoryId);
  return restore(document, {
    api: escaped(addresses.api),
    repository: escaped(`${addresses.api}/repos/${home?.fullName ?? ""}`),
    page: escaped(home?.htmlUrl ?? ""),
    body: JSON.stringify(body),
    shared: (found) => {
      const key = `${found.kind}${found.kind === "l" || found.kind === "m" ? repositoryId : ""}/${found.id}:${found.shape}`;
      let text = rendered.get(key);
      if (text === undefined) {
        text = renderShared(found, repositoryId, related, addresses, rendered);
        rendered.set(key, text);
      }
      return text;
    },
  });
}

function renderShared(
  found: Reference,
  repositoryId: number,
  related: Related,
  addresses: Addresses,
  rendered: Map<string, string>,
): string {
  const document = documentOf(found, repositoryId, related);
  if (document === null) return "null";
  const fields = JSON.parse(document) as Fields;
  const keys = related.shapes.get(found.shape) ?? Object.keys(fields);
  const shown: Fields = {};
  for (const key of keys) {
    const value = fields[key];
    if (value !== undefined) shown[key] = value;
  }
  return renderText(
    JSON.stringify(shown),
    found.kind === "r" ? found.id : repositoryId,
    null,
    related,
    addresses,
    rendered,
  );
}

/** Null: it is gone, or was never stored. */
function documentOf({ kind, id }: Reference, repositoryId: number, related: Related): string | null {
  switch (kind) {
    case "u":
      return related.users.get(id) ?? null;
    case "r": {
      const repository = related.repositories.get(id);
      return repository && !repository.isGone ? repository.document : null;
    }
    case "l":
      return related.labels.get(`${repositoryId}/${id}`) ?? null;
    case "m":
      return related.milestones.get(`${repositoryId}/${id}`) ?? null;
    default:
      return kind satisfies never;
  }
}

/** Deleting a label takes it off its issues without a word about them, so it is left out here. */
function withoutDeleted(document: string, repositoryId: number, related: Related): string {
  const isDeleted = (value: Json) => {
    const found = reference(value);
    return found?.kind === "l" && related.labels.get(`${repositoryId}/${found.id}`) === null;
  };
  if (
    !references(document).some(
      (found) => found.kind === "l" && related.labels.get(`${repositoryId}/${found.id}`) === null,
    )
  )
    return document;
  const fields = JSON.parse(document) as Fields;
  if (Array.isArray(fields.labels)) fields.labels = fields.labels.filter((value) => !isDeleted(value));
  return JSON.stringify(fields);
}

function joinObjects(a: string, b: string): string {
  return a === "{}" ? b : `${a.slice(0, a.lastIndexOf("}"))},${b.slice(b.indexOf("{") + 1)}`;
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

async function loadRelated(
  queries: Queries,
  documents: StoredDocument[],
  met: Set<number> | undefined,
): Promise<Related> {
  const related: Related = {
    users: new Map(),
    repositories: new Map(),
    labels: new Map(),
    milestones: new Map(),
    shapes: new Map(),
  };
  const shapes = new Set<string>();
  let wanted = wantedBy(documents, shapes);
  for (const { repositoryId } of documents) if (repositoryId !== 0) wanted.repositories.add(repositoryId);
  while (wanted.users.size + wanted.repositories.size + wanted.labels.size + wanted.milestones.size > 0) {
    for (const id of wanted.repositories) met?.add(id);
    const loaded = await loadLevel(queries, wanted, related);
    wanted = onlyNew(wantedBy(loaded, shapes), related);
  }
  await loadShapes(queries, shapes, related);
  return related;
}

interface Wanted {
  users: Set<number>;
  repositories: Set<number>;
  labels: Set<string>;
  milestones: Set<string>;
}

function wantedBy(documents: StoredDocument[], shapes: Set<string>): Wanted {
  const wanted: Wanted = { users: new Set(), repositories: new Set(), labels: new Set(), milestones: new Set() };
  for (const { document, detail, repositoryId } of documents) {
    for (const { kind, id, shape } of [...references(document), ...(detail ? references(detail) : [])]) {
      shapes.add(shape);
      if (kind === "u") wanted.users.add(id);
      else if (kind === "r") wanted.repositories.add(id);
      else if (kind === "l") wanted.labels.add(`${repositoryId}/${id}`);
      else wanted.milestones.add(`${repositoryId}/${id}`);
    }
  }
  return wanted;
}

function onlyNew(wanted: Wanted, related: Related): Wanted {
  return {
    users: wanted.users.difference(related.users),
    repositories: wanted.repositories.difference(related.repositories),
    labels: wanted.labels.difference(related.labels),
    milestones: wanted.milestones.difference(related.milestones),
  };
}

interface DocumentRow extends Record<string, unknown> {
  r: string;
  id: string;
  document: string;
  gone: boolean;
}

async function loadLevel(queries: Queries, wanted: Wanted, related: Related): Promise<StoredDocument[]> {
  const loaded: StoredDocument[] = [];
  if (wanted.users.size > 0) {
    const { rows } = await queries.execute<DocumentRow>(
      sql`select id::text, document::text from users where id = any(${sql.param([...wanted.users])}::bigint[])`,
    );
    for (const row of rows) related.users.set(Number(row.id), row.document);
    for (const row of rows) loaded.push({ repositoryId: 0, document: row.document });
  }
  if (wanted.repositories.size > 0) {
    const { rows } = await queries.execute<
      DocumentRow & { detail: string | null; full_name: string; html_url: string | null }
    >(
      sql`select id::text, document::text, detail::text, full_name, html_url, deleted_at is not null as gone from repositories where id = any(${sql.param([...wanted.repositories])}::bigint[])`,
    );
    for (const row of rows) {
      const document = row.detail ? joinObjects(row.document, row.detail) : row.document;
      related.repositories.set(Number(row.id), {
        document,
        fullName: row.full_name,
        htmlUrl: row.html_url ?? "",
        isGone: row.gone,
      });
      loaded.push({ repositoryId: Number(row.id), document: row.document });
    }
  }
  for (const [table, keys, into] of [
    ["labels", wanted.labels, related.labels],
    ["milestones", wanted.milestones, related.milestones],
  ] as const) {
    if (keys.size === 0) continue;
    const pairs = [...keys].map((key) => key.split("/").map(Number));
    const { rows } =
      await queries.execute<DocumentRow>(sql`select t.repository_id::text as r, t.id::text, t.document::text, t.deleted_at is not null as gone
      from unnest(${sql.param(pairs.map(([r]) => r))}::bigint[], ${sql.param(pairs.map(([, id]) => id))}::bigint[]) as x(r, id)
      join ${sql.raw(table)} t on t.repository_id = x.r and t.id = x.id`);
    for (const row of rows) {
      into.set(`${row.r}/${row.id}`, row.gone ? null : row.document);
      loaded.push({ repositoryId: Number(row.r), document: row.document });
    }
  }
  return loaded;
}

async function loadShapes(queries: Queries, shapes: Set<string>, related: Related): Promise<void> {
  if (shapes.size === 0) return;
  const { rows } = await queries.execute<{ id: string; keys: string }>(
    sql`select id, keys from shapes where id = any(${sql.param([...shapes])}::text[])`,
  );
  for (const row of rows) related.shapes.set(row.id, row.keys.split(","));
}
