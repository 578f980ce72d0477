/** Tells what a forwarded mutation may change in the mirror, by the global ids that it names and is answered. */
import type { OperationDefinitionNode } from "graphql";
import { type Fields, isObject, type Json } from "../../../json.ts";
import { findThreadPlaces } from "../../../mirror/read/lists.ts";
import { findNodePlaces, type RepositoryNodeKind } from "../../../mirror/read/nodes.ts";
import type { Sight } from "../../../mirror/read/sight.ts";
import type { ApiContext } from "../../call.ts";
import type { Thing, Touched } from "../../forward/forwarded-writes.ts";
import { commentThing, issueThings, refsOfPull, repositoryThing } from "../../forward/touched.ts";
import { type IssueAddress, issuePlace } from "../../rest/writes/issue-writes.ts";
import { type DecodedId, decodeId } from "../resolve/node-id.ts";

/** How many ids are looked up at most. */
const MOST_IDS = 50;
const PAGE = "per_page=100";

/** These mutations change only the thread that they name. No other resource shows that change. */
const RESOLVING: ReadonlySet<string> = new Set(["resolveReviewThread", "unresolveReviewThread"]);

/** These mutations move branches of the pull request that they name. */
const MOVING: ReadonlySet<string> = new Set(["mergePullRequest", "updatePullRequestBranch"]);

/** A resource that an answer shows, with its number if the answer tells it. */
interface ShownResource extends DecodedId {
  number: number | null;
}

export interface Touching {
  /** What the caller sees of the mirror. */
  sight: Sight;
  ids: readonly string[];
  /** The mutation's fields. */
  names: readonly string[];
  /** Upstream's answer. Null: there is none yet. */
  answer: Json;
}

/** The mutations that an operation asks for at its top. */
export function mutationNames({ selectionSet }: OperationDefinitionNode): string[] {
  return selectionSet.selections.flatMap((one) => (one.kind === "Field" ? [one.name.value] : []));
}

/**
 * What a mutation touches, by repository. Repositories that the caller does not see, or that are not mirrored, are left
 * out.
 */
export async function touchedBy(ctx: ApiContext, { sight, ids, names, answer }: Touching): Promise<Touched[]> {
  const shown = shownIn(answer);
  const asked = ids.flatMap((id) => decodeId(id) ?? []);
  const all = distinct([...asked, ...shown]).slice(0, MOST_IDS);
  const things = new Map<number, Thing[]>();
  const pulls = new Map<number, Set<number>>();
  const threads = new Map<number, Set<number>>();
  const put = (repositoryId: number, ...some: Thing[]) =>
    things.getOrInsertComputed(repositoryId, () => []).push(...some);
  const putIssue = async (given: Pick<IssueAddress, "id" | "number" | "isPull">) => {
    const { id, number } = given;
    const place = await issuePlace(ctx, { id, fullName: "" }, number);
    if (given.isPull) place.isPull = true;
    put(id, ...issueThings(place));
    if (place.isPull) pulls.getOrInsertComputed(place.id, () => new Set()).add(place.number);
  };
  const isOfReview = names.some((name) => /review/i.test(name));
  const threadsOf = (id: number, number: number) => threads.getOrInsertComputed(id, () => new Set()).add(number);
  if (isOfReview)
    for (const { repositoryId, number } of await findThreadPlaces(ctx.db, ids.slice(0, MOST_IDS), sight)) {
      put(repositoryId);
      threadsOf(repositoryId, number);
      if (!names.every((name) => RESOLVING.has(name))) await putIssue({ id: repositoryId, number, isPull: true });
    }
  const unknown: ShownResource[] = [];
  for (const [type, found] of Map.groupBy(all, (one) => one.type)) {
    const known = await placesOf(
      ctx,
      type,
      found.map(({ id }) => id),
      sight,
    );
    for (const { id, repositoryId, number } of known) {
      const isPull = type === "PullRequest" || type.startsWith("PullRequestReview");
      if (number !== null && type !== "Milestone") await putIssue({ id: repositoryId, number, isPull });
      const own = thingOf(type, { id, repositoryId, number });
      if (own) put(repositoryId, own);
    }
    const isKnown = new Set(known.map(({ id }) => id));
    unknown.push(...shown.filter((one) => one.type === type && !isKnown.has(one.id)));
  }
  // A new resource stands in the repository that the mutation names.
  const [home, ...others] = things.keys();
  if (home !== undefined && others.length === 0)
    for (const { type, id, number } of unknown) {
      if (number !== null && (type === "Issue" || type === "PullRequest"))
        await putIssue({ id: home, number, isPull: type === "PullRequest" });
      const [pull = null] = pulls.get(home) ?? [];
      const own = thingOf(type, { id, repositoryId: home, number: pull });
      if (own) put(home, own);
    }
  if (isOfReview)
    for (const [id, numbers] of pulls)
      for (const number of numbers) {
        put(id, ...reviewLists(id, number));
        threadsOf(id, number);
      }
  const touched: Touched[] = [];
  for (const [id, some] of things) {
    const repository = await ctx.mirror.repositories.byId(id, sight);
    if (!repository) continue;
    const moving = repository.mirrors.includes("refs") && names.some((name) => MOVING.has(name)) ? pulls.get(id) : null;
    const refs = await Promise.all([...(moving ?? [])].map((number) => refsOfPull(ctx.db, id, number)));
    const resolved = repository.mirrors.includes("threads") ? [...(threads.get(id) ?? [])] : [];
    touched.push({ repository, things: distinctThings(some), refs: refs.flat(), threadsOf: resolved });
  }
  return touched;
}

