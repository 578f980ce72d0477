import { eq } from "drizzle-orm";
import { sql } from "../../../db/sql.ts";
import { decoded } from "../../http/router.ts";
import { type Fields, isObject } from "../../json.ts";
import type { Kind } from "../../kinds/contract/kind.ts";
import { resourceOf, resources } from "../../kinds/registry.ts";
import { findJob, findWorkflow } from "../../mirror/read/actions.ts";
import { findNodePlaces } from "../../mirror/read/nodes.ts";
import { findReleaseOfAsset } from "../../mirror/read/releases.ts";
import type { ShownRepository } from "../../mirror/read/repositories.ts";
import { type RefName, refNameOf } from "../../mirror/store/refs.ts";
import { repositories } from "../../schema.ts";
import { JsonBoundError, parseSent } from "../../sent-json.ts";
import type { ApiContext, Call } from "../call/call.ts";
import { repositoryIn } from "../dialect/protocol.ts";
import { type IssueAddress, issuePlace, readOf, sides } from "../writes/issue-writes.ts";
import type { Thing, Touched } from "./forwarded-writes.ts";

/** An issue, or both sides of a pull request. */
export function issueThings(place: IssueAddress): Thing[] {
  return sides(place).map((key) => ({ ...key, path: readOf(key.kind, place).path }));
}

/**
 * The repository itself, which is not read with the caller's token: upstream would show it with the caller's rights. So
 * the mirror asks about it later.
 */
export function repositoryThing(id: number): Thing {
  return { kind: "repository", repositoryId: 0, key: id, path: null };
}

export function commentThing(kind: "issue_comment" | "review_comment", repositoryId: number, key: number): Thing {
  const below = kind === "issue_comment" ? "issues/comments" : "pulls/comments";
  return { kind, repositoryId, key, path: `/repositories/${repositoryId}/${below}/${key}` };
}

/**
 * The resources that a write to this path may change: the issue, pull request or comment of the path, and issues that
 * the body names; otherwise the repository. Resources that the caller does not see are left out.
 */
