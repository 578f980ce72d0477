import { findNodePlaces } from "../../mirror/read/nodes.ts";
import type { ApiContext, Call } from "../call.ts";
import { repositoryIn } from "../dialect/addresses.ts";
import { type IssueAddress, issuePlace, readOf, sides } from "../rest/writes/issue-writes.ts";
import { objectIn } from "./body-values.ts";
import type { Thing, Touched } from "./forwarded-writes.ts";
import { refsMovedBy } from "./ref-writes.ts";
import { releasesAt } from "./release-writes.ts";

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
export async function touchedAt({ ctx, sight, method, path, body }: Call): Promise<Touched[]> {
  const named = repositoryIn(path);
  const repository = named && (await ctx.mirror.repositories.at(named, sight));
  if (!repository) return [];
  const { rest } = named;
  const refs = repository.mirrors.includes("refs")
    ? await refsMovedBy(ctx, { repositoryId: repository.id, method, rest, body })
    : [];
  if (repository.mirrors.includes("releases") && /^\/releases(\/|$)/.test(rest))
    return [{ repository, refs, ...(await releasesAt(ctx.db, { repositoryId: repository.id, method, rest })) }];
  const below = await thingsAt(ctx, repository, rest);
  const other = below.length > 0 ? await issuesNamedIn(ctx, repository, { body, sight }) : [];
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

/** Issues that the body names by id, as a tie between two issues does: the other issue shows the tie too. */
async function issuesNamedIn(
  ctx: ApiContext,
  at: Touched["repository"],
  { body, sight }: Pick<Call, "body" | "sight">,
): Promise<Thing[]> {
  const given = objectIn(body);
  const ids = ["sub_issue_id", "issue_id"].flatMap((name) => (typeof given[name] === "number" ? [given[name]] : []));
  if (ids.length === 0) return [];
  const places = await findNodePlaces(ctx.db, "Issue", ids, sight);
  const numbers = places.flatMap(({ repositoryId, number }) =>
    repositoryId === at.id && number !== null ? [number] : [],
  );
  return (await Promise.all(numbers.map((number) => issuePlace(ctx, at, number)))).flatMap(issueThings);
}