async function placesOf(ctx: ApiContext, type: DecodedId["type"], ids: readonly number[], sight: Sight) {
  switch (type) {
    case "User":
    case "Organization":
    case "Bot":
      return [];
    case "Repository": {
      const found = await Promise.all(ids.map((id) => ctx.mirror.repositories.byId(id, sight)));
      return found.flatMap((one) => (one ? [{ id: one.id, repositoryId: one.id, number: null }] : []));
    }
    default:
      return findNodePlaces(ctx.db, type satisfies RepositoryNodeKind, ids, sight);
  }
}

/** What an id stands for besides its issue or pull request. Null: nothing more has to be read. */
function thingOf(
  type: DecodedId["type"],
  { id, repositoryId, number }: { id: number; repositoryId: number; number: number | null },
): Thing | null {
  switch (type) {
    case "Repository":
      return repositoryThing(id);
    case "IssueComment":
      return commentThing("issue_comment", repositoryId, id);
    case "PullRequestReviewComment":
      return commentThing("review_comment", repositoryId, id);
    case "PullRequestReview": {
      const path = number === null ? null : `/repositories/${repositoryId}/pulls/${number}/reviews/${id}`;
      return { kind: "review", repositoryId, key: id, path };
    }
    case "Label":
      return { kind: "label", repositoryId, key: id, path: null };
    case "Milestone":
      return { kind: "milestone", repositoryId, key: id, path: null };
    default:
      return null;
  }
}

/** Lists that show new reviews and their comments: the mutation's answer may show neither. */
function reviewLists(repositoryId: number, number: number): Thing[] {
  const at = `/repositories/${repositoryId}/pulls/${number}`;
  return [
    { kind: "review", repositoryId, key: 0, path: `${at}/reviews?${PAGE}` },
    { kind: "review_comment", repositoryId, key: 0, path: `${at}/comments?${PAGE}&sort=created&direction=desc` },
  ];
}

function shownIn(value: Json): ShownResource[] {
  const found: ShownResource[] = [];
  const look = (one: Json | undefined): void => {
    if (Array.isArray(one)) for (const inner of one) look(inner);
    if (!isObject(one)) return;
    const decoded = typeof one.id === "string" ? decodeId(one.id) : null;
    if (decoded) found.push({ ...decoded, number: numberOf(one) });
    for (const inner of Object.values(one)) look(inner);
  };
  look(value);
  return found;
}

function numberOf({ number, url, permalink, resourcePath }: Fields): number | null {
  if (typeof number === "number") return number;
  for (const address of [url, permalink, resourcePath]) {
    const match = typeof address === "string" ? /\/(?:issues|pull)\/(\d{1,9})$/.exec(address) : null;
    if (match) return Number(match[1]);
  }
  return null;
}

function distinct<One extends DecodedId>(all: readonly One[]): One[] {
  return [...new Map(all.map((one) => [`${one.type} ${one.id}`, one])).values()];
}

function distinctThings(all: readonly Thing[]): Thing[] {
  return [...new Map(all.map((one) => [`${one.kind} ${one.key} ${one.path}`, one])).values()];
}
