import { and, eq } from "drizzle-orm";
import type { Transaction } from "../../../db/database.ts";
import type { Context } from "../../context.ts";
import type { Kind, ResourceKey } from "../../kinds/contract/kind.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { afterLag, type Mark, marksForConflicts, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { joinObserved, observe, overruling, requireList } from "../../mirror/store/observation.ts";
import { auditPages } from "../../schema.ts";
import { replaceValidators } from "../../upstream/conditional/validators.ts";
import type { ReadAnswer } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks } from "../marks/marks.ts";
import {
  markForUnread,
  noteNameless,
  observeRows,
  RepositoryUnavailableError,
  requireCopied,
  sightingOf,
} from "../reads/pages.ts";
import { compareWithStored, fingerprintOf } from "./comparison.ts";
import type { Drift } from "./report.ts";

export interface AuditedPage {
  next: string | null;
  keys: number[];
  isUnchanged: boolean;
  drift: Drift[];
  /** As in `Comparison`. */
  changing: ResourceKey[];
}

interface PageCheck {
  kind: Kind;
  path: string;
  repair: boolean;
  signal: AbortSignal;
}

/**
 * Compares one page with the mirror, and repairs the mirror if `repair` is set. The request is conditional only while
 * our rows are the same as when they equalled the page. Then a 304 proves that they are equal now. `remember` writes in
 * the same transaction.
 * @throws RepositoryUnavailableError when upstream does not show the list
 * @throws RemovedError when the repository is removed meanwhile
 */
export async function auditPage(
  ctx: Context,
  repository: MirroredRepository,
  { kind, path, repair, signal }: PageCheck,
  remember: (tx: Transaction, page: AuditedPage) => Promise<void>,
): Promise<AuditedPage> {
  const proven = await findProven(ctx, repository, kind, path);
  const conditional = proven !== null;
  const answer = await ctx.upstream.get(path, { priority: "audit", conditional, anew: !conditional, signal });
  switch (answer.kind) {
    case "unchanged": {
      if (!proven) throw new Error(`Upstream answers 304 for ${path}, which was not asked conditionally`);
      const page = { next: answer.next, keys: proven.keys, isUnchanged: true, drift: [], changing: [] };
      await whileMirrored(ctx, repository, async (tx) => {
        await savePage(tx, repository.id, kind, path, { ...proven, walkedAt: answer.seenAt });
        await remember(tx, page);
      });
      return page;
    }
    case "ok":
      requireCopied(answer, repository);
      return storeCompared(ctx, repository, { kind, path, repair }, answer, remember);
    case "moved":
    case "missing":
      throw new RepositoryUnavailableError(
        `Upstream does not show ${path}: ${answer.kind === "missing" ? answer.message : "it has moved"}`,
      );
    default:
      return answer satisfies never;
  }
}

async function storeCompared(
  ctx: Context,
  repository: MirroredRepository,
  { kind, path, repair }: Omit<PageCheck, "signal">,
  answer: Extract<ReadAnswer, { kind: "ok" }>,
  remember: (tx: Transaction, page: AuditedPage) => Promise<void>,
): Promise<AuditedPage> {
  const isSingle = kind === "repository";
  const at = { ...sightingOf(ctx, repository, answer.seenAt), isSingle };
  const { observed: each, ...odd } = isSingle
    ? { observed: [observe(kind, answer.body, at)], unread: [], nameless: [] }
    : observeRows(kind, requireList(path, answer.body), at);
  await noteNameless(ctx, repository, kind, odd.nameless);
  const observed = overruling(joinObserved(each));
  const extent = isSingle ? "single" : "whole";
  const read = each.flatMap(({ seen }) =>
    seen.filter((one) => one.kind === kind && one.extent === extent).map(({ key }) => key),
  );
  const keys = [...read, ...odd.unread];
  let marks: Mark[] = [];
  const page = await whileMirrored(ctx, repository, async (tx) => {
    const before = await compareWithStored(tx, observed);
    if (repair) {
      marks = marksForConflicts(await mergeObserved(tx, observed), ctx.clock.now());
      marks.push(...before.changing.map((one) => markForChanging(one, ctx.clock.now())));
      marks.push(...odd.unread.map((key) => markForUnread(ctx, repository, kind, key)));
      await storeMarks(tx, marks);
    }
    const isEqual = before.isEqual || (repair && (await compareWithStored(tx, observed)).isEqual);
    const isWhole = odd.unread.length === 0 && odd.nameless.length === 0;
    const fingerprint = isEqual && isWhole ? await fingerprintOf(tx, repository.id, kind, keys) : null;
    await savePage(tx, repository.id, kind, path, { keys, fingerprint, walkedAt: answer.seenAt });
    // Rows that differ from the page, or cannot be read, get no validator: a later 304 would call them equal, here and in
    // other jobs.
    if (answer.validator && fingerprint !== null) {
      // Another validator is from another moment, when the page may have differed from our rows.
      await replaceValidators(tx, [answer.validator]);
    }
    const compared = { next: answer.links.next ?? null, keys, isUnchanged: false, ...before };
    await remember(tx, compared);
    return compared;
  });
  await enqueueMarks(ctx, marks);
  return page;
}

/** Upstream is asked again once no replica's lag can explain the difference. */
function markForChanging({ kind, repositoryId, key }: ResourceKey, askedAt: Date): Mark {
  return { kind, repositoryId, key, askedAt, notBefore: afterLag(askedAt) };
}

interface KnownPage {
  keys: number[];
  fingerprint: string | null;
}

/** The page as it was seen last, if our rows are still equal to what it showed. */
async function findProven(
  ctx: Pick<Context, "db">,
  repository: MirroredRepository,
  kind: Kind,
  path: string,
): Promise<KnownPage | null> {
  const [known] = await ctx.db
    .select({ keys: auditPages.keys, fingerprint: auditPages.fingerprint })
    .from(auditPages)
    .where(and(eq(auditPages.repositoryId, repository.id), eq(auditPages.kind, kind), eq(auditPages.path, path)));
  if (!known || known.fingerprint === null) return null;
  const now = await fingerprintOf(ctx.db, repository.id, kind, known.keys);
  return now === known.fingerprint ? known : null;
}

async function savePage(
  tx: Transaction,
  repositoryId: number,
  kind: Kind,
  path: string,
  page: KnownPage & { walkedAt: Date },
): Promise<void> {
  await tx
    .insert(auditPages)
    .values({ repositoryId, kind, path, ...page })
    .onConflictDoUpdate({ target: [auditPages.repositoryId, auditPages.kind, auditPages.path], set: page });
}
