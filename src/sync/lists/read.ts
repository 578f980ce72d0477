import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { isOfHead, type ListName, noteVersions, type RestListName, storeListed } from "../../mirror/store/lists.ts";
import { storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { joinObserved, observeListed, requireList } from "../../mirror/store/observation.ts";
import { replaceValidators } from "../../upstream/conditional/validators.ts";
import { type Page, pages } from "../../upstream/protocol/pagination.ts";
import type { Priority } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { AbsentError } from "../problems/errors.ts";
import { PAGE_SIZE, sightingOf } from "../reads/pages.ts";

/** A list that has to be read. */
export interface UnreadList {
  list: ListName;
  number: number;
  /** The version of the pull request that the list will belong to. */
  version: string;
  heardAt: Date;
  isOpen: boolean;
}

/**
 * Reads a list to its end, and stores it page by page. The list counts as read only if it belongs to the head that the
 * mirror knows. Most lists show their head. A list that does not is believed once no replica can lag.
 * @throws AbsentError when upstream does not show it; RemovedError when the repository is removed meanwhile
 */
export async function fetchAndStoreList(
  ctx: Context,
  repository: MirroredRepository,
  { list, number, version, heardAt }: UnreadList & { list: RestListName },
  priority: Priority,
): Promise<"read" | "unread"> {
  const key = { repositoryId: repository.id, list, number };
  const startedAt = ctx.clock.now();
  const first = `/repositories/${repository.id}/pulls/${number}/${list}?per_page=${PAGE_SIZE}`;
  let start = 0;
  for await (const page of pages(ctx.upstream, first, { priority, isBelieved: true })) {
    if (page.kind === "moved" || page.kind === "missing")
      throw new AbsentError(`Upstream does not show the ${list} of ${repository.fullName}#${number}`);
    await storeListPage(ctx, repository, { key, version, start, page });
    start += PAGE_SIZE;
  }
  return await whileMirrored(ctx, repository, async (tx) => {
    const [head = ""] = version.split(" ");
    const isNamed = await isOfHead(tx, key, head);
    const isKnownToAll = startedAt.getTime() > heardAt.getTime() + REPLICA_LAG_MS;
    if (isNamed === "no" && isKnownToAll)
      await storeMarks(tx, [
        { kind: "pull_request", repositoryId: repository.id, key: number, askedAt: startedAt, notBefore: startedAt },
      ]);
    if (isNamed === "no" || (isNamed === "unknown" && !isKnownToAll)) return "unread";
    const read = await tx.count(sql`
      update mirrored_lists set read_at = ${startedAt}
        where repository_id = ${repository.id} and list = ${list} and number = ${number} and version = ${version}
        returning number`);
    tx.touch([repository.id]);
    return read > 0 ? "read" : "unread";
  });
}

/** Stores one page. An unchanged page stores nothing; if it is the last page, rows after it are deleted. */
async function storeListPage(
  ctx: Context,
  repository: MirroredRepository,
  {
    key,
    version,
    start,
    page,
  }: { key: { repositoryId: number; list: ListName; number: number }; version: string; start: number; page: Page },
): Promise<void> {
  const { repositoryId, list, number } = key;
  const next = page.kind === "ok" ? (page.links.next ?? null) : page.kind === "unchanged" ? page.next : null;
  const end = next === null ? null : start + PAGE_SIZE;
  if (page.kind !== "ok" && end !== null && start > 0) return;
  await whileMirrored(ctx, repository, async (tx) => {
    if (start === 0)
      await noteVersions(tx, sql`values (${repositoryId}, ${list}, ${number}, ${version}, ${ctx.clock.now()})`);
    if (page.kind !== "ok") {
      if (end === null) await storeListed(tx, key, { rows: [], start: start + PAGE_SIZE, end });
      return;
    }
    const at = sightingOf(ctx, repository, page.seenAt);
    const rows = requireList(page.path, page.body).map((row) => observeListed(objectOf(row), at));
    await mergeObserved(tx, joinObserved(rows.map(({ embedded }) => embedded)));
    // Until the last page is read, the list mixes the old and the new version.
    await tx.query(sql`
      update mirrored_lists set read_at = null
        where repository_id = ${repositoryId} and list = ${list} and number = ${number}`);
    await storeListed(tx, key, { rows: rows.map(({ fields }) => fields), start, end });
    if (page.validator) await replaceValidators(tx, [{ ...page.validator, next }]);
    tx.touch([repositoryId]);
  });
}
