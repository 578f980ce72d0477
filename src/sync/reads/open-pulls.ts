import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { GraphqlTooHeavyError } from "../../upstream/client/errors.ts";
import { RATE_LIMIT } from "../../upstream/client/graphql.ts";
import { PullsNotShownError } from "./graphql-pulls.ts";

interface PullsPage<Pull> {
  pullRequests: { pageInfo: { hasNextPage: boolean; endCursor: string | null }; nodes: (Pull | null)[] };
}

/** How many pull requests a query asks for, at a point. Fewer if that is too heavy for upstream. */
const MOST = 100;

/**
 * What GraphQL shows of all open pull requests of a repository. `selection`: the fields of each, without lists, so that
 * a hundred of them cost a point.
 * @throws PullsNotShownError when upstream's GraphQL does not show the repository
 */
export async function readOpenPulls<Pull>(
  ctx: Context,
  repository: MirroredRepository,
  selection: string,
): Promise<Pull[]> {
  const found: Pull[] = [];
  for (let after: string | null = null, most = MOST, isLast = false; !isLast; ) {
    let page: PullsPage<Pull>;
    try {
      page = await ask<Pull>(ctx, repository, { selection, first: most, after });
    } catch (error) {
      if (!(error instanceof GraphqlTooHeavyError) || most === 1) throw error;
      most = Math.floor(most / 2);
      continue;
    }
    for (const pull of page.pullRequests.nodes) if (pull) found.push(pull);
    after = page.pullRequests.pageInfo.endCursor;
    isLast = !page.pullRequests.pageInfo.hasNextPage;
  }
  return found;
}

async function ask<Pull>(
  ctx: Context,
  repository: MirroredRepository,
  { selection, first, after }: { selection: string; first: number; after: string | null },
): Promise<PullsPage<Pull>> {
  const query = `query($id: ID!, $first: Int!, $after: String) { ${RATE_LIMIT} node(id: $id) { ... on Repository {
    pullRequests(states: OPEN, first: $first, after: $after) { pageInfo { hasNextPage endCursor } nodes { ${selection} } } } } }`;
  const { data, errors } = await ctx.upstream.graphql<{ node: PullsPage<Pull> | null }>(
    query,
    { id: repository.nodeId, first, after },
    { priority: "catch-up", repository: repository.id, isBelieved: true },
  );
  const [fault] = errors;
  if (fault || !data.node)
    throw new PullsNotShownError(
      `Upstream's GraphQL does not show the pull requests of ${repository.fullName}: ${fault?.message ?? "no such node"}`,
    );
  return data.node;
}
