import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { RATE_LIMIT } from "../../upstream/client/graphql.ts";
import type { GraphqlError, Priority } from "../../upstream/client/upstream.ts";

/** What GraphQL shows of pull requests, and the same in REST's words. */
export interface Actor {
  __typename: string;
  login: string;
  avatarUrl: string;
  url: string;
  id?: string;
  databaseId?: number | null;
  isSiteAdmin?: boolean;
}

export interface Review {
  id: string;
  fullDatabaseId: string;
  author: Actor | null;
  authorAssociation: string;
  body: string;
  state: string;
  url: string;
  submittedAt: string | null;
  updatedAt: string;
  commit: { oid: string } | null;
}

export interface Mergeability {
  number: number;
  updatedAt: string;
  mergeable: "MERGEABLE" | "CONFLICTING" | "UNKNOWN";
  mergeStateStatus: string;
  canBeRebased: boolean;
  state: "OPEN" | "CLOSED" | "MERGED";
  potentialMergeCommit: { oid: string } | null;
}

export interface Pull extends Mergeability {
  merged: boolean;
  mergedBy: Actor | null;
  maintainerCanModify: boolean;
  additions: number;
  deletions: number;
  changedFiles: number;
  commits: { totalCount: number };
  reviews: { pageInfo: { hasNextPage: boolean }; nodes: Review[] };
}

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
export async function readSinglePulls<Fields>(
  ctx: Pick<Context, "upstream">,
  repository: MirroredRepository,
  numbers: readonly number[],
  fields: string,
  read: { priority: Priority; signal?: AbortSignal; isBelieved?: boolean },
): Promise<{ pulls: Fields[]; inPart: number[]; faults: Map<number, GraphqlError>; seenAt: Date }> {
  const aliases = numbers.map((number) => `p${number}: pullRequest(number: ${number}) { ...Wanted }`).join("\n");
  const document = `query($id: ID!) { ${RATE_LIMIT} node(id: $id) { ... on Repository { ${aliases} } } }
    fragment Wanted on PullRequest { ${fields} }`;
  const { data, errors, seenAt } = await ctx.upstream.graphql<{ node: Record<string, Fields | null> | null }>(
    document,
    { id: repository.nodeId },
    { ...read, repository: repository.id },
  );
  const faults = errors.filter((error) => error.type !== "NOT_FOUND");
  const numbered = faults.map(({ path }) => Number(/^p(\d+)$/.exec(String(path[1]))?.[1] ?? Number.NaN));
  if (!data.node || numbered.includes(Number.NaN) || (isForbidden(faults) && numbered.length >= numbers.length))
    throw new PullsNotShownError(
      `Upstream's GraphQL does not show pull requests of ${repository.fullName}: ${faults[0]?.message ?? "no such node"}`,
    );
  const shown = Object.entries(data.node).filter(([alias]) => !numbered.includes(Number(alias.slice(1))));
  const faultOf = new Map(numbered.flatMap((number, at) => (faults[at] ? [[number, faults[at]] as const] : [])));
  return { pulls: shown.flatMap(([, pull]) => pull ?? []), inPart: [...faultOf.keys()], faults: faultOf, seenAt };
}
