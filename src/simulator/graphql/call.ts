import { GraphQLError, type GraphQLResolveInfo } from "graphql";
import type { GraphqlFaults } from "../faults/faults.ts";
import { repositoryPage, type View } from "../views/view.ts";
import type { Kind } from "../world/access.ts";
import type { Level, Needed } from "../world/permissions.ts";
import {
  GHOST_ID,
  type Issue,
  type Repository,
  type RepositoryRole,
  type Seconds,
  type User,
} from "../world/records.ts";
import type { Row } from "../world/replica-lag.ts";
import type { Token } from "../world/tokens.ts";
import type { World } from "../world/world.ts";
import type { Cost } from "./cost.ts";

/** Who asks, and what they may see and do. */
export interface Caller {
  /** Null: none was shown, which only REST's search allows. */
  readonly token: Token | null;
  /** Says who is refused in "Resource not accessible by …". */
  readonly kind: "personal access token" | "integration";
  /** Calls as an App itself, or as Actions: as no account. */
  readonly isApp: boolean;
  /** Undefined: the repository does not exist for the caller. */
  roleOf(repository: Repository): RepositoryRole | undefined;
  /** Whether the repository was given to the token itself, apart from its account's rights. */
  wasGiven(repository: Repository): boolean;
  /** What the token's permissions or scopes allow; a role can still narrow it. */
  may(repository: Repository, needed: Needed): boolean;
}

/** The caller's points in the present window. */
interface PointWindow {
  readonly limit: number;
  readonly remaining: number;
  readonly used: number;
  /** Epoch seconds. */
  readonly resetAt: Seconds;
}

/** Thrown to end the execution as a whole. */
export class TimedOutError extends Error {
  override name = "TimedOutError";
}

/** Counts one more delivered node. */
export function work(call: Call): void {
  call.work += 1;
  if (call.faults.timeoutAtWork !== undefined && call.work > call.faults.timeoutAtWork)
    throw new TimedOutError("Too much work");
}

/** One request being answered. */
export interface Call {
  readonly world: World;
  readonly caller: Caller;
  readonly viewer: User;
  readonly faults: GraphqlFaults;
  /** What REST's views need: addresses, the form of ids. One truth, so that both dialects agree. */
  readonly view: View;
  readonly cost: Cost;
  /** After this query was charged. */
  readonly points: PointWindow;
  /** Nodes delivered so far. */
  work: number;
  /** By path without list places: how many parents asked for the connection. */
  readonly nested: Map<string, number>;
  /** The ids of the old form that the query names, each with the new one. */
  readonly oldIds: Map<string, string>;
}

export type ErrorType =
  | "NOT_FOUND"
  | "FORBIDDEN"
  | "INSUFFICIENT_SCOPES"
  | "UNPROCESSABLE"
  | "MISSING_PAGINATION_BOUNDARIES"
  | "EXCESSIVE_PAGINATION"
  | "INVALID_CURSOR_ARGUMENTS"
  | "ARGUMENT_LIMIT"
  | "RESOURCE_LIMITS_EXCEEDED"
  | "MAX_NODE_LIMIT_EXCEEDED";

/** An error with the service's `type` beside its message. */
export function typedError(type: ErrorType, message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { type } });
}

export function notFound(what: string): GraphQLError {
  return typedError("NOT_FOUND", `Could not resolve to ${what}`);
}

export function forbidden(call: Call): GraphQLError {
  const extensions = { type: "FORBIDDEN", saml_failure: false };
  return new GraphQLError(`Resource not accessible by ${call.caller.kind}`, { extensions });
}

/** Deleted accounts are null here, where REST shows the ghost. */
export function actor(call: Call, id: number | null): User | null {
  if (id === null || id === GHOST_ID) return null;
  return call.world.users.get(id) ?? null;
}

/** The row as a replica that may lag has it; null when it is not there (yet). */
export function seen<T extends Row>(call: Pick<Call, "world">, row: T | null | undefined): T | null {
  if (!row || row.deleted) return null;
  return call.world.lag.seen(row);
}

export function readable(
  call: Pick<Call, "world" | "caller">,
  repository: Repository | null | undefined,
): Repository | null {
  const row = seen(call, repository);
  return row && call.caller.roleOf(row) ? row : null;
}

/** The permission that what hangs on code takes. */
type CodeKind = "checks" | "statuses" | "contents" | "deployments";

export function mayRead(call: Pick<Call, "caller">, repository: Repository, kind: Kind | CodeKind): boolean {
  return call.caller.may(repository, [{ permission: kind, level: "read" }]);
}

export function requireRead(call: Call, repository: Repository, kind: Kind | CodeKind): void {
  if (!mayRead(call, repository, kind)) throw forbidden(call);
}

/** Labels, milestones, and who can be assigned belong to both kinds: either permission suffices, as in REST. */
export function requireEither(call: Call, repository: Repository, level: Level = "read"): void {
  if (!call.caller.may(repository, eitherKind(level))) throw forbidden(call);
}

function eitherKind(level: Level): Needed {
  return [
    { permission: "issues", level },
    { permission: "pull_requests", level },
  ];
}

/** `resourcePath` beside `url`. */
export function pathOf(call: Call, url: string): string {
  return url.slice(call.view.htmlUrl.length);
}

export function issuePage(call: Call, issue: Issue): string {
  return `${repositoryPage(call.view, issue.repository)}/${issue.pull ? "pull" : "issues"}/${issue.number}`;
}

/** Whether the query asks for one of `names` directly below this field, through fragments too. */
export function selects(info: GraphQLResolveInfo, ...names: readonly string[]): boolean {
  const within = (selections: NonNullable<(typeof info.fieldNodes)[number]["selectionSet"]>["selections"]): boolean =>
    selections.some((selection) => {
      if (selection.kind === "Field") return names.includes(selection.name.value);
      const fragment = selection.kind === "InlineFragment" ? selection : info.fragments[selection.name.value];
      return fragment !== undefined && within(fragment.selectionSet.selections);
    });
  return info.fieldNodes.some((field) => field.selectionSet !== undefined && within(field.selectionSet.selections));
}
