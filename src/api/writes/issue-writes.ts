/**
 * Writes about issues: what each sends, and what its success changes. Writes of a pull request's conversation are the
 * same.
 */
import { type Fields, type Json, objectOf } from "../../json.ts";
import type { Kind, ResourceKey } from "../../kinds/contract/kind.ts";
import { referenceId } from "../../kinds/contract/placeholders.ts";
import { isMirroredPull } from "../../mirror/read/pulls.ts";
import type { Stored } from "../../mirror/store/merge-rule.ts";
import { observe } from "../../mirror/store/observation.ts";
import { strip } from "../../mirror/store/template.ts";
import type { ApiContext } from "../call/call.ts";
import type { FollowUpRead } from "./read-back.ts";
import type { Find, Implied, Sayings, Write, Written } from "./write.ts";

/** The repository that a write goes to. Its name may be another's by now, so writes go by the id. */
export interface RepositoryAddress {
  id: number;
}

/** An issue, or a pull request by its issue's side. */
export interface IssueAddress extends RepositoryAddress {
  number: number;
  /** Whether it is a pull request, as far as the mirror knows. */
  isPull: boolean;
}

/** The answers to these show the whole issue. */
function writesIssue(
  place: IssueAddress,
  { method, below, body }: { method: Write["method"]; below: string; body: string },
): Write {
  return {
    method,
    path: `/repositories/${place.id}/issues/${place.number}${below}`,
    body,
    about: sides(place),
    reads: () => (place.isPull ? [readOf("pull_request", place)] : []),
    says: ({ answer, at }, find) => saysIssue(answer, at, find),
  };
}

export function createIssue({ id }: RepositoryAddress, body: string): Write {
  return {
    method: "POST",
    path: `/repositories/${id}/issues`,
    body,
    about: [],
    says: ({ answer, at }, find) => saysIssue(answer, at, find),
  };
}

export function editIssue(place: IssueAddress, body: string): Write {
  return writesIssue(place, { method: "PATCH", below: "", body });
}

export function changeAssignees(place: IssueAddress, method: "POST" | "DELETE", body: string): Write {
  return writesIssue(place, { method, below: "/assignees", body });
}

async function saysIssue(answer: Json, at: Written["at"], find: Find): Promise<Sayings> {
  const observed = observe("issue", answer, at);
  const shown = observed.seen.find(({ kind, extent }) => kind === "issue" && extent !== "partial");
  if (!shown) throw new Error("An observed issue has lost itself");
  const { fields, key } = shown;
  const before = await find("issue", key);
  const implied: Implied[] = [
    ...(await openCount(find, at, before?.fields, fields)),
    ...(await formerMilestone(find, before?.fields, fields)),
  ];
  const pullSide = observed.seen.find(({ kind }) => kind === "pull_request");
  if (pullSide)
    implied.push({ kind: "pull_request", key, fields: pullSide.fields, movedAt: String(fields.updated_at) });
  return { shown: [observed], implied };
}

/** The change of a repository's count of open issues and pull requests. */
export async function openCount(
  find: Find,
  { repository }: Written["at"],
  before: Fields | undefined,
  after: Fields,
): Promise<Implied[]> {
  const change = Number(after.state === "open") - Number(before?.state === "open");
  const stored = repository && change !== 0 ? await find("repository", repository.id) : undefined;
  if (!repository || typeof stored?.fields.open_issues_count !== "number") return [];
  const count = stored.fields.open_issues_count + change;
  const fields = { open_issues_count: count, ...("open_issues" in stored.fields ? { open_issues: count } : {}) };
  return [{ kind: "repository", key: repository.id, fields, movedAt: null }];
}

/** The change of the milestone that an issue has left. The answer shows only the issue's new milestone. */
async function formerMilestone(find: Find, before: Fields | undefined, after: Fields): Promise<Implied[]> {
  const id = referenceId(before?.milestone);
  if (id === null || id === referenceId(after.milestone)) return [];
  const name = before?.state === "open" ? "open_issues" : "closed_issues";
  const count = (await find("milestone", id))?.fields[name];
  if (typeof count !== "number") return [];
  // GitHub was seen to move the milestone's own `updated_at` too.
  const movedAt = String(after.updated_at);
  return [{ kind: "milestone", key: id, fields: { [name]: Math.max(0, count - 1) }, movedAt, isGuess: true }];
}

