/** The issues and pull requests of a connection, in order. It does not walk all of them if an index helps. */
import type { Issue, Milestone, PullIssue, Repository, Seconds } from "../world/records.ts";
import { commentCount, isPull } from "../world/world.ts";
import { type Call, typedError } from "./call.ts";
import { arraySource, indexSource, type Source } from "./connection.ts";

interface IssueOrder {
  readonly field: "CREATED_AT" | "UPDATED_AT" | "COMMENTS";
  readonly direction: "ASC" | "DESC";
}

interface IssueFilters {
  readonly assignee?: string | null;
  readonly createdBy?: string | null;
  readonly labels?: readonly string[] | null;
  readonly mentioned?: string | null;
  readonly milestone?: string | null;
  readonly milestoneNumber?: string | null;
  readonly since?: Seconds | null;
  readonly states?: readonly ("OPEN" | "CLOSED")[] | null;
  readonly viewerSubscribed?: boolean | null;
}

export interface IssuesArguments {
  readonly states?: readonly ("OPEN" | "CLOSED")[] | null;
  readonly labels?: readonly string[] | null;
  readonly filterBy?: IssueFilters | null;
  readonly orderBy?: IssueOrder | null;
}

export interface PullsArguments {
  readonly states?: readonly PullState[] | null;
  readonly labels?: readonly string[] | null;
  readonly headRefName?: string | null;
  readonly baseRefName?: string | null;
  readonly orderBy?: IssueOrder | null;
}

export type PullState = "OPEN" | "CLOSED" | "MERGED";

export function pullState(issue: PullIssue): PullState {
  if (issue.state === "open") return "OPEN";
  return issue.pull.mergedAt === null ? "CLOSED" : "MERGED";
}

export function issueState(issue: Issue): "OPEN" | "CLOSED" {
  return issue.state === "open" ? "OPEN" : "CLOSED";
}

type Test = (issue: Issue) => boolean;

/** Absent and empty mean all; a filter's value of literal null means "has none". */
export function issuesSource(call: Call, repository: Repository, args: IssuesArguments, also?: Test): Source<Issue> {
  const filter = args.filterBy ?? {};
  const tests: Test[] = [(issue) => !issue.pull];
  const states = [...(args.states ?? []), ...(filter.states ?? [])];
  if (states.length > 0) tests.push((issue) => states.includes(issueState(issue)));
  if (args.labels && args.labels.length > 0) tests.push(anyLabel(repository, args.labels));
  for (const label of filter.labels ?? []) tests.push(anyLabel(repository, [label]));
  if (filter.assignee !== undefined) tests.push(assigneeTest(call, filter.assignee));
  if (filter.createdBy != null) {
    const author = call.world.userByLogin(filter.createdBy)?.id;
    tests.push((issue) => author !== undefined && issue.authorId === author);
  }
  if (filter.mentioned != null) {
    const mention = mentionOf(filter.mentioned);
    tests.push((issue) => mention.test(issue.body ?? "") || issue.thread.some((comment) => mention.test(comment.body)));
  }
  if (filter.milestone !== undefined) tests.push(milestoneTest(filter.milestone, (id) => id));
  if (filter.milestoneNumber !== undefined) {
    tests.push(milestoneTest(filter.milestoneNumber, (number) => call.world.milestoneByNumber(repository, number)?.id));
  }
  if (filter.viewerSubscribed === true) {
    const viewer = call.viewer.id;
    tests.push(
      (issue) =>
        issue.authorId === viewer ||
        issue.assigneeIds.includes(viewer) ||
        issue.thread.some((one) => one.authorId === viewer),
    );
  }
  if (also) tests.push(also);

  const since = filter.since ?? undefined;
  const onlyStates =
    !also &&
    since === undefined &&
    !args.labels?.length &&
    Object.keys(filter).every((name) => name === "states" || name === "viewerSubscribed") &&
    filter.viewerSubscribed !== true;
  const all = () => repository.rows.issuesByCreated.size - repository.rows.pullsByCreated.size;
  const counted = () => {
    const wanted = new Set(states);
    if (wanted.size !== 1) return all();
    return wanted.has("OPEN") ? repository.openIssues : all() - repository.openIssues;
  };
  return orderedSource(repository, args.orderBy, tests, {
    since,
    count: onlyStates ? counted : undefined,
    pullsOnly: false,
  });
}

