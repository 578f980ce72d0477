import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Fields, type Json, objectOf, textOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { IS_UNSURE } from "../../mirror/read/refs.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { InvalidRepresentationError, observeListed, requireList } from "../../mirror/store/observation.ts";
import { lockRefs, type RefKind, refNameOf } from "../../mirror/store/refs.ts";
import { UpstreamRefusedError } from "../../upstream/client/errors.ts";
import { type Page, pages } from "../../upstream/client/pagination.ts";
import { replaceValidators, type Validator } from "../../upstream/conditional/validators.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { AbsentError } from "../problems/causes.ts";
import { PAGE_SIZE, sightingOf } from "../reads/pages.ts";

/**
 * Reads all branches, or all tags. One answer shows where all of them point to; their list then shows the rest. If a
 * webhook told about a ref so lately that a replica may lag, the webhook's word stays.
 * @throws AbsentError when upstream does not show them; RemovedError when the repository is removed meanwhile
 */
export async function fetchAndStoreRefs(ctx: Context, repository: MirroredRepository, kind: RefKind): Promise<void> {
  const { id } = repository;
  const startedAt = ctx.clock.now();
  const [known] = await ctx.db.query<{ hasMoved: boolean; isUnsure: boolean }>(sql`
    select exists (select from refs f where f.repository_id = ${id} and f.kind = ${kind}
          and (f.told_at >= l.read_at or l.read_at is null)) as "hasMoved",
        exists (select from refs f where f.repository_id = ${id} and f.kind = ${kind} and ${IS_UNSURE}) as "isUnsure"
      from ref_lists l where l.repository_id = ${id} and l.kind = ${kind}`);
  // An unchanged page proves nothing where webhooks have changed our rows since, or where a row lacks something.
  const isUnsure = known?.isUnsure ?? false;
  const objects = askingFor((known?.hasMoved ?? false) || isUnsure);
  await fetchAndStoreObjects(ctx, repository, { kind, startedAt, ...objects });
  let start = 0;
  const first = `/repositories/${id}/${kind === "heads" ? "branches" : "tags"}?per_page=${PAGE_SIZE}`;
  for await (const page of pages(ctx.upstream, first, { priority: "refresh", ...askingFor(isUnsure) })) {
    requireShown(repository, page);
    if (page.kind === "ok") await storePage(ctx, repository, page, { kind, start, startedAt });
    start += PAGE_SIZE;
  }
  await whileMirrored(ctx, repository, async (tx) => {
    await tx.query(sql`
      update ref_lists set read_at = ${startedAt} where repository_id = ${id} and kind = ${kind}`);
    tx.touch([id]);
  });
}

function askingFor(anew: boolean): { conditional: boolean; anew: boolean } {
  return { conditional: !anew, anew };
}

function requireShown({ fullName }: MirroredRepository, { kind }: Pick<Page, "kind">): void {
  if (kind === "moved" || kind === "missing") throw new AbsentError(`Upstream does not show the refs of ${fullName}`);
}

interface RefsRead {
  kind: RefKind;
  startedAt: Date;
  conditional: boolean;
  anew: boolean;
}

/** GitHub docs: "List matching references" has no pages. */
async function fetchAndStoreObjects(ctx: Context, repository: MirroredRepository, asked: RefsRead): Promise<void> {
  const { kind, startedAt, conditional, anew } = asked;
  const path = `/repositories/${repository.id}/git/matching-refs/${kind}`;
  try {
    const answer = await ctx.upstream.get(path, { priority: "refresh", conditional, anew });
    requireShown(repository, answer);
    if (answer.kind !== "ok") return;
    const at = sightingOf(ctx, repository, answer.seenAt);
    const rows = requireList(path, answer.body).flatMap((row) => {
      const named = refNameOf(textOf(objectOf(row).ref) ?? "");
      if (named?.kind !== kind) return [];
      const sha = textOf(objectOf(objectOf(row).object).sha);
      if (sha === null) throw new InvalidRepresentationError(`Upstream answers ${path} with a ref that leads nowhere`);
      return [{ n: named.name, s: sha, d: JSON.stringify(observeListed(objectOf(row), at).fields) }];
    });
    await storeObjects(ctx, repository, { kind, startedAt, rows, validator: answer.validator });
  } catch (error) {
    // Upstream answers 409 for an empty repository, which has no refs.
    if (!(error instanceof UpstreamRefusedError && error.status === 409)) throw error;
    await storeObjects(ctx, repository, { kind, startedAt, rows: [], validator: null });
  }
}

