import type { Queries } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf, rowsOf, textOf, wholeOf } from "../../json.ts";
import type { ResourceKey } from "../../kinds/contract/kind.ts";
import { isAboutLack, isOfLack, isReadFor, MARK_COLUMNS, type Mark } from "../../mirror/store/marks.ts";
import { type Observed, observe } from "../../mirror/store/observation.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { Gather } from "../../work/gather.ts";
import { type QuestionPace, takeMoment } from "../questions/paced.ts";
import { PAGE_SIZE, sightingOf } from "../reads/pages.ts";

// A pull request is in the lists of issues by its issue side, whose id only upstream knows: no event tells it, and
// GraphQL does not show it. The first ones are asked for one by one. Where many are opened, a search finds many at once.

/** A pull request waits so long for its place in lists of issues, but only where many are opened and nobody reads them. */
const ISSUE_SIDES: QuestionPace = { name: "issue sides", everyMs: 240_000 };
/** The same where somebody reads them. A holder of a hook's secret could make up others for each read. */
const HASTENED_SIDES: QuestionPace = { name: "hastened issue sides", everyMs: 30_000 };
/** GitHub docs: a query has at most five operators, so at most six owners stand between them. */
const OWNERS_A_SEARCH = 6;
/** One that no search has found for so long is asked for by itself. */
const SEARCHED_MS = 30 * 60_000;
const MOST_LOOKED_FOR = 500;

/** - alone: read it by itself. - found: it was stored. - later: ask again after the lag of replicas. */
type SideAnswer = "alone" | "found" | "later";

/** The pull request of a mark, as far as a search needs it. */
interface LackingSide {
  mark: Mark;
  createdAt: Date;
}

/** Reads the issue sides that the mirror lacks, in one process at a time few requests for however many. */
export class IssueSides {
  readonly #gather: Gather<ResourceKey, SideAnswer>;
  /**
   * A search shows a hundred. Where more were opened since the oldest, its end alternates: the newest first would never
   * show the oldest, and the oldest first would show one that somebody made up, with a date of long ago, and no other.
   */
  #order: "asc" | "desc" = "asc";

