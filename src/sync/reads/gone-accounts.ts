import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { Fields, Json } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import type { Priority } from "../../upstream/protocol/upstream.ts";
import { areReviewsShown, type Pull } from "./graphql-pulls.ts";
import { fetchAndStoreReviewLists } from "./pages.ts";
import { fetchAndStorePull } from "./pulls-by-rest.ts";

/**
 * Accounts that were deleted. GraphQL shows null in their place; REST shows the user `ghost` in most places and null in
 * some, and upstream promises neither. So REST reads a few samples in each repository. If REST shows all samples alike,
 * the others are assumed to be the same. Otherwise REST reads each one. An audit reads all such reviews by REST.
 */
export interface GoneAccounts {
  /** The stored value of `user` of a review by such an account; undefined: not known. */
  reviewer?: Json;
  /** The same of a pull request's `merged_by`. */
  merger?: Json;
}

/** Numbers of pull requests, by what REST has shown of them. */
interface Samples {
  reviews: number[];
  merges: number[];
}

/** This many samples that REST shows alike are believed. */
const SAMPLES = 3;
/** Even then one in this many is read, since REST may show old accounts differently. */
const SPOT_CHECK = 256;

/**
 * Whether a deleted account reviewed the pull request. Lists that GraphQL does not show whole do not count, since REST
 * reads them anyway.
 */
export function reviewedByGone(pull: Pull): boolean {
  return areReviewsShown(pull) && pull.reviews.nodes.some((review) => review && !review.author);
}

export function mergedByGone({ merged, mergedBy }: Pull): boolean {
  return merged && !mergedBy;
}

/**
 * Learns how REST shows the repository's deleted accounts. Reads and stores a sample of these pull requests; `read` has
 * their numbers, which need no further read.
 */
export async function learnGoneAccounts(
  ctx: Context,
  repository: MirroredRepository,
  pulls: readonly Pull[],
  priority: Priority,
): Promise<{ gone: GoneAccounts; read: Samples }> {
  const reviewed = pulls.filter(reviewedByGone);
  const merged = pulls.filter(mergedByGone);
  if (reviewed.length + merged.length === 0) return { gone: {}, read: { reviews: [], merges: [] } };
  const gone = await findGoneAccounts(ctx, repository);
  const numbersOf = (some: readonly Pull[], known: Json | undefined) => {
    const numbers = some.map(({ number }) => number);
    return known === undefined ? numbers.slice(0, SAMPLES) : numbers.filter((number) => number % SPOT_CHECK === 0);
  };
  const read = { reviews: numbersOf(reviewed, gone.reviewer), merges: numbersOf(merged, gone.merger) };
  await fetchAndStoreReviewLists(ctx, repository, read.reviews, priority);
  for (const number of read.merges) await fetchAndStorePull(ctx, repository, number, priority);
  const hasRead = read.reviews.length + read.merges.length > 0;
  return { gone: hasRead ? await findGoneAccounts(ctx, repository) : gone, read };
}

/**
 * How REST has shown deleted accounts so far. Only two forms were ever seen: users named `ghost`, and no user at all.
 */
async function findGoneAccounts(ctx: Pick<Context, "db">, repository: MirroredRepository): Promise<GoneAccounts> {
  const { id } = repository;
  const reviewer = await shownAlike(
    ctx,
    sql`
      select user_id as account, count(*) as count, max(id) as sample from pull_request_reviews
        where repository_id = ${id} and deleted_at is null and seen_by_read
          and (user_id is null or user_id in (${GHOSTS})) group by user_id`,
    (review) => sql`select document as fields from pull_request_reviews where repository_id = ${id} and id = ${review}`,
    "user",
  );
  const merger = await shownAlike(
    ctx,
    sql`
      select merged_by_id as account, count(*) as count, max(number) as sample from pull_requests
        where repository_id = ${id} and deleted_at is null and merged and detail -> 'merged_by' is not null
          and (merged_by_id is null or merged_by_id in (${GHOSTS})) group by merged_by_id`,
    (number) => sql`select detail as fields from pull_requests where repository_id = ${id} and number = ${number}`,
    "merged_by",
  );
  return { ...(reviewer === undefined ? {} : { reviewer }), ...(merger === undefined ? {} : { merger }) };
}

const GHOSTS = sql`select id from users where login = 'ghost'`;

async function shownAlike(
  ctx: Pick<Context, "db">,
  counted: SQL,
  shown: (sample: number) => SQL,
  key: string,
): Promise<Json | undefined> {
  const [only, ...others] = await ctx.db.query<{ account: number | null; count: number; sample: number }>(counted);
  if (!only || others.length > 0 || only.count < SAMPLES) return undefined;
  const [sample] = await ctx.db.query<{ fields: Fields | null }>(shown(only.sample));
  return sample?.fields?.[key];
}
