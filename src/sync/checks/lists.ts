import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Json, objectOf, textOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { marksForConflicts, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import {
  InvalidRepresentationError,
  joinObserved,
  type Observed,
  overruling,
  requireList,
  type Seen,
} from "../../mirror/store/observation.ts";
import { seenBefore } from "../../mirror/store/seen-before.ts";
import { replaceValidators } from "../../upstream/conditional/validators.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { pages } from "../../upstream/protocol/pagination.ts";
import type { Priority, Validator } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { observeRows, PER_PAGE, sightingOf } from "../reads/pages.ts";
import { tombstonesOf } from "../reads/read-anew.ts";

/** A list that hangs on a commit. */
export type CheckList = "check_run" | "check_suite" | "status";

interface ReadOfList {
  list: CheckList;
  sha: string;
  priority: Priority;
  /** Our rows are known to differ from upstream, so a 304 would prove nothing. */
  anew?: boolean;
}

const CHECK_LISTS: Readonly<
  Record<CheckList, { path: (sha: string) => string; rows: (body: Json) => Json; column: string; table: string }>
> = {
  check_run: {
    path: (sha) => `commits/${sha}/check-runs?filter=all&${PER_PAGE}`,
    rows: (body) => objectOf(body).check_runs ?? null,
    table: "check_runs",
    column: "head_sha",
  },
  check_suite: {
    path: (sha) => `commits/${sha}/check-suites?${PER_PAGE}`,
    rows: (body) => objectOf(body).check_suites ?? null,
    table: "check_suites",
    column: "head_sha",
  },
  status: {
    path: (sha) => `commits/${sha}/statuses?${PER_PAGE}`,
    rows: (body) => body,
    table: "commit_statuses",
    column: "sha",
  },
};

/**
 * Reads one list of a commit and stores it, with `remember` in the same transaction. Rows that upstream does not list
 * any more are gone. "absent": upstream shows the mirror no such commit, or no such list.
 * @throws RemovedError when the repository is removed meanwhile
 */
export async function fetchAndStoreCheckList(
  ctx: Context,
  repository: MirroredRepository,
  { list, sha, priority, anew = false }: ReadOfList,
  remember: (tx: Transaction, startedAt: Date) => Promise<void> = async () => {},
): Promise<"read" | "absent"> {
  const { path, rows: rowsIn } = CHECK_LISTS[list];
  const first = `/repositories/${repository.id}/${path(sha)}`;
  const startedAt = ctx.clock.now();
  const observed: Observed[] = [];
  const validators: Validator[] = [];
  let isWhole = true;
  try {
    for await (const page of pages(ctx.upstream, first, { priority, conditional: !anew, anew })) {
      if (page.kind === "moved" || page.kind === "missing") return "absent";
      isWhole &&= page.kind === "ok";
      if (page.kind !== "ok") continue;
      const at = sightingOf(ctx, repository, page.seenAt);
      const rows = requireList(page.path, rowsIn(page.body));
      const shas = list === "status" ? [] : rows.flatMap((row) => textOf(objectOf(row).head_sha) ?? []);
      if (shas.some((shown) => shown !== sha))
        throw new InvalidRepresentationError(`Upstream answers ${page.path} with what is of another commit`);
      // One that cannot be read concerns no other: what the mirror holds of it stays.
      const { observed: read, nameless } = observeRows(list, rows, at);
      if (nameless.length > 0) {
        const { fullName } = repository;
        ctx.log.warn(
          { repository: fullName, path: page.path, reason: nameless[0] },
          "Upstream shows checks that cannot be read",
        );
        isWhole = false;
      }
      // A list is read to be compared: see `merge-rule.ts`.
      observed.push(...read.map((one) => overruling(one, ({ kind }) => kind === list)));
      if (nameless.length > 0) continue;
      if (page.validator) validators.push({ ...page.validator, next: page.links.next ?? null });
    }
  } catch (error) {
    // Upstream words it so of a commit that it does not know.
    if (error instanceof UpstreamRefusedError && error.status === 422) return "absent";
    throw error;
  }
  await whileMirrored(ctx, repository, async (tx) => {
    const met = joinObserved(observed);
    const gone = isWhole
      ? await findUnlistedChecks(ctx, tx, repository.id, { list, sha, startedAt, met: met.seen })
      : [];
    const merged = await mergeObserved(tx, joinObserved([met, ...gone]));
    await storeMarks(tx, marksForConflicts(merged, startedAt));
    await replaceValidators(tx, validators);
    await remember(tx, startedAt);
    tx.touch([repository.id]);
  });
  return "read";
}

/** Tombstones of the rows that the list lacks. Newer rows are left out, since a replica may not know them yet. */
async function findUnlistedChecks(
  ctx: Pick<Context, "clock">,
  tx: Transaction,
  repositoryId: number,
  { list, sha, startedAt, met }: { list: CheckList; sha: string; startedAt: Date; met: readonly Seen[] },
): Promise<Observed[]> {
  const { table, column } = CHECK_LISTS[list];
  const listed = met.filter(({ kind }) => kind === list).map(({ key }) => key);
  const rows = await tx.query<{ id: number }>(sql`
    select t.id from ${sql.identifier(table)} t where t.repository_id = ${repositoryId}
      and ${sql.identifier(`t.${column}`)} = ${sha} and t.deleted_at is null and not t.id = any(${listed}::bigint[])
      and ${seenBefore(sql`t.seen_at`, { readAt: startedAt, now: tx.now() })} order by t.id`);
  return rows.map(({ id }) => tombstonesOf(ctx, { kind: list, repositoryId, key: id }));
}
