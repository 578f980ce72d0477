import { type Queries, together } from "../../../db/database.ts";
import { type MarkKind, WHOLE_KINDS, type WholeKind } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { levelOf } from "../../failure.ts";
import type { ResourceKey } from "../../kinds/contract/kind.ts";
import { resourceOf } from "../../kinds/registry.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import {
  afterLag,
  isAboutLack,
  MARK_COLUMNS,
  type Mark,
  type MarkKey,
  marksForConflicts,
  marksForMergeability,
  storeMarks,
} from "../../mirror/store/marks.ts";
import { findAllStored, mergeObserved } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { joinObserved, type Observed, overruling } from "../../mirror/store/observation.ts";
import { storeTransfer } from "../../mirror/store/transfers.ts";
import { refreshId } from "../../queues/jobs.ts";
import { enqueueCatchUp } from "../../queues/queues.ts";
import { NotYetError, UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import type { ReadAnswer } from "../../upstream/protocol/upstream.ts";
import { Batches } from "../../work/batches.ts";
import { Gather } from "../../work/gather.ts";
import { endOrPause } from "../following/pause.ts";
import { marksForClosers } from "../marks/closers.ts";
import { marksForCounting } from "../marks/counts.ts";
import { enqueueMarks, lockMarks, nextAsk, postponeMarks, settleMarks } from "../marks/marks.ts";
import { RemovedError } from "../problems/errors.ts";
import { failAlone } from "../problems/isolated.ts";
import {
  endProblem,
  findProblems,
  type Problem,
  problemName,
  rests,
  type Subject,
  tryAgain,
} from "../problems/problems.ts";
import { IDS_A_QUERY, type NodeQuestion, NodeQuestions } from "../questions/node-questions.ts";
import { observeValues } from "../questions/node-values.ts";
import { type QuestionPace, QuestionsPacedError, takeMomentAlone } from "../questions/paced.ts";
import { isToldAlone, toldRows } from "../questions/told-rows.ts";
import { fetchAndStoreMissingComments } from "../reads/missing-comments.ts";
import { readAnew, upstreamPathOf } from "../reads/read-anew.ts";
import { askedBelow, refreshAsked } from "../resource-lists/below.ts";
import { refreshWhole } from "../wholes/whole.ts";
import { readBlocked } from "./blocked-issues.ts";
import { IssueSides, issueSideOf, keysInDoubt } from "./issue-sides.ts";
import { refreshMergeability } from "./mergeability.ts";
import { wholeFor } from "./wholes.ts";

/** "unknown": the mirror does not know where to ask; "kept": upstream's answer proves nothing. */
type RefreshOutcome = "merged" | "deleted" | "kept" | "unknown";

/**
 * How many resources a process reads at once. A read mostly waits: for upstream, for Postgres and for its share of the
 * processor.
 */
export const REFRESHES_AT_ONCE = 32;

/** What was read of one resource, for `mark`. */
interface ReadForMark {
  observed: Observed;
  mark: Mark;
  startedAt: Date;
}

/** A resource of which something is asked. `repository`: null where it is one itself, or belongs to none that is mirrored. */
interface AskedResource {
  wanted: ResourceKey;
  mark: Mark;
  repository: MirroredRepository | null;
  startedAt: Date;
}

/**
 * Reads single resources anew, with authority. Reads that end while others are being stored share one transaction. A
 * read that a lagging replica may have answered does not settle the mark: the resource is asked for once more. A mark
 * that cannot be answered is put off for a while. A 403 counts as a problem of the repository, so all of its marks
 * wait.
 */
export class Refreshes {
  readonly #ctx: Context;
  readonly #stores: Batches<ReadForMark, "stored">;
  readonly #problems: Gather<MarkKey, Troubles>;
  readonly #nodes: NodeQuestions;
  readonly #sides: IssueSides;
  /** The ids of the marks that this process works on. */
  readonly #inHand = new Set<string>();
  /** Those whose resources upstream does not show. One question serves all that come meanwhile. */
  readonly #repositories: Gather<number, Promise<ReadAnswer>>;

  constructor(ctx: Context) {
    this.#ctx = ctx;
    this.#stores = new Batches(ctx, { size: REFRESHES_AT_ONCE, atOnce: 1 }, async (batch) => {
      await enqueueMarks(ctx, await storeReads(ctx, batch));
      return batch.map(() => "stored");
    });
    this.#nodes = new NodeQuestions(ctx, () => this.#joinDue());
    this.#sides = new IssueSides(ctx, {
      prepared: () => this.#nodes.prepared(),
      store: (read) => this.#stores.add(read),
    });
    this.#repositories = new Gather(
      async (ids) => {
        const asked = new Map<number, Promise<ReadAnswer>>();
        const ask = (id: number) => ctx.upstream.get(`/repositories/${id}`, { priority: "refresh" });
        const answers = ids.map((id) => asked.getOrInsertComputed(id, ask));
        await Promise.allSettled(answers);
        return answers;
      },
      { patienceMs: null },
    );
    this.#problems = new Gather((keys) => findTroubles(ctx, keys));
  }

  async refresh(wanted: MarkKey): Promise<RefreshOutcome> {
    const id = refreshId(wanted);
    this.#inHand.add(id);
    try {
      return await this.#refresh(wanted);
    } finally {
      this.#inHand.delete(id);
    }
  }

  async #refresh(wanted: MarkKey): Promise<RefreshOutcome> {
    const ctx = this.#ctx;
    // The mark is read before the resource, so that a reason to ask that comes meanwhile is seen to be newer.
    const [{ own, whole }, mark] = await Promise.all([this.#problems.ask(wanted), ctx.jobReads.mark(wanted)]);
    // A new reason to ask brings the mark's time forward, and no failure of an earlier read puts it off again.
    const isPutOff = mark !== null && mark.notBefore > ctx.clock.now();
    if (whole.problem?.isResting || (own.problem && isPutOff)) return "kept";
    try {
      const { kind, repositoryId } = wanted;
      const outcome = isWholeKind(kind)
        ? await (kind === "mergeability"
            ? refreshMergeability(ctx, this.#nodes, repositoryId)
            : refreshWhole(ctx, this.#nodes, wholeFor(kind), repositoryId))
        : mark === null
          ? "unknown"
          : await this.#refreshResource({ ...wanted, kind }, mark);
      for (const { subject, problem } of [own, whole]) if (problem) await endProblem(ctx, subject, problem);
      return outcome;
    } catch (error) {
      // The mark stays. The next refresh settles it, unless the repository was selected again.
      if (error instanceof RemovedError) return "unknown";
      if (mark && error instanceof NotYetError) return await this.#waitForMirror(mark);
      if (mark && error instanceof QuestionsPacedError) return await this.#putOff(mark, error.notBefore);
      const isForbidden = error instanceof UpstreamRefusedError && error.status === 403;
      const { subject, problem } = isForbidden ? whole : own;
      const nextAt = await failAlone(ctx, subject, error, problem);
      if (mark && subject.key === own.subject.key) await postponeMarks(ctx.db, [{ ...mark, notBefore: nextAt }]);
      return "kept";
    }
  }

  async #refreshResource(wanted: ResourceKey, mark: Mark): Promise<RefreshOutcome> {
    const ctx = this.#ctx;
    const below = askedBelow(mark);
    if (below) {
      const outcome = await refreshAsked(ctx, below, mark);
      if (mark.keys?.length === 1) return outcome;
    }
    const repositoryId = repositoryOf(wanted);
    const asked = await this.#nodes.prepare(() => this.#prepared(wanted, mark));
    if (!asked) {
      await settleMarks(ctx.db, [mark]);
      return "unknown";
    }
    const { known, path, question } = asked;
    const isSide = asked.side === "lacking";
    const side = isSide ? await this.#sides.ask(wanted) : "alone";
    if (asked.side === "held") await settleMarks(ctx.db, [mark]);
    if (asked.side === "held" || side === "found") return "merged";
    if (side === "later") return await this.#putOff(mark, afterLag(ctx.clock.now()));
    if (asked.side === "lost") await takeMomentAlone(ctx, LOST_ROWS, wanted);
    const repository = wanted.kind === "repository" ? null : known;
    const startedAt = ctx.clock.now();
    const answered = question ? await this.#ask({ wanted, mark, repository, startedAt }, question) : null;
    if (answered !== null) return answered;
    if (await isToldAlone(ctx.db, wanted)) await takeMomentAlone(ctx, toldRows(repositoryId), wanted);
    const mayLag = (absent: Observed) => wasSeenLately(ctx, absent, startedAt);
    const read = await readAnew(ctx, wanted, repository, path, {
      ...{ priority: "refresh", mayLag },
      findRepository: async (id) => await this.#repositories.ask(id),
    });
    const { observed, outcome, movedTo, missing } = read;
    if (read.isDoubtful) return await this.#waitForMirror(mark);
    if (movedTo) await ctx.db.transaction((tx) => storeTransfer(tx, { repositoryId, number: wanted.key }, movedTo));
    if (missing !== undefined) await endOrPause(ctx, wanted.key, { from: ["live", "paused"], problem: missing });
    if (read.isTooEarly) {
      // What is lacked stays the same, so any answer that shows it will do.
      const askedAt = isSide || asked.side === "lost" ? mark.askedAt : startedAt;
      const again = { ...wanted, askedAt, notBefore: afterLag(startedAt) };
      const stands = await ctx.db.transaction(async (tx) => {
        const [put] = await postponeMarks(tx, [{ ...mark, notBefore: again.notBefore }]);
        await storeMarks(tx, [again]);
        return { ...again, notBefore: put?.notBefore ?? again.notBefore };
      });
      await enqueueMarks(ctx, [stands]);
      return "kept";
    }
    if (repository && wanted.kind === "issue") await fetchAndStoreMissingComments(ctx, repository, observed, "refresh");
    const blocked = repository ? await this.#readBlocked(repository, wanted, observed) : [];
    await this.#stores.add({ observed: joinObserved([overrulingOn(wanted, observed), ...blocked]), mark, startedAt });
    // A repository that a webhook called deleted still exists, so it is followed again.
    const isCertain = startedAt.getTime() > mark.askedAt.getTime() + REPLICA_LAG_MS;
    if (wanted.kind === "repository" && known?.state === "paused" && outcome === "merged" && isCertain) {
      await tryAgain(ctx.db, { repositoryIds: [wanted.key] });
      await enqueueCatchUp(ctx, { repositoryId: wanted.key }, { atOnce: true });
    }
    return outcome;
  }

  /** How to ask for a resource. Null: its repository is gone, or there is no path to it. */
  async #prepared(wanted: ResourceKey, mark: Mark) {
    const ctx = this.#ctx;
    const repositoryId = repositoryOf(wanted);
    // Resources that belong to no mirrored repository are read, too.
    const known = repositoryId === 0 ? null : await ctx.jobReads.knownRepository(repositoryId);
    if (known?.state === "gone") return null;
    const path = await upstreamPathOf(ctx, wanted);
    if (path === null) return null;
    const side = (await issueSideOf(ctx.db, wanted, mark)) ?? (await lostRowOf(ctx.db, wanted, mark));
    return { known, path, side, question: side === null ? await nodeQuestion(ctx, wanted, mark) : null };
  }

  /** Asks GraphQL, and stores what it answers. Null: that does not suffice, and REST has to be asked. */
  async #ask(
    { wanted, mark, repository, startedAt }: AskedResource,
    question: NodeQuestion,
  ): Promise<RefreshOutcome | null> {
    const answer = await this.#nodes.ask(question);
    if (answer === "doubtful") return await this.#waitForMirror(mark);
    if (answer === "gone" && question.about === "existence") {
      await this.#stores.add({ observed: joinObserved([]), mark, startedAt });
      return "deleted";
    }
    if (!repository || typeof answer !== "object" || question.about !== "values") return null;
    const { inDoubt } = question;
    const observed = await observeValues(this.#ctx, repository, wanted, { ...answer, inDoubt });
    if (!observed) return null;
    if (inDoubt.includes("comments")) await fetchAndStoreMissingComments(this.#ctx, repository, observed, "refresh");
    await this.#stores.add({ observed, mark, startedAt });
    return "merged";
  }

  /**
   * Adds all marks that are due to the question of this moment. Their jobs may be with other processes, which share the
   * pace. A job whose mark was settled finds nothing to do.
   */
  async #joinDue(): Promise<void> {
    for (const mark of await findDue(this.#ctx))
      if (!this.#inHand.has(refreshId(mark)))
        this.#joinOne(mark).catch((error: unknown) => {
          const told = { ...mark, err: error };
          this.#ctx.log[levelOf(error, "debug")](told, "A question is asked again by the job of its mark");
        });
  }

  async #joinOne(mark: Mark & ResourceKey): Promise<void> {
    const startedAt = this.#ctx.clock.now();
    const asked = await this.#nodes.prepare(() => this.#prepared(mark, mark));
    if (!asked?.question || !asked.known) return;
    await this.#ask({ wanted: mark, mark, repository: asked.known, startedAt }, asked.question);
  }

  /** The issues that wait for an issue that was read. Waiting issues of other repositories get marks. */
  async #readBlocked(repository: MirroredRepository, wanted: ResourceKey, { seen }: Observed): Promise<Observed[]> {
    const ctx = this.#ctx;
    const issue = seen.find(
      ({ kind, key, deleted }) => kind === "issue" && wanted.kind === kind && key === wanted.key && !deleted,
    );
    if (!issue) return [];
    const { observed, elsewhere } = await readBlocked(ctx, repository, issue);
    if (elsewhere.length > 0) {
      const marks = await ctx.db.transaction(async (tx) => {
        const marks = await marksForCounting(tx, elsewhere, ctx.clock.now());
        await storeMarks(tx, marks);
        return marks;
      });
      await enqueueMarks(ctx, marks);
    }
    return observed;
  }

  /**
   * Postpones a mark, since upstream is a mirror that is in doubt or still has to read the resource. It is asked ever
   * more seldom, since its own upstream may be away.
   */
  async #waitForMirror(mark: Mark): Promise<"kept"> {
    const now = this.#ctx.clock.now();
    return await this.#putOff(mark, nextAsk(mark, now, afterLag(now).getTime() - now.getTime()));
  }

  async #putOff(mark: Mark, notBefore: Date): Promise<"kept"> {
    await enqueueMarks(this.#ctx, await postponeMarks(this.#ctx.db, [{ ...mark, notBefore }]));
    return "kept";
  }
}

