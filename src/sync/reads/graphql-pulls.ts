import type { Context } from "../../context.ts";
import { isObject } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import {
  asSent,
  eachOf,
  type FieldReader,
  key,
  list,
  nullable,
  object,
  optional,
  pageInfo,
  type Read,
  readableRows,
  text,
  truth,
  whole,
} from "../../upstream/protocol/field-readers.ts";
import { RATE_LIMIT } from "../../upstream/protocol/graphql.ts";
import type { GraphqlError, Priority } from "../../upstream/protocol/upstream.ts";
import { PullsNotShownError } from "../problems/errors.ts";

/**
 * What GraphQL shows of pull requests, and the same in REST's words. An actor without `databaseId` is an account of a
 * type that GraphQL shows without it; REST then says who that is.
 */
export const readActor = object({
  __typename: text,
  login: text,
  avatarUrl: text,
  url: text,
  id: optional(text),
  databaseId: optional(whole),
  isSiteAdmin: optional(truth),
});
export type Actor = Read<typeof readActor>;

const readReview = object({
  id: text,
  fullDatabaseId: key,
  author: nullable(readActor),
  authorAssociation: text,
  body: text,
  state: text,
  url: text,
  submittedAt: nullable(text),
  updatedAt: text,
  commit: nullable(object({ oid: text })),
});
export type Review = Read<typeof readReview>;

const MERGEABILITY_READERS = {
  number: whole,
  updatedAt: text,
  headRefOid: text,
  mergeable: text,
  mergeStateStatus: text,
  canBeRebased: truth,
  state: text,
  potentialMergeCommit: nullable(object({ oid: text })),
  maintainerCanModify: truth,
};
export const readMergeability = object(MERGEABILITY_READERS);
export type Mergeability = Read<typeof readMergeability>;

export const readPull = object({
  ...MERGEABILITY_READERS,
  merged: truth,
  mergedBy: nullable(readActor),
  additions: whole,
  deletions: whole,
  changedFiles: whole,
  commits: object({ totalCount: whole }),
  reviews: object({ pageInfo: object({ hasNextPage: truth }), nodes: eachOf(readReview) }),
});
export type Pull = Read<typeof readPull>;

/**
 * Whether GraphQL shows all reviews well enough to store them: no further page, no review that cannot be read, and each
 * author is gone or has an id.
 */
export function areReviewsShown({ reviews: { pageInfo, nodes } }: Pull): boolean {
  return !pageInfo.hasNextPage && nodes.every((review) => review !== null && !isUnnamed(review.author));
}

export function isUnnamed(actor: Actor | null): boolean {
  return actor !== null && actor.databaseId === null;
}

/** A repository with a page of its pull requests. Each is read by itself, since one with an error is not believed. */
export const readPullsPage = object({ pullRequests: object({ pageInfo, nodes: list(asSent) }) });

/** Upstream reports a missing permission once for each pull request that was asked for. */
function isForbidden(faults: readonly GraphqlError[]): boolean {
  return faults.some(({ type }) => type === "FORBIDDEN");
}

/**
 * Reads these pull requests in one query, each by its number. Deleted ones are left out, and so are those that are
 * shown in part: `faults` says why.
 * @throws PullsNotShownError when the repository is not shown
 */
export async function readSinglePulls<Pull>(
  ctx: Pick<Context, "upstream">,
  repository: MirroredRepository,
  numbers: readonly number[],
  { fields, readPull }: { fields: string; readPull: FieldReader<Pull> },
  read: { priority: Priority; signal?: AbortSignal; isBelieved?: boolean },
): Promise<{ pulls: Pull[]; inPart: number[]; faults: Map<number, GraphqlError>; seenAt: Date }> {
  const aliases = numbers.map((number) => `p${number}: pullRequest(number: ${number}) { ...Wanted }`).join("\n");
  const document = `query($id: ID!) { ${RATE_LIMIT} node(id: $id) { ... on Repository { ${aliases} } } }
    fragment Wanted on PullRequest { ${fields} }`;
  const { data, errors, seenAt } = await ctx.upstream.graphql(
    document,
    { id: repository.nodeId },
    { ...read, repository: repository.id },
  );
  const numberIn = ({ path }: GraphqlError) => Number(/^p(\d+)$/.exec(String(path[1]))?.[1] ?? Number.NaN);
  const isAbsent = ({ type, path }: GraphqlError) => type === "NOT_FOUND" && path.length === 2;
  const faults = errors.filter((error) => !isAbsent(error));
  const absent = new Set(errors.filter(isAbsent).map(numberIn));
  const numbered = faults.map(numberIn);
  if (
    !isObject(data.node) ||
    numbered.includes(Number.NaN) ||
    (isForbidden(faults) && numbered.length >= numbers.length)
  )
    throw new PullsNotShownError(
      `Upstream's GraphQL does not show pull requests of ${repository.fullName}: ${faults[0]?.message ?? "no such node"}`,
    );
  const faultOf = new Map(numbered.flatMap((number, at) => (faults[at] ? [[number, faults[at]] as const] : [])));
  const pulls: Pull[] = [];
  for (const number of numbers) {
    if (absent.has(number) || faultOf.has(number)) continue;
    const pull = readableRows(readPull, data.node[`p${number}`], `p${number}`);
    if (pull !== null) pulls.push(pull);
    else
      faultOf.set(number, { type: null, path: ["node", `p${number}`], message: "it shows less than its schema says" });
  }
  return {
    pulls,
    inPart: [...faultOf.keys()],
    faults: faultOf,
    seenAt,
  };
}
