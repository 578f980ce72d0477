import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Json, objectOf } from "../../json.ts";
import { UpstreamUnavailableError } from "../../upstream/client/errors.ts";
import { parseGraphql } from "../../upstream/client/graphql.ts";
import type { OnBehalf } from "../../upstream/client/on-behalf.ts";
import type { Received } from "../../upstream/client/transport.ts";

/** GraphQL takes as many ids at once. */
const BATCH = 100;

/** What a repository allows a caller, in GraphQL's words, from the least on. */
export const PERMISSION_LEVELS = ["READ", "TRIAGE", "WRITE", "MAINTAIN", "ADMIN"] as const;
export type RepositoryPermission = (typeof PERMISSION_LEVELS)[number];

/** What upstream lets a token do in a repository, and see of it beside the repository itself. */
export interface RepositoryRights {
  permission: RepositoryPermission;
  issues: boolean;
  pulls: boolean;
}

/**
 * A refused list is null, and so is the whole node above it, since no list may be null. So each kind has nodes of its
 * own. A connection that is only counted needs no page.
 */
const QUERY = `query ($ids: [ID!]!) {
  metadata: nodes(ids: $ids) { ... on Repository { viewerPermission } }
  issues: nodes(ids: $ids) { ... on Repository { issues { totalCount } } }
  pulls: nodes(ids: $ids) { ... on Repository { pullRequests { totalCount } } }
}`;

/**
 * Asks upstream, with a token, which of the mirrored private repositories it shows to that token, and what of each.
 * Every token sees the public ones.
 * @throws UpstreamUnavailableError when the answer says nothing of the token
 */
export async function askRights(
  { db, upstream }: Pick<Context, "db"> & { upstream: Pick<OnBehalf["identity"], "graphql"> },
  token: string,
): Promise<Map<number, RepositoryRights>> {
  const rows = await db.query<{ id: string; node_id: string }>(sql`
    select r.id, r.node_id from repositories r
      join repository_syncs s on s.repository_id = r.id and s.state <> 'gone'
      where r.private and r.deleted_at is null and r.node_id is not null order by r.id`);
  const rights = new Map<number, RepositoryRights>();
  for (let at = 0; at < rows.length; at += BATCH) {
    const some = rows.slice(at, at + BATCH);
    const ids = some.map(({ node_id }) => node_id);
    const { metadata, issues, pulls } = nodesOf(await upstream.graphql({ token, query: QUERY, variables: { ids } }));
    for (const [index, { id }] of some.entries()) {
      if (![metadata[index], issues[index], pulls[index]].some((node) => node != null)) continue;
      rights.set(Number(id), {
        permission: permissionOf(metadata[index]),
        issues: objectOf(issues[index]).issues != null,
        pulls: objectOf(pulls[index]).pullRequests != null,
      });
    }
  }
  return rights;
}

/** A limit or a failure says nothing of the caller. */
export function unusable({ status }: Received): UpstreamUnavailableError {
  return new UpstreamUnavailableError(`Upstream answers ${status} to a question about a caller`, "failed", { status });
}

function nodesOf(answer: Received): { metadata: Json[]; issues: Json[]; pulls: Json[] } {
  const body = answer.status === 200 ? parseGraphql(answer.text) : null;
  const { metadata, issues, pulls } = objectOf(body?.data);
  // A null that is not said to be out of sight is no answer to the question.
  if (body?.errors.some(({ type }) => type !== "NOT_FOUND" && type !== "FORBIDDEN")) throw unusable(answer);
  if (!Array.isArray(metadata) || !Array.isArray(issues) || !Array.isArray(pulls)) throw unusable(answer);
  return { metadata, issues, pulls };
}

/** The least where upstream names none that we know: to Apps it names none at all. */
function permissionOf(node: Json | undefined): RepositoryPermission {
  const { viewerPermission } = objectOf(node);
  return PERMISSION_LEVELS.find((level) => level === viewerPermission) ?? "READ";
}