/** The repository that a resource is, or belongs to; 0: none that is mirrored. */
function repositoryOf({ kind, repositoryId, key }: ResourceKey): number {
  return kind === "repository" ? key : repositoryId;
}

/** The marks of single resources that are due, the oldest first, as many as one question has room for. */
async function findDue(ctx: Pick<Context, "db" | "clock" | "config">): Promise<(Mark & ResourceKey)[]> {
  const resting = rests(ctx, "refresh", sql`m.repository_id::text`);
  const own = rests(ctx, "refresh", sql`concat_ws('-', m.kind, m.repository_id, m.key)`);
  return await ctx.db.query<Mark & ResourceKey>(sql`
    select ${MARK_COLUMNS} from refresh_marks m where m.not_before <= ${ctx.clock.now()}
        and m.kind <> all(${sql.array(WHOLE_KINDS, "text")}::text[]) and not ${resting} and not ${own}
      order by m.not_before limit ${IDS_A_QUERY}`);
}

/** Upstream is asked for rows whose webhooks were lost this often, however many a holder of a secret makes up. */
const LOST_ROWS: QuestionPace = { name: "lost rows", everyMs: 20_000 };

/** "held": the row that the mirror lacked is here by now, and nothing else is in doubt. Null: the mark is not about that. */
async function lostRowOf(
  db: Queries,
  { kind, repositoryId, key }: ResourceKey,
  mark: Mark,
): Promise<"lost" | "held" | null> {
  if (kind === "issue" || !isAboutLack(mark)) return null;
  const { table, keyColumn } = resourceOf(kind);
  const held = await db.count(sql`
    select from ${table} where repository_id = ${repositoryId} and ${sql.identifier(keyColumn)} = ${key}`);
  return held > 0 ? "held" : "lost";
}

