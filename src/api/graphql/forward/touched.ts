/** Tells what a forwarded mutation may change in the mirror, by the global ids that it names and is answered. */
import type { OperationDefinitionNode } from "graphql";
import { type Fields, isObject, type Json } from "../../../json.ts";
import { findThreadPlaces } from "../../../mirror/read/lists.ts";
import { findNodePlaces, type RepositoryNodeKind } from "../../../mirror/read/nodes.ts";
import { findPullKeys } from "../../../mirror/read/pulls.ts";
import type { AccessScope, ShownRepository } from "../../../mirror/read/repositories.ts";
import type { RefName } from "../../../mirror/store/refs.ts";
import type { ApiContext } from "../../call/call.ts";
import { type DecodedId, decodeId } from "../../dialect/node-id.ts";
import type { Thing, Touched } from "../../forward/forwarded-writes.ts";
import { commentThing, issueThings, refsOfPulls, repositoryThing } from "../../forward/touched.ts";

/** How many ids are looked up at most. */
export const MOST_IDS = 50;
const FULL_PAGE = "per_page=100";

/** These mutations change only the thread that they name. No other resource shows that change. */
const RESOLVING: ReadonlySet<string> = new Set(["resolveReviewThread", "unresolveReviewThread"]);

/** These mutations move branches of the pull request that they name. */
const MOVING: ReadonlySet<string> = new Set(["mergePullRequest", "updatePullRequestBranch"]);

/** A resource that an answer shows, with its number if the answer tells it. */
interface ShownResource extends DecodedId {
  number: number | null;
}

interface PullPlace {
  repositoryId: number;
  number: number;
}

/** Where a resource is. */
interface Place {
  repositoryId: number;
  /** The issue or pull request that the resource is or stands under. Null: there is none, or the answer does not tell. */
  number: number | null;
  isPull: boolean;
  /** Null: a review thread. Only its pull request is read. */
  resource: DecodedId | null;
}

/** What is known of a mutation, in all repositories. */
interface Found {
  isOfReview: boolean;
  /** The pull requests whose threads the mutation names. */
  threads: readonly PullPlace[];
  places: readonly Place[];
  refs: readonly (RefName & { repositoryId: number })[];
}

