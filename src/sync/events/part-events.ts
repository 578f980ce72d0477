import { isObject, numberOf, objectOf, textOf, wholeOf } from "../../json.ts";
import {
  InvalidRepresentationError,
  type Observed,
  observe,
  requireObject,
  requireString,
  type Sighting,
} from "../../mirror/store/observation.ts";
import { refNameOf, type ToldRef } from "../../mirror/store/refs.ts";
import { type BornHead, type FurtherReading, organizationOf, type Payload, type ToldPeople } from "./events.ts";

const TEAM_ACTIONS: readonly string[] = [
  "created",
  "deleted",
  "edited",
  "added_to_repository",
  "removed_from_repository",
];

/** The events of parts that show more than the documents of their kind, or belong to no kind. */
export const FOLLOWED_FOR_PARTS: Readonly<Record<string, FurtherReading>> = {
  check_run: {
    observe: ({ check_run: run }, at, ofKind) => {
      const { check_suite: suite } = objectOf(run);
      return [
        ...ofKind(),
        ...(isObject(suite) && suite.head_sha !== undefined ? [observePartial("check_suite", suite, at)] : []),
      ];
    },
  },
  check_suite: { observe: ({ check_suite: suite }, at) => [observePartial("check_suite", suite, at)] },
  status: {
    parts: ["checks"],
    own: ["sha", "commit", "name"],
    observe: (payload, at) => [observeStatus(payload, at)],
  },
  workflow_job: {
    parts: ["checks"],
    // No event of a check run says that it has begun; of a job of Actions this one does.
    observe: ({ workflow_job: job }, at, ofKind) => [
      ...(isObject(job) && job.run_url !== undefined ? ofKind() : []),
      ...observeJob(job, at),
    ],
  },
  push: {
    parts: ["checks", "commits", "refs"],
    own: ["ref", "commits"],
    hasOtherRepository: true,
    movedRef: ({ ref }) => textOf(ref),
    bornHead,
    toldRef: ({ ref, before, after }) => {
      const named = refNameOf(textOf(ref) ?? "");
      return named && { ...named, before: pointedAt(before), after: pointedAt(after) };
    },
  },
  create: {
    parts: ["refs"],
    own: ["ref"],
    toldRef: (payload) => madeRef(payload, { before: null, after: undefined }),
  },
  delete: {
    parts: ["refs"],
    own: ["ref"],
    toldRef: (payload) => madeRef(payload, { before: undefined, after: null }),
  },
  // The event does not move the pull request's time, and says nothing about its other threads.
  pull_request_review_thread: {
    parts: ["threads"],
    own: ["pull_request", "thread"],
    threadsOf: ({ pull_request: pull }) => wholeOf(objectOf(pull).number),
  },
  member: { parts: ["people"], own: ["member"], toldPeople },
  team_add: { parts: ["people"], own: ["team"], actions: [], toldPeople },
  team: { parts: ["people"], own: ["team"], actions: TEAM_ACTIONS, toldPeople, isOfOrganization: true },
  membership: { parts: ["people"], own: ["member", "team"], toldPeople, isOfOrganization: true },
  organization: {
    parts: ["people"],
    own: ["membership", "invitation"],
    actions: ["deleted", "member_added", "member_invited", "member_removed", "renamed"],
    toldPeople: (payload) => (payload.action === "member_invited" ? null : toldPeople(payload)),
    isOfOrganization: true,
  },
};

/**
 * An event says who joined or left, but not which lists that changes: child teams, owners and the organisation's base
 * permission give access, too. So the lists are read again.
 */
function toldPeople(payload: Payload): ToldPeople {
  const organizationId = isObject(payload.repository) ? null : organizationOf(payload);
  return { organizationId, teamId: wholeOf(objectOf(payload.team).id) };
}

/** A push says where a ref pointed and points to; forty zeros are nowhere. */
function pointedAt(sha: Payload[string] | undefined): string | null {
  if (typeof sha !== "string" || !/^[0-9a-f]{40,64}$/.test(sha))
    throw new InvalidRepresentationError("This push came without before or after");
  return /^0+$/.test(sha) ? null : sha;
}

/** Commits that upstream does not call distinct were there before. */
function bornHead({ after, commits, repository }: Payload): BornHead | null {
  const isNew =
    Array.isArray(commits) && commits.some((one) => objectOf(one).id === after && objectOf(one).distinct === true);
  const sha = isNew ? textOf(after) : null;
  // Other events say it as text, a push in seconds.
  const pushedAt = numberOf(objectOf(repository).pushed_at);
  return sha !== null && pushedAt !== null ? { sha, at: pushedAt * 1_000 } : null;
}

/** The ref of a `create` or `delete` event, whose payload tells only the name. */
function madeRef({ ref, ref_type: type }: Payload, told: Pick<ToldRef, "before" | "after">): ToldRef | null {
  const named = refNameOf(`refs/${type === "branch" ? "heads" : type === "tag" ? "tags" : ""}/${textOf(ref) ?? ""}`);
  return named && { ...named, ...told };
}

/** A partial observation, since webhooks leave out keys that every read has. */
function observePartial(kind: "check_run" | "check_suite", value: Payload[string] | undefined, at: Sighting): Observed {
  const observed = observe(kind, value ?? null, at);
  const seen = observed.seen.map((one) => (one.kind === kind ? { ...one, extent: "partial" as const } : one));
  return { ...observed, seen };
}

/**
 * The payload has the status without its address, its creator and its global id. The first two are told by what stands beside it;
 * a read has to show the third.
 */
function observeStatus(payload: Payload, at: Sighting): Observed {
  const { id, sha, state, description, target_url, context, avatar_url, sender } = payload;
  if (typeof sha !== "string" || !at.repository) throw new InvalidRepresentationError("This status came without sha");
  const url = `${at.api}/repos/${at.repository.fullName}/statuses/${sha}`;
  return observe(
    "status",
    {
      url,
      avatar_url: avatar_url ?? objectOf(sender).avatar_url ?? null,
      id: id ?? null,
      state: state ?? null,
      description: description ?? null,
      target_url: target_url ?? null,
      context: context ?? null,
      created_at: inSeconds(requireString("status", payload, "created_at")),
      updated_at: inSeconds(requireString("status", payload, "updated_at")),
      ...(isObject(sender) && { creator: sender }),
    },
    at,
  );
}

/** `2019-05-15T15:20:41+00:00` → `2019-05-15T15:20:41Z`, as REST has it. */
function inSeconds(moment: string): string {
  const at = new Date(moment);
  return Number.isNaN(at.getTime()) ? moment : at.toISOString().replace(/\.\d+Z$/, "Z");
}

/**
 * A job of Actions, observed as its check run: the job's address has the run's id. A run that the mirror does not know
 * yet is not learnt from a job.
 */
function observeJob(value: Payload[string] | undefined, at: Sighting): Observed[] {
  const { check_run_url, status, started_at, head_sha, name } = objectOf(value);
  const id = numberOf(Number(/\/check-runs\/(\d+)$/.exec(textOf(check_run_url) ?? "")?.[1]));
  if (status !== "in_progress" || !Number.isSafeInteger(id)) return [];
  const run = { id, head_sha: head_sha ?? null, name: name ?? null, status, started_at: started_at ?? null };
  return [observePartial("check_run", requireObject("check_run", run), at)];
}