interface ReadTrouble {
  subject: Subject;
  problem: Problem | null;
}

/** The problem of one mark's reads, and the problem of its repository. */
interface Troubles {
  own: ReadTrouble;
  whole: ReadTrouble;
}

async function findTroubles(ctx: Context, keys: readonly MarkKey[]): Promise<Troubles[]> {
  const subjects = keys.map((wanted) => {
    const id = wanted.kind === "repository" ? wanted.key : wanted.repositoryId;
    const repositoryId = id === 0 ? null : id;
    const own: Subject = { task: "refresh", key: refreshId(wanted), repositoryId };
    return { own, whole: repositoryId === null ? own : { ...own, key: String(repositoryId) } };
  });
  const problems = await findProblems(
    ctx,
    subjects.flatMap(({ own, whole }) => [own, whole]),
  );
  const troubleOf = (subject: Subject) => ({ subject, problem: problems.get(problemName(subject)) ?? null });
  return subjects.map(({ own, whole }) => ({ own: troubleOf(own), whole: troubleOf(whole) }));
}

/**
 * The question that GraphQL can answer together with all others: does the resource still exist, or what are the values
 * on which two observations disagree? Null: only REST can tell.
 */
async function nodeQuestion(
  { db }: Pick<Context, "db">,
  { kind, repositoryId, key }: ResourceKey,
  mark: Mark,
): Promise<NodeQuestion | null> {
  if (repositoryId === 0) return null;
  const { table, keyColumn } = resourceOf(kind);
  const [row] = await db.query<{ nodeId: string | null; isDeleted: boolean }>(sql`
    select node_id as "nodeId", deleted_at is not null as "isDeleted" from ${table}
      where repository_id = ${repositoryId} and ${sql.identifier(keyColumn)} = ${key}`);
  if (!row?.nodeId) return null;
  const node = { kind, repositoryId, key, nodeId: row.nodeId };
  if (row.isDeleted) return { ...node, about: "existence" };
  const inDoubt = keysInDoubt(mark);
  return inDoubt ? { ...node, about: "values", inDoubt } : null;
}

