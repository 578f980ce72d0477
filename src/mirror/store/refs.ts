import type { Transaction } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Fields } from "../../json.ts";
import { fittingKey } from "./fitting.ts";
import { afterLag, repositoryMark, storeMarks } from "./marks.ts";
import { REPLICA_LAG_MS } from "./merge-rule.ts";

/** Branches and tags. Others, such as those of pull requests, are not mirrored. */
const REF_KINDS = ["heads", "tags"] as const;
export type RefKind = (typeof REF_KINDS)[number];

export interface RefName {
  kind: RefKind;
  name: string;
}

/**
 * What an event says about a ref: where the ref pointed before and after. Null: it did not exist. Undefined: the event
 * does not say.
 */
export interface ToldRef extends RefName {
  before: string | null | undefined;
  after: string | null | undefined;
}

/** What the mirror knows of a ref. `sha` null: the ref exists, and no event or read has said where it points. */
export interface KnownRef {
  sha: string | null;
  isGone: boolean;
  /** The value of the column `refs.doubt`. */
  doubt: "told" | "contradicted" | null;
  /** The ref was made anew, so its other stored values are void. */
  isNew?: true;
}

/** `refs/heads/main` → the branch `main`. Null: the ref is neither a branch nor a tag, or is longer than any of upstream. */
export function refNameOf(ref: string): RefName | null {
  const [, kind, name = ""] = /^refs\/(heads|tags)\/(.+)$/s.exec(ref) ?? [];
  return (kind === "heads" || kind === "tags") && fittingKey(name) === name ? { kind, name } : null;
}

/**
 * Moves a known ref as a push says. If the push's `before` is not the known place, an event was lost or came late, and
 * only a read can settle it. That holds also if the ref points already where the push says: after A to B and back to A,
 * the second push may come first. Null: nothing new. Pure.
 */
export function foldRef(
  known: KnownRef | undefined,
  { before, after }: Pick<ToldRef, "before" | "after">,
): KnownRef | null {
  const exists = known !== undefined && !known.isGone;
  if (after === undefined)
    return exists ? null : { sha: null, isGone: false, doubt: known?.doubt ?? "told", isNew: true };
  if (before === undefined) return exists && known.doubt === null ? { ...known, doubt: "told" } : null;
  const isContradicted = known?.doubt === "contradicted";
  // A ref that does not exist here points nowhere.
  const current = exists ? known.sha : null;
  // The event that a write or another event announced.
  if (current !== before && current === after && known?.doubt === "told") return { ...known, doubt: null };
  return {
    sha: after,
    isGone: after === null,
    doubt: isContradicted || current !== before ? "contradicted" : null,
    ...(before === null || known?.isNew ? { isNew: true } : {}),
  };
}

/** Makes other writers of this repository's refs wait, since each event is compared with the stored place. */
export async function lockRefs(tx: Transaction, repositoryIds: readonly number[]): Promise<void> {
  await tx.query(sql`
    insert into ref_lists (repository_id, kind) select r, k from unnest(${[...repositoryIds]}::bigint[]) as r,
        unnest(${[...REF_KINDS]}::text[]) as k order by r, k on conflict do nothing`);
  await tx.query(sql`
    select from ref_lists where repository_id = any(${[...repositoryIds]}::bigint[]) order by repository_id, kind for update`);
}

