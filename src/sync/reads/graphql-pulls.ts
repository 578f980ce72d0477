import type { Context } from "../../context.ts";
import { isObject } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import {
  asSent,
  digits,
  type FieldReader,
  list,
  nullable,
  object,
  optional,
  pageInfo,
  type Read,
  text,
  truth,
  whole,
} from "../../upstream/client/field-readers.ts";
import { RATE_LIMIT } from "../../upstream/client/graphql.ts";
import type { GraphqlError, Priority } from "../../upstream/client/upstream.ts";

/** What GraphQL shows of pull requests, and the same in REST's words. */
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
  fullDatabaseId: digits,
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
  reviews: object({ pageInfo: object({ hasNextPage: truth }), nodes: list(readReview) }),
});
export type Pull = Read<typeof readPull>;

/** A repository with a page of its pull requests. Each is read by itself, since one with an error is not believed. */
export const readPullsPage = object({ pullRequests: object({ pageInfo, nodes: list(asSent) }) });

/** Upstream's GraphQL does not show a repository's pull requests, which may mean "not allowed" as well as "gone". */
export class PullsNotShownError extends Error {
  override name = "PullsNotShownError";
}

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
  const faults = errors.filter((error) => error.type !== "NOT_FOUND");
  const numbered = faults.map(({ path }) => Number(/^p(\d+)$/.exec(String(path[1]))?.[1] ?? Number.NaN));
  if (
    !isObject(data.node) ||
    numbered.includes(Number.NaN) ||
    (isForbidden(faults) && numbered.length >= numbers.length)
  )
    throw new PullsNotShownError(
      `Upstream's GraphQL does not show pull requests of ${repository.fullName}: ${faults[0]?.message ?? "no such node"}`,
    );
  const shown = Object.entries(data.node).filter(([alias]) => !numbered.includes(Number(alias.slice(1))));
  const faultOf = new Map(numbered.flatMap((number, at) => (faults[at] ? [[number, faults[at]] as const] : [])));
  return {
    pulls: shown.flatMap(([alias, pull]) => (pull === null ? [] : [readPull(pull, alias)])),
    inPart: [...faultOf.keys()],
    faults: faultOf,
    seenAt,
  };
}