function isWholeKind(kind: MarkKind): kind is WholeKind {
  const wholes: readonly MarkKind[] = WHOLE_KINDS;
  return wholes.includes(kind);
}

/**
 * A write's implied `updated_at` may be a second later than the true one. Once no replica's lag can explain the
 * difference, the read is right.
 */
function overrulingOn({ kind, key }: ResourceKey, observed: Observed): Observed {
  return overruling(observed, (one) => one.kind === kind && one.key === key && one.extent !== "partial");
}

/** Whether an absent resource was seen so recently that the answering replica may lag behind. */
async function wasSeenLately(ctx: Context, { seen }: Observed, startedAt: Date): Promise<boolean> {
  const absent = seen.filter(({ deleted }) => deleted);
  const storedOf = await ctx.db.transaction((tx) => findAllStored(tx, absent));
  return absent.some((one) => {
    const stored = storedOf(one);
    if (!stored || stored.deletedAt !== null) return false;
    const stamps = [stored.stamp, ...Object.values(stored.keyStamps)];
    const seenAt = Math.max(...stamps.map((stamp) => stamp.seenAt));
    return startedAt.getTime() <= seenAt + REPLICA_LAG_MS;
  });
}

/** Stores what was read, and settles or postpones its marks in the same transaction. Answers the marks to be queued. */
async function storeReads(ctx: Context, batch: readonly ReadForMark[]): Promise<Mark[]> {
  // The latest start counts for all. A mark with too late a time costs one more read; one with too early a time may be
  // settled wrongly.
  const startedAt = new Date(Math.max(...batch.map((one) => one.startedAt.getTime())));
  const observed = joinObserved(batch.map((one) => one.observed));
  return ctx.db.transaction(async (tx) => {
    const merged = await mergeObserved(tx, observed);
    const conflicts = marksForConflicts(merged, startedAt).map((conflict) => ({
      ...conflict,
      notBefore: afterLag(startedAt),
    }));
    const wasLacking = (one: ResourceKey) => batch.some(({ mark }) => isAboutLack(mark) && isOfOne(one, mark));
    const asks = [
      ...conflicts,
      ...(await marksForMergeability(tx, observed.seen, startedAt)),
      ...marksForClosers(merged.filter(wasLacking), startedAt),
    ];
    const conflictsAgain = (mark: Mark) => conflicts.some((conflict) => isOfOne(conflict, mark));
    const settled: Mark[] = [];
    const postponed: Mark[] = [];
    for (const { mark, startedAt: readAt } of batch) {
      if (conflictsAgain(mark)) continue;
      if (readAt.getTime() > mark.askedAt.getTime() + REPLICA_LAG_MS) settled.push(mark);
      else postponed.push({ ...mark, notBefore: afterLag(mark.askedAt) });
    }
    const [, , , stand] = await together([
      lockMarks(tx, [...asks, ...settled, ...postponed]),
      storeMarks(tx, asks),
      settleMarks(tx, settled),
      postponeMarks(tx, postponed),
    ]);
    return [...asks, ...stand];
  });
}

function isOfOne(one: MarkKey, mark: MarkKey): boolean {
  return one.kind === mark.kind && one.key === mark.key && one.repositoryId === mark.repositoryId;
}