  /**
   * @param prepared awaited before each round, so that questions of one moment meet
   * @param store stores what was found, and settles its mark
   */
  constructor(
    ctx: Context,
    {
      prepared,
      store,
    }: {
      prepared: () => Promise<void>;
      store: (read: { observed: Observed; mark: Mark; startedAt: Date }) => Promise<unknown>;
    },
  ) {
    const answer = async (asked: readonly ResourceKey[]): Promise<SideAnswer[]> => {
      const lacking = await findLacking(ctx.db);
      // Whoever reads a list that lacks one has paid for a question, but not for those that follow an empty answer.
      const isHastened = lacking.some(({ mark }) => isReadFor(mark, ctx.clock.now()));
      await takeMoment(ctx, isHastened ? HASTENED_SIDES : ISSUE_SIDES);
      const now = ctx.clock.now().getTime();
      const young = lacking.filter(({ mark }) => now - mark.askedAt.getTime() < SEARCHED_MS);
      const [first] = young;
      // An invented pull request is found by no search. Old ones take every other turn, so that new ones have the rest.
      const isForOld = young.length < lacking.length && (!first || Math.floor(now / ISSUE_SIDES.everyMs) % 2 === 1);
      if (isForOld || !first || lacking.length === 1) {
        const names = new Set(asked.map(nameOf));
        const inTurn = [...lacking.filter((one) => !young.includes(one)), ...young];
        const alone = inTurn.map(({ mark }) => nameOf(mark)).find((name) => names.has(name));
        return asked.map((one) => (alone === undefined || nameOf(one) === alone ? "alone" : "later"));
      }
      const startedAt = ctx.clock.now();
      this.#order = this.#order === "asc" ? "desc" : "asc";
      const found = await search(ctx, lacking, { oldest: first, order: this.#order });
      await Promise.all(found.map((one) => store({ ...one, startedAt })));
      const names = new Set(found.map(({ mark }) => nameOf(mark)));
      return asked.map((one) => (names.has(nameOf(one)) ? "found" : "later"));
    };
    this.#gather = new Gather(answer, { most: MOST_LOOKED_FOR, patienceMs: null, waitFor: prepared });
  }

  /** @throws QuestionsPacedError */
  ask(side: ResourceKey): Promise<SideAnswer> {
    return this.#gather.ask(side);
  }
}

function nameOf({ repositoryId, key }: Pick<ResourceKey, "repositoryId" | "key">): string {
  return `${repositoryId}/${key}`;
}

/** The keys that are in doubt, other than a missing side: an id never changes. Null: it may be any. */
export function keysInDoubt({ keys }: Mark): readonly string[] | null {
  return keys?.filter((key) => !isOfLack(key)) ?? null;
}

const IS_PULL = sql`p.id is not null and p.deleted_at is null`;
const LACKS_SIDE = sql`${IS_PULL} and not exists (select from issues i
  where i.repository_id = p.repository_id and i.number = p.number and i.id is not null)`;

/**
 * What the mirror has of the issue side of this pull request. "held": nothing else is in doubt, and it was read with
 * others since the mark was left. Null: that is not what is asked for.
 */
export async function issueSideOf(
  db: Queries,
  { kind, repositoryId, key }: ResourceKey,
  mark: Mark | null,
): Promise<"lacking" | "held" | null> {
  if (kind !== "issue") return null;
  const [row] = await db.query<{ isLacking: boolean }>(sql`
    select ${LACKS_SIDE} as "isLacking" from pull_requests p
      where p.repository_id = ${repositoryId} and p.number = ${key} and ${IS_PULL}`);
  if (row?.isLacking) return "lacking";
  return row && (mark === null || isAboutLack(mark)) ? "held" : null;
}

/** One of each repository first, the oldest: many of one repository delay no other's. */
async function findLacking(db: Queries): Promise<LackingSide[]> {
  const rows = await db.query<Mark & { createdAt: Date }>(sql`
    select ${MARK_COLUMNS}, p.created_at as "createdAt" from refresh_marks m
      join pull_requests p on p.repository_id = m.repository_id and p.number = m.key and ${LACKS_SIDE}
      where m.kind = 'issue'
      order by row_number() over (partition by m.repository_id order by m.asked_at, m.key), m.asked_at, m.repository_id
      limit ${MOST_LOOKED_FOR}`);
  return rows.map(({ createdAt, ...mark }) => ({ mark, createdAt }));
}

/** What a search shows of those that the owners of the longest lacking ones have. */
async function search(
  ctx: Context,
  lacking: readonly LackingSide[],
  { oldest, order }: { oldest: LackingSide; order: "asc" | "desc" },
): Promise<{ observed: Observed; mark: Mark }[]> {
  const ids = [...new Set(lacking.map(({ mark }) => mark.repositoryId))];
  const seen = (await ctx.upstream.groups(ids)).find((group) => group.includes(oldest.mark.repositoryId)) ?? [];
  const known = await Promise.all(seen.map((id) => ctx.jobReads.repository(id)));
  const repositories = new Map(known.flatMap((one) => (one ? [[one.id, one] as const] : [])));
  const ownerOf = ({ mark }: LackingSide) => repositories.get(mark.repositoryId)?.fullName.split("/")[0];
  const owners = [...new Set([oldest, ...lacking].flatMap((one) => ownerOf(one) ?? []))].slice(0, OWNERS_A_SEARCH);
  const wanted = lacking.filter((one) => owners.includes(ownerOf(one) ?? ""));
  const since = new Date(Math.min(...wanted.map(({ createdAt }) => createdAt.getTime())));
  const users = owners.map((owner) => `user:${owner}`);
  const query = new URLSearchParams({
    q: `is:pr created:>=${since.toISOString().replace(/\.\d+/, "")} ${users.length > 1 ? `(${users.join(" OR ")})` : users.join()}`,
    ...{ sort: "created", order, per_page: String(PAGE_SIZE), advanced_search: "true" },
  });
  const answer = await ctx.upstream
    .get(`/search/issues?${query}`, { priority: "refresh", repository: oldest.mark.repositoryId })
    .catch((error: unknown) => {
      // A token may not search. Then each is asked for by itself once it was looked for long enough.
      if (!(error instanceof UpstreamRefusedError)) throw error;
      ctx.log.info({ reason: error.message }, "Upstream does not search for new pull requests");
      return null;
    });
  if (answer?.kind !== "ok") return [];
  const rows = new Map(
    rowsOf(objectOf(answer.body).items).map(({ score: _, text_matches: __, ...row }) => [
      `${textOf(row.repository_url)}/${wholeOf(row.number)}`.toLowerCase(),
      // A search does not say who closed an issue, and one that is open again still shows that. Nobody closed what has not
      // changed since it was made.
      row.updated_at === row.created_at ? { closed_by: null, ...row } : row,
    ]),
  );
  return wanted.flatMap(({ mark }) => {
    const repository = repositories.get(mark.repositoryId);
    const row =
      repository && rows.get(`${ctx.config.upstreamUrl}/repos/${repository.fullName}/${mark.key}`.toLowerCase());
    return row ? [{ mark, observed: observe("issue", row, sightingOf(ctx, repository, answer.seenAt)) }] : [];
  });
}
