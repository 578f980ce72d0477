import type { Context } from "../../context.ts";
import { objectOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { GraphqlTooHeavyError } from "../../upstream/protocol/errors.ts";
import { type FieldReader, nextCursor, type Read, readableRows } from "../../upstream/protocol/field-readers.ts";
import { RATE_LIMIT } from "../../upstream/protocol/graphql.ts";
import { PullsNotShownError } from "../problems/errors.ts";
import { readPullsPage } from "./graphql-pulls.ts";

type PullsPage = Read<typeof readPullsPage>["pullRequests"];

/** How many pull requests a query asks for, at a point. Fewer if that is too heavy for upstream. */
const PULLS_A_QUERY = 100;

/**
 * What GraphQL shows of all open pull requests of a repository. `fields`: those of each, without lists, so that
 * a hundred of them cost a point.
 * @throws PullsNotShownError when upstream's GraphQL does not show the repository
 */
export async function readOpenPulls<Pull>(
  ctx: Context,
  repository: MirroredRepository,
  { fields, readPull }: { fields: string; readPull: FieldReader<Pull> },
): Promise<Pull[]> {
  const found: Pull[] = [];
  for (let after: string | null = null, most = PULLS_A_QUERY, isLast = false; !isLast; ) {
    let page: PullsPage;
    try {
      page = await askOpenPulls(ctx, repository, { fields, first: most, after });
    } catch (error) {
      if (!(error instanceof GraphqlTooHeavyError) || most === 1) throw error;
      most = Math.floor(most / 2);
      continue;
    }
    // One that cannot be read stays as it is, and keeps no other from being compared.
    found.push(...page.nodes.map((pull) => readableRows(readPull, pull, "nodes")).filter((pull) => pull !== null));
    after = nextCursor(page.pageInfo, after);
    isLast = after === null;
  }
  return found;
}

async function askOpenPulls(
  ctx: Context,
  repository: MirroredRepository,
  { fields, first, after }: { fields: string; first: number; after: string | null },
): Promise<PullsPage> {
  const query = `query($id: ID!, $first: Int!, $after: String) { ${RATE_LIMIT} node(id: $id) { ... on Repository {
    pullRequests(states: OPEN, first: $first, after: $after) { pageInfo { hasNextPage endCursor } nodes { ${fields} } } } } }`;
  const { data, errors } = await ctx.upstream.graphql(
    query,
    { id: repository.nodeId, first, after },
    { priority: "catch-up", repository: repository.id, isBelieved: true },
  );
  // An error about one of the pull requests leaves null in its place, or in one of its fields.
  const [fault] = errors.filter(({ path }) => path[2] !== "nodes");
  const shown = objectOf(objectOf(data.node).pullRequests).nodes;
  const isNone = !Array.isArray(shown) || (shown.length > 0 && shown.every((pull) => pull === null));
  if (fault || isNone)
    throw new PullsNotShownError(
      `Upstream's GraphQL does not show the pull requests of ${repository.fullName}: ${errors[0]?.message ?? "no such node"}`,
    );
  return readPullsPage(data.node, "node").pullRequests;
}