/** Adds labels (POST), puts others in their place (PUT), or takes one (`below`: `/name`) or all of them off. */
export function changeLabels(
  place: IssueAddress,
  { method, below = "", body }: { method: "POST" | "PUT" | "DELETE"; below?: string; body: string | null },
): Write {
  return {
    method,
    path: `/repositories/${place.id}/issues/${place.number}/labels${below}`,
    body,
    about: sides(place),
    reads: () => sides(place).map(({ kind }) => readOf(kind, place)),
    says: ({ answer, at, doneBy }, find) => {
      const labels = Array.isArray(answer) ? answer : [];
      const home = { api: at.api, fullName: at.repository?.fullName, htmlUrl: at.repository?.htmlUrl ?? undefined };
      const stripped = strip({ labels }, home);
      const shown = labels.map((label) => observe("label", label, at));
      return saysLabels(place, find, stripped.fields.labels ?? [], {
        movedAt: doneBy,
        shown: [{ seen: shown.flatMap(({ seen }) => seen), shapes: stripped.shapes }],
      });
    },
  };
}

/** What a change of labels says. `labels` are as they are stored. Labels that were there already change nothing. */
export async function saysLabels(
  place: IssueAddress,
  find: Find,
  labels: Json,
  { movedAt, shown = [] }: { movedAt: string | null; shown?: Sayings["shown"] },
): Promise<Sayings> {
  const implied: Implied[] = [];
  for (const { kind, key } of sides(place)) {
    const before = (await find(kind, key))?.fields;
    const isMoved = idsOf(before?.labels).join() !== idsOf(labels).join();
    implied.push({ kind, key, fields: { labels }, movedAt: isMoved ? notEarlier(movedAt, before) : null });
  }
  return { shown, implied };
}

function idsOf(labels: Json | undefined): (number | null)[] {
  return (Array.isArray(labels) ? labels : []).map(referenceId);
}

/** Locks (PUT) or unlocks (DELETE). Whether that moves `updated_at` is not documented. */
export function lockIssue(place: IssueAddress, method: "PUT" | "DELETE", body: string | null): Write {
  const reason = method === "PUT" && body !== null ? objectOf(JSON.parse(body)).lock_reason : null;
  const fields: Fields = { locked: method === "PUT", active_lock_reason: reason ?? null };
  return {
    method,
    path: `/repositories/${place.id}/issues/${place.number}/lock`,
    body,
    about: sides(place),
    reads: () => sides(place).map(({ kind }) => readOf(kind, place)),
    says: () => ({ implied: sides(place).map(({ kind, key }) => ({ kind, key, fields, movedAt: null })) }),
  };
}

/** A count of children that a resource shows, and when the count changed. */
export async function counts(
  find: Find,
  keys: readonly ResourceKey[],
  name: "comments" | "review_comments",
  { change, movedAt, between }: { change: number; movedAt: string | null; between: Written["between"] },
): Promise<Implied[]> {
  const implied: Implied[] = [];
  for (const { kind, key } of keys) {
    const stored = await find(kind, key);
    const before = stored?.fields;
    const count = before?.[name];
    const isCounted = stored !== undefined && wasReadBetween(stored, name, { movedAt, between });
    const fields: Fields =
      typeof count === "number" && change !== 0 && !isCounted ? { [name]: Math.max(0, count + change) } : {};
    // A replica may have shown an earlier count, with the time of another change in the same second.
    const guess = isCounted ? { isGuess: true as const } : {};
    if (Object.keys(fields).length > 0 || movedAt !== null)
      implied.push({ kind, key, fields, movedAt: notEarlier(movedAt, before), ...guess });
  }
  return implied;
}

/** Whether the stored value was read while the write was under way, from an upstream that showed its change. */
function wasReadBetween(
  { stamp, keyStamps }: Stored,
  name: string,
  { movedAt, between: [sentAt, answeredAt] }: { movedAt: string | null; between: Written["between"] },
): boolean {
  const { read, seenAt, updatedAt } = keyStamps[name] ?? stamp;
  const isBetween = read && seenAt >= sentAt.getTime() && seenAt <= answeredAt.getTime();
  return isBetween && movedAt !== null && updatedAt >= Date.parse(movedAt);
}

/** The time of the change, or the stored `updated_at` if that is later. */
function notEarlier(movedAt: string | null, before: Fields | undefined): string | null {
  return movedAt !== null && typeof before?.updated_at === "string" && before.updated_at > movedAt
    ? before.updated_at
    : movedAt;
}

/** The kinds under which a resource is seen: a pull request is also an issue. */
export function sides({ id, number, isPull }: IssueAddress): ResourceKey[] {
  const key = (kind: Kind): ResourceKey => ({ kind, repositoryId: id, key: number });
  return isPull ? [key("issue"), key("pull_request")] : [key("issue")];
}

export function readOf(kind: Kind, { id, number }: Pick<IssueAddress, "id" | "number">): FollowUpRead {
  return { kind, key: number, path: `/repositories/${id}/${kind === "issue" ? "issues" : "pulls"}/${number}` };
}

/** The issue or pull request to write to. The mirror need not have heard of it, since upstream decides. */
export async function issuePlace(
  { db }: Pick<ApiContext, "db">,
  { id }: RepositoryAddress,
  number: number,
): Promise<IssueAddress> {
  return { id, number, isPull: await isMirroredPull(db, id, number) };
}
