import { and, eq } from "drizzle-orm";
import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf, textOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { IS_UNSURE } from "../../mirror/read/refs.ts";
import { observeListed, requireList } from "../../mirror/store/observation.ts";
import {
  lockRefs,
  type ReadRef,
  type RefKind,
  refNameOf,
  storeListedBranches,
  storeListedTags,
  storeReadRefs,
} from "../../mirror/store/refs.ts";
import { refLists } from "../../schema.ts";
import { replaceValidators } from "../../upstream/conditional/validators.ts";
import { type Page, pages } from "../../upstream/protocol/pagination.ts";
import type { Validator } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { AbsentError } from "../problems/errors.ts";
import { PAGE_SIZE, sightingOf } from "../reads/pages.ts";
import { isEmptyRepository } from "../reads/repository.ts";

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
    if (page.kind === "ok") await storeRefsPage(ctx, repository, page, { kind, start, startedAt });
    start += PAGE_SIZE;
  }
  await whileMirrored(ctx, repository, async (tx) => {
    await tx
      .update(refLists)
      .set({ readAt: startedAt })
      .where(and(eq(refLists.repositoryId, id), eq(refLists.kind, kind)));
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
    const read = await ctx.upstream.get(path, { priority: "refresh", conditional, anew });
    requireShown(repository, read);
    // One empty answer may be a fault of the server that gave it, and would delete everything.
    const isDoubted =
      read.kind === "ok" && requireList(path, read.body).length === 0 && (await holdsRefs(ctx, repository, kind));
    const answer = isDoubted
      ? await ctx.upstream.get(path, { priority: "refresh", conditional: false, anew: true })
      : read;
    requireShown(repository, answer);
    if (answer.kind !== "ok") return;
    const at = sightingOf(ctx, repository, answer.seenAt);
    const rows = requireList(path, answer.body);
    let odd = 0;
    const refs = rows.flatMap((row): ReadRef[] => {
      const ref = textOf(objectOf(row).ref);
      const named = refNameOf(ref ?? "");
      if (ref !== null && named?.kind !== kind) return [];
      const sha = textOf(objectOf(objectOf(row).object).sha);
      if (named && sha !== null) return [{ name: named.name, sha, document: observeListed(objectOf(row), at).fields }];
      odd++;
      return [];
    });
    const isWhole = noteOdd(ctx, repository, path, odd);
    await storeObjects(ctx, repository, { kind, startedAt, refs, isWhole, validator: answer.validator });
  } catch (error) {
    if (!isEmptyRepository(error)) throw error;
    await storeObjects(ctx, repository, { kind, startedAt, refs: [], isWhole: true, validator: null });
  }
}

/** One that cannot be read concerns no other: what the mirror holds of it stays. Answers whether there is none. */
function noteOdd(ctx: Pick<Context, "log">, { fullName }: MirroredRepository, path: string, count: number): boolean {
  if (count > 0) ctx.log.warn({ repository: fullName, path, count }, "Upstream shows refs that cannot be read");
  return count === 0;
}

async function holdsRefs({ db }: Pick<Context, "db">, { id }: MirroredRepository, kind: RefKind): Promise<boolean> {
  const held = await db.count(sql`
    select from refs where repository_id = ${id} and kind = ${kind} and deleted_at is null limit 1`);
  return held > 0;
}

async function storeObjects(
  ctx: Context,
  repository: MirroredRepository,
  { validator, ...read }: Parameters<typeof storeReadRefs>[2] & { validator: Validator | null },
): Promise<void> {
  const { id } = repository;
  await whileMirrored(ctx, repository, async (tx) => {
    await lockRefs(tx, [id]);
    await storeReadRefs(tx, id, read);
    await keep(tx, read.isWhole ? validator : null, null);
    tx.touch([id]);
  });
}

async function storeRefsPage(
  ctx: Context,
  repository: MirroredRepository,
  page: Extract<Page, { kind: "ok" }>,
  { kind, start, startedAt }: { kind: RefKind; start: number; startedAt: Date },
): Promise<void> {
  const { id } = repository;
  const at = sightingOf(ctx, repository, page.seenAt);
  const shown = requireList(page.path, page.body);
  const rows = shown.flatMap((row, place) => {
    const fields = objectOf(row);
    const [name, commitSha] = [textOf(fields.name), textOf(objectOf(fields.commit).sha)];
    if (name === null || commitSha === null) return [];
    return [{ name, commitSha, isProtected: fields.protected === true, position: start + place, fields }];
  });
  const isWhole = noteOdd(ctx, repository, page.path, shown.length - rows.length);
  const tags =
    kind === "tags" ? rows.map(({ fields, ...tag }) => ({ ...tag, listed: observeListed(fields, at).fields })) : [];
  await whileMirrored(ctx, repository, async (tx) => {
    if (kind === "heads") await storeListedBranches(tx, id, rows);
    else await storeListedTags(tx, id, { tags, startedAt });
    await keep(tx, isWhole ? page.validator : null, page.links.next ?? null);
    tx.touch([id]);
  });
}

async function keep(tx: Transaction, validator: Validator | null, next: string | null): Promise<void> {
  if (validator) await replaceValidators(tx, [{ ...validator, next }]);
}