export function pullsSource(repository: Repository, args: PullsArguments, also?: Test): Source<PullIssue> {
  const tests: Test[] = [isPull];
  const states = args.states ?? [];
  if (states.length > 0) tests.push((issue) => isPull(issue) && states.includes(pullState(issue)));
  if (args.labels && args.labels.length > 0) tests.push(anyLabel(repository, args.labels));
  if (args.headRefName != null) tests.push((issue) => issue.pull?.head.ref === args.headRefName);
  if (args.baseRefName != null) tests.push((issue) => issue.pull?.base.ref === args.baseRefName);
  if (also) tests.push(also);
  const { rows } = repository;
  let count: (() => number) | undefined;
  if (tests.length === 1) count = () => rows.pullsByCreated.size;
  else if (tests.length === 2 && states.length === 1 && states[0] === "OPEN") count = () => repository.openPulls;
  // The tests begin with `isPull`, so no other row comes out.
  return orderedSource(repository, args.orderBy, tests, {
    since: undefined,
    count,
    pullsOnly: true,
  }) as Source<PullIssue>;
}

interface Walk {
  readonly since: Seconds | undefined;
  readonly count: (() => number) | undefined;
  readonly pullsOnly: boolean;
}

// With a bound on `updated_at` but another order, the changed rows are picked out and sorted, unless they are this
// many:
// then walking in the wanted order finds a page sooner.
const MANY = 5_000;

function orderedSource(
  repository: Repository,
  order: IssueOrder | null | undefined,
  tests: readonly Test[],
  walk: Walk,
): Source<Issue> {
  const { rows } = repository;
  const { since, count } = walk;
  const descending = order?.direction === "DESC";
  const passes: Test = (issue) => tests.every((test) => test(issue));
  const fresh: Test = since === undefined ? passes : (issue) => issue.updatedAt >= since && passes(issue);
  const field = order?.field ?? "CREATED_AT";
  switch (field) {
    case "UPDATED_AT":
      return indexSource(rows.issuesByUpdated, {
        keyOf: (issue) => issue.updatedAt,
        descending,
        filter: passes,
        since,
        count,
      });
    case "COMMENTS":
      return arraySource(picked(rows.issuesByCreated.ascending(), fresh), { keyOf: commentCount, descending });
    case "CREATED_AT": {
      const keyOf = (issue: Issue) => issue.createdAt;
      if (since !== undefined) {
        const changed = picked(rows.issuesByUpdated.ascending({ key: since, id: -1 }), passes, MANY);
        if (changed.length < MANY) return arraySource(changed, { keyOf, descending, timed: true });
      }
      const index = walk.pullsOnly ? rows.pullsByCreated : rows.issuesByCreated;
      return indexSource(index, { keyOf, descending, filter: fresh, count });
    }
    default:
      return field satisfies never;
  }
}

function picked(rows: Iterable<Issue>, test: Test, most = Number.POSITIVE_INFINITY): Issue[] {
  const found: Issue[] = [];
  for (const row of rows) {
    if (!test(row)) continue;
    found.push(row);
    if (found.length >= most) break;
  }
  return found;
}

function anyLabel(repository: Repository, names: readonly string[]): Test {
  const wanted = new Set(names.map((name) => name.toLowerCase()));
  const ids = new Set<number>();
  for (const label of repository.rows.labels.values()) if (wanted.has(label.name.toLowerCase())) ids.add(label.id);
  return (issue) => issue.labelIds.some((id) => ids.has(id));
}

function assigneeTest(call: Call, login: string | null): Test {
  if (login === null) return (issue) => issue.assigneeIds.length === 0;
  if (login === "*") return (issue) => issue.assigneeIds.length > 0;
  const id = call.world.userByLogin(login)?.id;
  return (issue) => id !== undefined && issue.assigneeIds.includes(id);
}

/** `*`: any; null: none; else a number that `idOf` knows. */
function milestoneTest(value: string | null, idOf: (number: number) => Milestone["id"] | undefined): Test {
  if (value === null) return (issue) => issue.milestoneId === null;
  if (value === "*") return (issue) => issue.milestoneId !== null;
  if (!/^\d+$/.test(value)) throw typedError("UNPROCESSABLE", `Not a milestone: ${value}`);
  const id = idOf(Number(value));
  return (issue) => id !== undefined && issue.milestoneId === id;
}

export function mentionOf(login: string): RegExp {
  return new RegExp(`(^|[^A-Za-z0-9-])@${login.replaceAll(/[^A-Za-z0-9-]/g, "")}(?![A-Za-z0-9-])`, "i");
}
