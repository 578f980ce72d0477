import type { IncomingHttpHeaders } from "node:http";
import type { Meter } from "../quota/meter.ts";
import type { Caller, Quota } from "../quota/quota.ts";
import type { View } from "../views/view.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";
import { allows, type Kind, kindOf } from "../world/access.ts";
import type { App, Apps } from "../world/apps.ts";
import type { Manifests } from "../world/manifests.ts";
import { accepted, levelOf, type Needed } from "../world/permissions.ts";
import type { Issue, PullIssue, Repository, RepositoryRole, Seconds } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import { calledBy, mayPush, type Token, type Tokens } from "../world/tokens.ts";
import { isPull, type World } from "../world/world.ts";
import { ACCEPTED_PERMISSIONS } from "./headers.ts";

/** What the routes share. */
export interface Service {
  readonly world: World;
  readonly tokens: Tokens;
  readonly apps: Apps;
  readonly quota: Quota;
  readonly meter: Meter;
  readonly webhooks: Webhooks;
  readonly manifests: Manifests;
  /** Rows beyond which `page` without a cursor is refused on issues. */
  readonly deepPageLimit: number;
  /** Rows beyond which `page` is refused on all other lists. */
  readonly numberedRows: () => number;
  /** The real service refuses hooks on loopback addresses; a simulation needs them. */
  readonly refuseLocalHooks: boolean;
  /** The service's whole GraphQL schema, as SDL; null: the part of it that is modelled. */
  readonly wholeSchema: string | null;
}

/** One REST request, checked and authenticated. */
export interface Call extends Service {
  readonly method: string;
  /** Below the base, with numeric ids for names: what `Link` shows. Starts with a slash. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Parsed body of a write; `{}` when there was none. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly params: Readonly<Record<string, string>>;
  readonly token: Token | null;
  /** Only on routes for Apps: who called, by its JWT. */
  readonly app: App | null;
  readonly headers: IncomingHttpHeaders;
  readonly caller: Caller;
  readonly view: View;
}

/** A call below `/repos/{owner}/{repo}` (or `/repositories/{id}`), its repository found and visible. */
export interface RepositoryCall extends Call {
  readonly repository: Repository;
  readonly role: RepositoryRole;
  /** Whether the token may read (a GET) or write (all else) rows of the kind here. */
  mayTouch(kind: Kind): boolean;
}

export interface Answer {
  readonly status: number;
  /** JSON; absent for 204. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** `Last-Modified`, only where the service sends it. */
  readonly lastModified?: Seconds;
  /** Links of a list, joined by the server with others. */
  readonly links?: readonly string[];
  /** `/rate_limit` and searches have no validators and may not be cached. */
  readonly uncached?: boolean;
  /** Instead of the tag that is made of the body. */
  readonly tag?: string;
  /** Something else than JSON. */
  readonly text?: { readonly type: string; readonly content: string };
}

export function ok(body: unknown, extra: Omit<Answer, "status" | "body"> = {}): Answer {
  return { status: 200, body, ...extra };
}

/** 201 carries the address of what was made. */
export function created(body: Record<string, unknown>): Answer {
  return { status: 201, body, headers: { Location: String(body.url) } };
}

export const NO_CONTENT: Answer = { status: 204 };

export function notFound(): Refusal {
  return new Refusal(404, "Not Found");
}

/** The token's permissions do not suffice: which would, if that is known. */
export function inaccessible(token: Token, needed?: Needed): Refusal {
  const headers = needed ? { [ACCEPTED_PERMISSIONS]: accepted(needed) } : {};
  return new Refusal(403, `Resource not accessible by ${calledBy(token)}`, undefined, headers);
}

/**
 * Routes of issues take pull requests' numbers, and comments belong to either. With `issues` alone, commenting on a
 * pull request was seen to be refused, in these words. It is unconfirmed that reads are refused in the same way:
 * this is the stricter reading.
 */
