import { and, eq, isNotNull, isNull } from "drizzle-orm";
import { IS_MIRRORED } from "../../../db/schema/mirrored.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Json, objectOf } from "../../json.ts";
import { repositories, repositorySyncs } from "../../schema.ts";
import type { UpstreamAsCaller } from "../../upstream/client/as-caller.ts";
import { messageOf } from "../../upstream/protocol/answer.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import { judgeGraphql, parseGraphql } from "../../upstream/protocol/graphql.ts";
import { readQuotaHeaders, readRetryAfter } from "../../upstream/protocol/headers.ts";
import type { Received } from "../../upstream/protocol/transport.ts";
import { ApiFault, REST_DOCS } from "../dialect/fault.ts";

/** How many ids one question of GraphQL takes. */
export const ASKED_AT_ONCE = 100;

/** The levels of permission in a repository, in GraphQL's words, from the lowest on. */
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
 * @throws as `unusable`
 */
export async function askRights(
  { db, clock, upstream }: Pick<Context, "db" | "clock"> & { upstream: Pick<UpstreamAsCaller["identity"], "graphql"> },
  token: string,
): Promise<Map<number, RepositoryRights>> {
  const rows = await db
    .select({ id: repositories.id, nodeId: sql<string>`${repositories.nodeId}` })
    .from(repositories)
    .innerJoin(repositorySyncs, eq(repositorySyncs.repositoryId, repositories.id))
    .where(and(IS_MIRRORED, repositories.private, isNull(repositories.deletedAt), isNotNull(repositories.nodeId)))
    .orderBy(repositories.id);
  const rights = new Map<number, RepositoryRights>();
  for (let at = 0; at < rows.length; at += ASKED_AT_ONCE) {
    const some = rows.slice(at, at + ASKED_AT_ONCE);
    const ids = some.map(({ nodeId }) => nodeId);
    const answer = await upstream.graphql({ token, query: QUERY, variables: { ids } });
    const [metadata = [], issues = [], pulls = []] = nodesOf(answer, ["metadata", "issues", "pulls"], clock.now());
    for (const [index, { id }] of some.entries()) {
      if (![metadata[index], issues[index], pulls[index]].some((node) => node != null)) continue;
      rights.set(id, {
        permission: permissionOf(metadata[index]),
        issues: objectOf(issues[index]).issues != null,
        pulls: objectOf(pulls[index]).pullRequests != null,
      });
    }
  }
  return rights;
}

const PERMISSIONS_QUERY = `query ($ids: [ID!]!) { metadata: nodes(ids: $ids) { ... on Repository { viewerPermission } } }`;

/** A repository, and how GraphQL names it. */
export interface AskedRepository {
  id: number;
  nodeId: string;
}

/**
 * Asks upstream what it permits the token in these repositories, `ASKED_AT_ONCE` at most. Repositories that upstream
 * does not show to the token are absent.
 * @throws UpstreamUnavailableError when the answer says nothing of the token
 */
export async function askPermissions(
  { clock, upstream }: Pick<Context, "clock"> & { upstream: Pick<UpstreamAsCaller["identity"], "graphql"> },
  token: string,
  repositories: readonly AskedRepository[],
): Promise<Map<number, RepositoryPermission>> {
  const ids = repositories.map(({ nodeId }) => nodeId);
  const answer = await upstream.graphql({ token, query: PERMISSIONS_QUERY, variables: { ids } });
  const [metadata = []] = nodesOf(answer, ["metadata"], clock.now());
  const found = new Map<number, RepositoryPermission>();
  for (const [at, { id }] of repositories.entries())
    if (metadata[at] != null) found.set(id, permissionOf(metadata[at]));
  return found;
}

/** Upstream tells the token itself to wait. That is no outage: what was known of its rights is not believed for longer. */
export class CallerLimitedFault extends ApiFault {
  override name = "CallerLimitedFault";
  /** From when on upstream may be asked again, by our clock. */
  readonly until: Date;

  constructor({ status, headers }: Received, message: string, until: Date, now: Date) {
    const shown = ["Limit", "Remaining", "Used", "Reset", "Resource"].flatMap((name) => {
      const [value] = [headers[`x-ratelimit-${name.toLowerCase()}`]].flat();
      return value === undefined ? [] : [[`X-RateLimit-${name}`, value]];
    });
    const seconds = Math.max(1, Math.ceil((until.getTime() - now.getTime()) / 1_000));
    super(status === 429 ? 429 : 403, message, {
      headers: { ...Object.fromEntries(shown), "Retry-After": String(seconds) },
      documentationUrl: `${REST_DOCS}/overview/rate-limits-for-the-rest-api`,
    });
    this.until = until;
  }
}

/** GitHub docs: with neither `Retry-After` nor a window in the headers, wait at least a minute. */
const UNSAID_WAIT_MS = 60_000;

/**
 * The error of an answer without the rights that were asked for: a limit or a refusal, which concern the token, or a
 * failure of upstream's, which says nothing of it.
 */
export function unusable(answer: Received, now: Date): ApiFault | UpstreamUnavailableError {
  const { status, headers, text } = answer;
  const { limit } = judgeGraphql(answer);
  // A 503 with `Retry-After` is a limit, too, but not of this token.
  if (limit !== null && status < 500) {
    const [first] = parseGraphql(text)?.errors ?? [];
    const window = limit.kind === "primary" ? readQuotaHeaders(headers, now.getTime()) : null;
    const until = readRetryAfter(headers, now.getTime()) ?? window?.resetAt ?? now.getTime() + UNSAID_WAIT_MS;
    return new CallerLimitedFault(
      answer,
      first?.message || messageOf(answer) || "API rate limit exceeded",
      new Date(until),
      now,
    );
  }
  if (status === 401) return new ApiFault(401, "Bad credentials");
  if (status === 403) return new ApiFault(403, messageOf(answer));
  return new UpstreamUnavailableError(`Upstream answers ${status} to a question about a caller`, "failed", { status });
}

/** The lists of an answer, by the names under which they were asked for. */
function nodesOf(answer: Received, names: readonly string[], now: Date): Json[][] {
  const body = answer.status === 200 ? parseGraphql(answer.text) : null;
  // Upstream says why it hides a list. A null without such a reason is no answer to the question.
  if (body?.errors.some(({ type }) => type !== "NOT_FOUND" && type !== "FORBIDDEN")) throw unusable(answer, now);
  const data = objectOf(body?.data);
  return names.map((name) => {
    const nodes = data[name];
    if (!Array.isArray(nodes)) throw unusable(answer, now);
    return nodes;
  });
}

/**
 * The permission that a node shows. It is the lowest one if upstream names none that we know: to Apps it names none.
 */
function permissionOf(node: Json | undefined): RepositoryPermission {
  const { viewerPermission } = objectOf(node);
  return PERMISSION_LEVELS.find((level) => level === viewerPermission) ?? "READ";
}