async function storeObjects(
  ctx: Context,
  repository: MirroredRepository,
  {
    kind,
    startedAt,
    rows,
    validator,
  }: {
    kind: RefKind;
    startedAt: Date;
    rows: readonly { n: string; s: string; d: string }[];
    validator: Validator | null;
  },
): Promise<void> {
  const { id } = repository;
  const isOld = sql`(f.told_at is null or f.told_at < ${new Date(startedAt.getTime() - REPLICA_LAG_MS)}::timestamptz)`;
  await whileMirrored(ctx, repository, async (tx) => {
    await lockRefs(tx, [id]);
    const x = sql`json_to_recordset(${JSON.stringify(rows)}::json) as x(n text, s text, d text)`;
    await tx.query(sql`
      delete from refs f where f.repository_id = ${id} and f.kind = ${kind} and ${isOld}
        and not exists (select from ${x} where x.n = f.name)`);
    await tx.query(sql`
      insert into refs as f (repository_id, kind, name, sha, commit_sha, document)
        select ${id}, ${kind}, x.n, x.s, case when ${kind} = 'heads' then x.s end, x.d::json from ${x} order by x.n
        on conflict (repository_id, kind, name) do update set sha = excluded.sha, document = excluded.document, doubt = null,
          deleted_at = null, commit_sha = coalesce(excluded.commit_sha, case when f.sha = excluded.sha then f.commit_sha end),
          protected = case when f.deleted_at is null then f.protected end,
          listed = case when f.sha = excluded.sha then f.listed end
          where ${isOld}`);
    // A recent webhook's word about a ref is certain once a read shows the same.
    await tx.query(sql`
      update refs f set document = x.d::json from ${x} where f.repository_id = ${id} and f.kind = ${kind} and f.name = x.n
        and f.sha = x.s and f.document is null and f.deleted_at is null`);
    await keep(tx, validator, null);
    tx.touch([id]);
  });
}

/** Stores what the list alone shows: whether a branch is protected, or the commit and the place of a tag. */
async function storePage(
  ctx: Context,
  repository: MirroredRepository,
  page: Extract<Page, { kind: "ok" }>,
  { kind, start, startedAt }: { kind: RefKind; start: number; startedAt: Date },
): Promise<void> {
  const at = sightingOf(ctx, repository, page.seenAt);
  const rows = requireList(page.path, page.body).map((row, place) => {
    const { name, commit, protected: isProtected } = objectOf(row);
    const [text, sha] = [textOf(name), textOf(objectOf(commit).sha)];
    if (text === null || sha === null)
      throw new InvalidRepresentationError(`Upstream answers ${page.path} with what has no name or no commit`);
    return { n: text, c: sha, p: isProtected === true, i: start + place, d: listedOf(kind, row, at) };
  });
  const x = sql`json_to_recordset(${JSON.stringify(rows)}::json) as x(n text, c text, p boolean, i integer, d text)`;
  await whileMirrored(ctx, repository, async (tx) => {
    await tx.query(
      kind === "heads"
        ? sql`update refs f set protected = x.p from ${x}
            where f.repository_id = ${repository.id} and f.kind = 'heads' and f.name = x.n`
        : sql`update refs f set commit_sha = x.c, position = x.i, listed = x.d::json from ${x}
            where f.repository_id = ${repository.id} and f.kind = 'tags' and f.name = x.n
              and (f.told_at is null or f.told_at < ${new Date(startedAt.getTime() - REPLICA_LAG_MS)}::timestamptz)`,
    );
    await keep(tx, page.validator, page.links.next ?? null);
    tx.touch([repository.id]);
  });
}

function listedOf(kind: RefKind, row: Json, at: Parameters<typeof observeListed>[1]): string | null {
  const fields: Fields = objectOf(row);
  return kind === "heads" ? null : JSON.stringify(observeListed(fields, at).fields);
}

async function keep(tx: Transaction, validator: Validator | null, next: string | null): Promise<void> {
  if (validator) await replaceValidators(tx, { ...validator, next });
}