/** Stores, in order, the changes that events report for the refs of one repository. Call `lockRefs` first. */
export async function storeTold(
  tx: Transaction,
  repositoryId: number,
  told: readonly ToldRef[],
  toldAt: Date,
): Promise<void> {
  const keyOf = ({ kind, name }: RefName) => `${kind}/${name}`;
  const names = sql.json(told.map(({ kind, name }) => ({ k: kind, n: name })));
  const rows = await tx.query<KnownRef & RefName>(sql`
    select f.kind, f.name, f.sha, f.doubt, f.deleted_at is not null as "isGone" from refs f
      where f.repository_id = ${repositoryId}
        and (f.kind, f.name) in (select x.k, x.n from json_to_recordset(${names}) as x(k text, n text))`);
  const known = new Map<string, KnownRef>(rows.map((row) => [keyOf(row), row]));
  const changed = new Map<string, RefName & KnownRef>();
  for (const one of told) {
    const next = foldRef(known.get(keyOf(one)), one);
    if (!next) continue;
    known.set(keyOf(one), next);
    changed.set(keyOf(one), { kind: one.kind, name: one.name, ...next });
  }
  if (changed.size === 0) return;
  const written = [...changed.values()].map(({ kind, name, sha, isGone, doubt, isNew = false }) => ({
    ...{ k: kind, n: name, s: sha, g: isGone, d: doubt, w: isNew },
  }));
  // A moved branch keeps its document with the new commit. A moved tag loses its document, since it may have become a
  // tag of another kind.
  await tx.query(sql`
    with x as (select * from json_to_recordset(${sql.json(written)})
      as x(k text, n text, s text, g boolean, d text, w boolean))
    merge into refs f using x on f.repository_id = ${repositoryId} and f.kind = x.k and f.name = x.n
      when matched then update set
        sha = x.s, doubt = x.d, told_at = ${toldAt}, deleted_at = case when x.g then ${toldAt}::timestamptz end,
        commit_sha = case when x.k = 'heads' then x.s end,
        protected = case when ${STAYS} then f.protected end,
        position = case when ${STAYS} then f.position end,
        document = case when not (${STAYS}) then null when x.s = f.sha then f.document
          when x.k = 'heads' then replace(f.document::text, f.sha, x.s)::json end,
        listed = case when ${STAYS} and x.s = f.sha then f.listed end
      when not matched then insert (repository_id, kind, name, sha, commit_sha, doubt, told_at, deleted_at)
        values (${repositoryId}, x.k, x.n, x.s, case when x.k = 'heads' then x.s end, x.d, ${toldAt},
          case when x.g then ${toldAt}::timestamptz end)`);
}

/** A branch or tag as a read of all refs shows it. */
export interface ReadRef {
  name: string;
  sha: string;
  document: Fields;
}

/**
 * Whether a read that began at `startedAt` may overwrite the row `f` of `refs`. It may not if an event or a write told
 * of the ref so lately that the replica that answered may not have known it.
 */
function mayOverwrite(startedAt: Date): SQL {
  return sql`(f.told_at is null or f.told_at < ${new Date(startedAt.getTime() - REPLICA_LAG_MS)}::timestamptz)`;
}

/**
 * Stores where a read shows all branches, or all tags. Those that it lacks are deleted, if it is whole. Call `lockRefs`
 * first.
 */
export async function storeReadRefs(
  tx: Transaction,
  repositoryId: number,
  { kind, refs, isWhole, startedAt }: { kind: RefKind; refs: readonly ReadRef[]; isWhole: boolean; startedAt: Date },
): Promise<void> {
  const rows = refs.map(({ name, sha, document }) => ({ n: name, s: sha, d: JSON.stringify(document) }));
  const x = sql`json_to_recordset(${sql.json(rows)}) as x(n text, s text, d text)`;
  await tx.query(sql`
    delete from refs f where f.repository_id = ${repositoryId} and f.kind = ${kind} and ${mayOverwrite(startedAt)}
      and ${isWhole}::boolean and not exists (select from ${x} where x.n = f.name)`);
  await tx.query(sql`
    insert into refs as f (repository_id, kind, name, sha, commit_sha, document)
      select ${repositoryId}, ${kind}, x.n, x.s, case when ${kind} = 'heads' then x.s end, x.d::json from ${x} order by x.n
      on conflict (repository_id, kind, name) do update set sha = excluded.sha, document = excluded.document, doubt = null,
        deleted_at = null, commit_sha = coalesce(excluded.commit_sha, case when f.sha = excluded.sha then f.commit_sha end),
        protected = case when f.deleted_at is null then f.protected end,
        listed = case when f.sha = excluded.sha then f.listed end
        where ${mayOverwrite(startedAt)}`);
  // A recent webhook's word about a ref is certain once a read shows the same.
  await tx.query(sql`
    update refs f set document = x.d::json from ${x} where f.repository_id = ${repositoryId} and f.kind = ${kind}
      and f.name = x.n and f.sha = x.s and f.document is null and f.deleted_at is null`);
}