export async function touchedAt({ ctx, access, method, path, body }: Call): Promise<Touched[]> {
  const named = repositoryIn(path);
  const repository = named && (await ctx.mirror.repositories.at(named, access));
  if (!repository) return [];
  // Clients that fill in a template encode the slashes of a branch's name.
  const rest = decoded(named.rest) ?? named.rest;
  const refs = repository.mirrors.includes("refs")
    ? await refsMovedBy(ctx, { repositoryId: repository.id, method, rest, body })
    : [];
  const listed = statusAt(repository, rest) ?? listedAt(repository, { method, rest });
  if (listed) return [{ repository, refs, ...listed }];
  const ofActions = repository.mirrors.includes("actions") ? await thingOfActions(ctx.db, repository.id, rest) : null;
  if (ofActions) return [{ repository, refs, things: [ofActions] }];
  if (repository.mirrors.includes("releases") && /^\/releases\//.test(rest))
    return [{ repository, refs, things: await releaseOfAssetAt(ctx.db, repository.id, rest) }];
  const below = await thingsAt(ctx, repository, rest);
  const other = below.length > 0 ? await issuesNamedIn(ctx, repository, { body, access }) : [];
  return [{ repository, refs, things: below.length > 0 ? [...below, ...other] : [repositoryThing(repository.id)] }];
}

async function thingsAt(ctx: ApiContext, at: Touched["repository"], rest: string): Promise<Thing[]> {
  const [, of, number] = /^\/(issues|pulls)\/(\d{1,9})(?:\/|$)/.exec(rest) ?? [];
  if (number !== undefined) {
    const place = await issuePlace(ctx, at, Number(number));
    return issueThings(of === "pulls" ? { ...place, isPull: true } : place);
  }
  const [, under, comment] = /^\/(issues|pulls)\/comments\/(\d{1,15})(?:\/|$)/.exec(rest) ?? [];
  if (comment === undefined) return [];
  return [commentThing(under === "issues" ? "issue_comment" : "review_comment", at.id, Number(comment))];
}

/** Issues that the body names by id, as a link between two issues does: the other issue shows the link too. */
async function issuesNamedIn(
  ctx: ApiContext,
  at: Touched["repository"],
  { body, access }: Pick<Call, "body" | "access">,
): Promise<Thing[]> {
  const given = sentFields(body);
  const ids = ["sub_issue_id", "issue_id"].flatMap((name) => (typeof given[name] === "number" ? [given[name]] : []));
  if (ids.length === 0) return [];
  const places = await findNodePlaces(ctx.db, "Issue", ids, access);
  const numbers = places.flatMap(({ repositoryId, number }) =>
    repositoryId === at.id && number !== null ? [number] : [],
  );
  return (await Promise.all(numbers.map((number) => issuePlace(ctx, at, number)))).flatMap(issueThings);
}

interface WriteBelow {
  repositoryId: number;
  method: string;
  /** The path behind the repository's name. */
  rest: string;
  body: string;
}

/**
 * The branches and tags that a write below a repository may make, move or delete. The answer does not name them, and
 * the push comes later.
 */
async function refsMovedBy(
  { db }: Pick<ApiContext, "db">,
  { repositoryId, method, rest, body }: WriteBelow,
): Promise<RefName[]> {
  const given = sentFields(body);
  const named = (kind: RefName["kind"], name: unknown): RefName[] =>
    typeof name === "string" && name !== "" ? [{ kind, name }] : [];
  const [, first = "", of = ""] = /^\/([^/]+)(?:\/(.*))?$/s.exec(rest) ?? [];
  switch (first) {
    case "git": {
      const ref = method === "POST" && of === "refs" ? given.ref : of;
      return [refNameOf(String(ref)) ?? []].flat();
    }
    case "contents":
      return named("heads", given.branch ?? (await defaultBranch(db, repositoryId)));
    case "merges":
      return named("heads", given.base);
    case "merge-upstream":
      return named("heads", given.branch);
    case "branches":
      return [...named("heads", /^(.+)\/rename$/s.exec(of)?.[1]), ...named("heads", given.new_name)];
    case "releases":
      return await unknownTags(db, repositoryId, named("tags", given.tag_name));
    case "pulls": {
      const [, number] = /^(\d{1,9})\/(?:merge|update-branch)$/.exec(of) ?? [];
      return number === undefined ? [] : await refsOfPulls(db, [{ repositoryId, number: Number(number) }]);
    }
    default:
      return [];
  }
}

async function defaultBranch(db: ApiContext["db"], repositoryId: number): Promise<string | null> {
  const [row] = await db
    .select({ name: repositories.defaultBranch })
    .from(repositories)
    .where(eq(repositories.id, repositoryId));
  return row?.name ?? null;
}

/** The tags that do not exist here yet: a release may make its tag, and moves none. */
async function unknownTags(db: ApiContext["db"], repositoryId: number, tags: RefName[]): Promise<RefName[]> {
  const [tag] = tags;
  const known = tag
    ? await db.count(sql`select from refs f where f.repository_id = ${repositoryId} and f.kind = 'tags'
        and f.name = ${tag.name} and f.deleted_at is null and f.doubt is null`)
    : 0;
  return known > 0 ? [] : tags;
}

/** The branches of these pull requests. A merge moves the base, and may delete the head. */
export async function refsOfPulls(
  db: ApiContext["db"],
  pulls: readonly { repositoryId: number; number: number }[],
): Promise<(RefName & { repositoryId: number })[]> {
  const repositoryIds = pulls.map(({ repositoryId }) => repositoryId);
  const numbers = pulls.map(({ number }) => number);
  const rows = await db.query<{ repositoryId: number; name: string | null }>(sql`
    select p.repository_id as "repositoryId",
        unnest(array[p.base_ref, case when p.head_repository_id = p.repository_id then p.head_ref end]) as name
      from pull_requests p where (p.repository_id, p.number) in (select *
        from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(numbers, "integer")}))`);
  return rows.flatMap(({ repositoryId, name }) =>
    name === null ? [] : [{ repositoryId, kind: "heads" as const, name }],
  );
}

/** A status is never changed, and the answer to its making shows all of it; its webhook does not. */
function statusAt({ mirrors }: Pick<ShownRepository, "mirrors">, rest: string): Omit<Touched, "repository"> | null {
  return mirrors.includes("checks") && /^\/statuses\/[^/]+$/.test(rest) ? { things: [], shows: "status" } : null;
}

/**
 * The resources of mirrored lists that a write to this path changes. Its answer shows what was written. What it was
 * written under is read again.
 */
function listedAt(
  { id, mirrors }: Pick<ShownRepository, "id" | "mirrors">,
  { method, rest }: { method: string; rest: string },
): Omit<Touched, "repository"> | null {
  for (const { kind, part, list, listBelow, parent } of resources) {
    if (part === null || !mirrors.includes(part)) continue;
    const thing = (of: Kind, key: number, path: string | null): Thing => ({ kind: of, repositoryId: id, key, path });
    const [, own] =
      list && rest.startsWith(list.path) ? (/^(?:\/(\d{1,15}))?$/.exec(rest.slice(list.path.length)) ?? []) : [];
    if (list && (own !== undefined || rest === list.path)) {
      const things = own === undefined ? [] : [thing(kind, Number(own), null)];
      return method === "DELETE" ? { things, says: () => ({ gone: [...things] }) } : { things, shows: kind };
    }
    const [, above] = listBelow ? (/^\/[^/]+\/(\d{1,15})\/[^/]+$/.exec(rest) ?? []) : [];
    if (listBelow && parent && above !== undefined && listBelow.path(Number(above)) === rest)
      return {
        things: [thing(parent.kind, Number(above), `/repositories/${id}${rest.replace(/\/[^/]+$/, "")}`)],
        shows: kind,
      };
  }
  return null;
}

/** The run or workflow that a write to this path changes. Upstream changes it later, so the answer does not show it. */
async function thingOfActions(db: ApiContext["db"], repositoryId: number, rest: string): Promise<Thing | null> {
  const [, of, name = ""] = /^\/actions\/(runs|jobs|workflows)\/([^/]+)\/[^/]+$/.exec(rest) ?? [];
  const thing = (kind: "workflow" | "workflow_run", key: number | undefined): Thing | null =>
    key === undefined ? null : { kind, repositoryId, key, path: upstreamPath(kind, repositoryId, key) };
  if (of === "workflows") return thing("workflow", (await findWorkflow(db, repositoryId, numberIn(name) ?? name))?.id);
  const id = numberIn(name);
  if (id === null) return null;
  return thing("workflow_run", of === "runs" ? id : (await findJob(db, repositoryId, id))?.runId);
}

function upstreamPath(kind: Kind, repositoryId: number, key: number): string | null {
  const path = resourceOf(kind).upstream.path?.(key, null);
  return path === undefined ? null : `/repositories/${repositoryId}${path}`;
}

function numberIn(text: string): number | null {
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** The release whose asset a write to this path changes: it is read again, since the answer does not show it. */
async function releaseOfAssetAt(db: ApiContext["db"], repositoryId: number, rest: string): Promise<Thing[]> {
  const [, of, asset] = /^\/releases\/(?:(\d{1,15})\/assets|assets\/(\d{1,15}))$/.exec(rest) ?? [];
  const id = of ?? (asset === undefined ? null : await findReleaseOfAsset(db, repositoryId, Number(asset)));
  return id === null
    ? []
    : [{ kind: "release", repositoryId, key: Number(id), path: `/repositories/${repositoryId}/releases/${id}` }];
}

/** The caller's body, if it is an object that is small enough to read. */
function sentFields(body: string): Fields {
  try {
    const value = parseSent(body);
    return isObject(value) ? value : {};
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof JsonBoundError) return {};
    throw error;
  }
}