export interface Touching {
  /** What the caller sees of the mirror. */
  access: AccessScope;
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
export async function touchedBy(ctx: ApiContext, { access, ids, names, answer }: Touching): Promise<Touched[]> {
  const asked = ids.flatMap((id) => decodeId(id) ?? []);
  const shown = shownIn(answer);
  const isOfReview = names.some((name) => /review/i.test(name));
  const threads = isOfReview ? await findThreadPlaces(ctx.db, ids.slice(0, MOST_IDS), access) : [];
  const changed = names.every((name) => RESOLVING.has(name)) ? [] : threads;
  const known = await findPlaces(ctx, distinct([...asked, ...shown]).slice(0, MOST_IDS), access);
  const places = await withPulls(ctx, [
    ...changed.map((pull) => ({ ...pull, isPull: true, resource: null })),
    ...known,
    ...newPlaces(shown, { threads, known }),
  ]);
  const refs = names.some((name) => MOVING.has(name)) ? await refsOfPulls(ctx.db, pullsAmong(places)) : [];
  const repositoryIds = new Set([...threads, ...places].map(({ repositoryId }) => repositoryId));
  const repositories = await Promise.all([...repositoryIds].map((id) => ctx.mirror.repositories.byId(id, access)));
  return repositories.flatMap((repository) =>
    repository ? [touchedIn(repository, { isOfReview, threads, places, refs })] : [],
  );
}

/** The places that the mirror knows, with one question per type. */
export async function findPlaces(
  ctx: ApiContext,
  resources: readonly DecodedId[],
  access: AccessScope,
): Promise<Place[]> {
  const found = [...Map.groupBy(resources, ({ type }) => type)].map(async ([type, some]) => {
    const ids = some.map(({ id }) => id);
    const places = await placesOfType(ctx, type, ids, access);
    const isPull = type.startsWith("PullRequest");
    return places.map(({ id, repositoryId, number }) => ({ repositoryId, number, isPull, resource: { type, id } }));
  });
  return (await Promise.all(found)).flat();
}

async function placesOfType(ctx: ApiContext, type: DecodedId["type"], ids: readonly number[], access: AccessScope) {
  switch (type) {
    case "User":
    case "Organization":
    case "Bot":
      return [];
    case "Repository": {
      const found = await Promise.all(ids.map((id) => ctx.mirror.repositories.byId(id, access)));
      return found.flatMap((one) => (one ? [{ id: one.id, repositoryId: one.id, number: null }] : []));
    }
    default:
      return findNodePlaces(ctx.db, type satisfies RepositoryNodeKind, ids, access);
  }
}

/** A new resource stands in the repository that the mutation names. Pure. */
function newPlaces(
  shown: readonly ShownResource[],
  { threads, known }: { threads: readonly PullPlace[]; known: readonly Place[] },
): Place[] {
  const [home, ...others] = new Set([...threads, ...known].map(({ repositoryId }) => repositoryId));
  if (home === undefined || others.length > 0) return [];
  const isKnown = new Set(known.flatMap(({ resource }) => (resource ? nodeName(resource) : [])));
  return shown
    .filter((one) => !isKnown.has(nodeName(one)))
    .map(({ type, id, number }) => ({
      repositoryId: home,
      number: type === "Issue" || type === "PullRequest" ? number : null,
      isPull: type === "PullRequest",
      resource: { type, id },
    }));
}

/** An issue's or a comment's type does not tell whether its number is a pull request's. The mirror does. */
async function withPulls({ db }: Pick<ApiContext, "db">, places: readonly Place[]): Promise<Place[]> {
  const unsure = places.flatMap(({ repositoryId, number, isPull }) =>
    isPull || number === null ? [] : [{ repositoryId, number }],
  );
  const pulls = await findPullKeys(db, unsure);
  return places.map((place) => ({
    ...place,
    isPull: place.isPull || pulls.has(`${place.repositoryId}/${place.number}`),
  }));
}

function pullsAmong(places: readonly Place[]): PullPlace[] {
  return places.flatMap(({ repositoryId, number, isPull }) =>
    isPull && number !== null ? [{ repositoryId, number }] : [],
  );
}

/** What is touched in one repository. Pure. */
function touchedIn(repository: ShownRepository, { isOfReview, threads, places, refs }: Found): Touched {
  const { id, mirrors } = repository;
  const isHere = ({ repositoryId }: { repositoryId: number }) => repositoryId === id;
  const here = places.filter(isHere);
  const pulls = new Set(pullsAmong(here).map(({ number }) => number));
  const [named = null] = pulls;
  const things = here.flatMap(({ number, isPull, resource }) => {
    // A new review stands under the pull request that the mutation names.
    const own = resource && thingOf(resource, { repositoryId: id, number: number ?? named });
    return [...(number === null ? [] : issueThings({ id, number, isPull })), ...(own ? [own] : [])];
  });
  const lists = isOfReview ? [...pulls].flatMap((number) => newestReviews(id, number)) : [];
  const threadsOf = isOfReview ? new Set([...threads.filter(isHere).map(({ number }) => number), ...pulls]) : [];
  return {
    repository,
    things: distinctThings([...things, ...lists]),
    refs: mirrors.includes("refs") ? refs.filter(isHere) : [],
    threadsOf: mirrors.includes("threads") ? [...threadsOf] : [],
  };
}

/** What a resource is besides its issue or pull request. Null: nothing more has to be read. */
function thingOf(
  { type, id }: DecodedId,
  { repositoryId, number }: { repositoryId: number; number: number | null },
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
function newestReviews(repositoryId: number, number: number): Thing[] {
  const at = `/repositories/${repositoryId}/pulls/${number}`;
  return [
    { kind: "review", repositoryId, key: 0, path: `${at}/reviews?${FULL_PAGE}` },
    { kind: "review_comment", repositoryId, key: 0, path: `${at}/comments?${FULL_PAGE}&sort=created&direction=desc` },
  ];
}

function shownIn(value: Json): ShownResource[] {
  const found: ShownResource[] = [];
  const look = (one: Json | undefined): void => {
    if (Array.isArray(one)) for (const inner of one) look(inner);
    if (!isObject(one)) return;
    const decoded = typeof one.id === "string" ? decodeId(one.id) : null;
    if (decoded) found.push({ ...decoded, number: issueNumberOf(one) });
    for (const inner of Object.values(one)) look(inner);
  };
  look(value);
  return found;
}

function issueNumberOf({ number, url, permalink, resourcePath }: Fields): number | null {
  if (typeof number === "number") return number;
  for (const address of [url, permalink, resourcePath]) {
    const match = typeof address === "string" ? /\/(?:issues|pull)\/(\d{1,9})$/.exec(address) : null;
    if (match) return Number(match[1]);
  }
  return null;
}

export function distinct<One extends DecodedId>(all: readonly One[]): One[] {
  return [...new Map(all.map((one) => [nodeName(one), one])).values()];
}

function nodeName({ type, id }: DecodedId): string {
  return `${type} ${id}`;
}

function distinctThings(all: readonly Thing[]): Thing[] {
  return [...new Map(all.map((one) => [`${one.kind} ${one.key} ${one.path}`, one])).values()];
}