/** Stores what the list of branches alone shows: whether a branch is protected. */
export async function storeListedBranches(
  tx: Transaction,
  repositoryId: number,
  branches: readonly { name: string; isProtected: boolean }[],
): Promise<void> {
  const rows = branches.map(({ name, isProtected }) => ({ n: name, p: isProtected }));
  await tx.query(sql`
    update refs f set protected = x.p from json_to_recordset(${sql.json(rows)}) as x(n text, p boolean)
      where f.repository_id = ${repositoryId} and f.kind = 'heads' and f.name = x.n`);
}

/** Stores what the list of tags alone shows: the commit and the place of a tag. */
export async function storeListedTags(
  tx: Transaction,
  repositoryId: number,
  {
    tags,
    startedAt,
  }: { tags: readonly { name: string; commitSha: string; position: number; listed: Fields }[]; startedAt: Date },
): Promise<void> {
  const rows = tags.map(({ name, commitSha, position, listed }) => ({
    ...{ n: name, c: commitSha, i: position, d: JSON.stringify(listed) },
  }));
  await tx.query(sql`
    update refs f set commit_sha = x.c, position = x.i, listed = x.d::json
      from json_to_recordset(${sql.json(rows)}) as x(n text, c text, i integer, d text)
      where f.repository_id = ${repositoryId} and f.kind = 'tags' and f.name = x.n and ${mayOverwrite(startedAt)}`);
}

/**
 * Notes that a caller asked upstream to make, move or delete these refs. A mark has them read, in case no push event
 * comes.
 */
export async function storeDoubt(
  tx: Transaction,
  repositoryId: number,
  refs: readonly RefName[],
  at: Date,
): Promise<void> {
  const names = sql.json(refs.map(({ kind, name }) => ({ k: kind, n: name })));
  await tx.query(sql`
    insert into refs as f (repository_id, kind, name, told_at, doubt)
      select distinct ${repositoryId}::bigint, x.k, x.n, ${at}::timestamptz, 'told'
        from json_to_recordset(${names}) as x(k text, n text) order by 2, 3
      on conflict (repository_id, kind, name) do update
        set doubt = coalesce(f.doubt, excluded.doubt), told_at = excluded.told_at`);
  await storeMarks(tx, [{ ...repositoryMark("refs", repositoryId, at), notBefore: afterLag(at) }]);
  tx.touch([repositoryId]);
}

/** Takes back the doubt that `storeDoubt` noted at `at`, since upstream changed nothing. */
export async function endDoubt(
  tx: Transaction,
  repositoryId: number,
  refs: readonly RefName[],
  at: Date,
): Promise<void> {
  const names = sql.json(refs.map(({ kind, name }) => ({ k: kind, n: name })));
  const own = sql`f.repository_id = ${repositoryId} and f.doubt = 'told' and f.told_at = ${at}
    and (f.kind, f.name) in (select x.k, x.n from json_to_recordset(${names}) as x(k text, n text))`;
  await tx.query(sql`delete from refs f where ${own} and f.sha is null and f.deleted_at is null`);
  await tx.query(sql`update refs f set doubt = null where ${own}`);
  tx.touch([repositoryId]);
}

/** Whether the row `f` is still the ref that the event `x` tells about, and not a new one of that name. */
const STAYS = sql`not x.w and not x.g and f.deleted_at is null and f.sha is not null`;