export function needKind(call: RepositoryCall, issue: Issue): void {
  if (!call.token || call.mayTouch(kindOf(issue))) return;
  const level = levelOf(call.method);
  throw inaccessible(call.token, [
    { permission: "issues", level },
    { permission: "pull_requests", level },
  ]);
}

/** Writes need a token that may write at all; whether it may write *here* is another question (`needPush`). */
export function writer(call: Call): number {
  if (!call.token) throw new Refusal(401, "Requires authentication");
  if (!call.token.write) throw inaccessible(call.token);
  return call.token.userId;
}

/** The account that writes into the repository. Archived ones take no writes. */
export function contributor(call: RepositoryCall): number {
  const by = writer(call);
  if (call.repository.archived) throw new Refusal(403, "Repository was archived so is read-only.");
  return by;
}

export function needPush(call: RepositoryCall): number {
  const by = contributor(call);
  if (!mayPush(call.role)) throw new Refusal(403, "Must have push access to repository");
  return by;
}

export function needAdmin(call: RepositoryCall): number {
  const by = writer(call);
  if (call.role !== "admin") throw new Refusal(403, "Must have admin rights to Repository.");
  return by;
}

/** Sends the caller to another address: the service's answer for what was renamed or transferred. */
export class Redirect extends Error {
  override name = "Redirect";
  /** Empty when the service does not know where to. */
  readonly location: string;
  constructor(location: string) {
    super("Moved Permanently");
    this.location = location;
  }
}

/** The issue as reads see it: 410 when deleted, 301 when transferred, 404 otherwise. */
export function seenIssue(call: RepositoryCall): Issue {
  const number = Number(call.params.number);
  const issue = findIssue(call, number);
  const seen = issue && call.world.lag.seen(issue);
  if (!seen) throw notFound();
  return seen;
}

/** Sub-resources of an issue that is gone are 404, not redirected. */
export function seenIssueOnly(call: RepositoryCall): Issue {
  try {
    return seenIssue(call);
  } catch (error) {
    if (error instanceof Redirect) throw notFound();
    throw error;
  }
}

function findIssue(call: RepositoryCall, number: number): Issue | undefined {
  const { world, repository } = call;
  const issue = world.issue(repository, number);
  if (issue) needKind(call, issue);
  if (issue) return issue;
  const tombstone = repository.rows.tombstones.get(number);
  if (!tombstone) return undefined;
  needKind(call, tombstone.last);
  if (world.lag.pending(tombstone.at)) return tombstone.last;
  if (tombstone.kind === "deleted") throw new Refusal(410, "This issue was deleted");
  const to = tombstone.to && followed(tombstone.to);
  if (!to) throw new Redirect(""); // Moved, and where to has gone since.
  if (!allows(world, call.token, to.repository, [{ permission: kindOf(to), level: "read" }])) throw notFound();
  throw new Redirect(`${call.view.apiUrl}/repositories/${to.repository.id}/issues/${to.number}`);
}

/** Where a chain of transfers ended; null when the last one is gone. */
function followed(issue: Issue): Issue | null {
  if (issue.repository.deleted) return null;
  if (!issue.deleted) return issue;
  const next = issue.repository.rows.tombstones.get(issue.number)?.to;
  return next ? followed(next) : null;
}

/** The issue that is written to: the truth, not a replica's. */
export function issueToWrite(call: RepositoryCall): Issue {
  const issue = findIssue(call, Number(call.params.number));
  if (!issue || issue.deleted) throw notFound();
  return issue;
}

export function seenPull(call: RepositoryCall): PullIssue {
  const issue = call.world.issue(call.repository, Number(call.params.number));
  const seen = issue && call.world.lag.seen(issue);
  if (!seen || !isPull(seen)) throw notFound();
  return seen;
}

export function pullToWrite(call: RepositoryCall): PullIssue {
  const issue = call.world.issue(call.repository, Number(call.params.number));
  if (!issue || !isPull(issue)) throw notFound();
  return issue;
}
