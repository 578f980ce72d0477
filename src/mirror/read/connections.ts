import { type Sql, sql } from "../../../db/sql.ts";
import { IN_STATE, type IssueFilter, isNarrow, issueConditions, labelCondition, listedConditions } from "./issues.ts";
import { type IssueState, inLabelList, labelLists } from "./label-lists.ts";
import {
  BIGINT,
  contains,
  direction,
  INTEGER,
  type Order,
  type PageSource,
  type SortKey,
  TEXT,
  TIMESTAMP,
  time,
} from "./pages.ts";
import { assignable } from "./users.ts";

export interface IssuesArguments {
  orderBy?: Order | null;
  states?: ("OPEN" | "CLOSED")[] | null;
  labels?: string[] | null;
  filterBy?: {
    assignee?: string | null;
    createdBy?: string | null;
    labels?: string[] | null;
    mentioned?: string | null;
    milestone?: string | null;
    milestoneNumber?: string | null;
    since?: string | null;
    states?: ("OPEN" | "CLOSED")[] | null;
  } | null;
}

/** What issues and pull requests are listed under. */
export type Above = "repository" | "label" | "milestone";

/** The condition that the issue or pull request `alias` lies under its parent. */
function under(alias: Sql, above: Above): Sql {
  const inRepository = sql`${alias}.repository_id = x.r`;
  if (above === "repository") return inRepository;
  if (above === "milestone") return sql`${inRepository} and ${alias}.milestone_id = x.n`;
  return sql`${inRepository} and exists (select from issue_labels il
    where il.repository_id = x.r and il.label_id = x.n and il.number = ${alias}.number)`;
}

/** Issues without pull requests. `labels` matches any of them, those of `filterBy` all. */
export function issues(args: IssuesArguments, above: Above = "repository"): PageSource {
  const { orderBy, states, labels, filterBy } = args;
  const filter: IssueFilter = {
    state: "all",
    since: filterBy?.since ? new Date(filterBy.since) : undefined,
    assignee: choice(filterBy?.assignee, (login) => ({ login })),
    creator: filterBy?.createdBy ?? undefined,
    mentioned: filterBy?.mentioned ?? undefined,
    labels: filterBy?.labels ?? undefined,
    milestone: choice(filterBy?.milestoneNumber, Number),
  };
  const wanted = [states ?? [], filterBy?.states ?? []].filter(({ length }) => length > 0);
  const parts = {
    repositoryId: sql`i.repository_id`,
    document: sql`i.document`,
    body: sql`i.body`,
    direction: direction(orderBy),
  };
  const list = labelList(filter, args, above);
  if (list) {
    return {
      ...parts,
      lists: labelLists({ repository: sql`x.r`, label: list.label, states: statesOf(wanted), arePulls: false }),
      from: sql`issue_labels il join issues i on i.repository_id = il.repository_id and i.number = il.number`,
      counted: sql`issue_labels il`,
      conditions: [inLabelList(sql`x.r`), ...listedConditions(sql`x.r`, list.filter)],
      key: sql`il.created_at`,
      keyType: TIMESTAMP,
      rowId: sql`il.number`,
    };
  }
  return {
    ...parts,
    from: sql`issues i`,
    conditions: [
      sql`${under(sql`i`, above)} and not i.is_pull_request`,
      ...issueConditions(filter),
      ...wanted.flatMap(stateConditions),
      ...anyLabel(sql`i`, labels),
      ...milestoneId(filterBy?.milestone),
    ],
    ...issueKey(orderBy),
    rowId: sql`i.number`,
  };
}

/**
 * The label whose list gives the issues, and the other conditions; null: the list of a label would not be the quickest
 * way.
 */
function labelList(
  filter: IssueFilter,
  { orderBy, labels, filterBy }: IssuesArguments,
  above: Above,
): { label: readonly string[] | Sql; filter: IssueFilter } | null {
  if (above === "milestone" || filterBy?.milestone !== undefined || isNarrow(filter)) return null;
  if (orderBy && orderBy.field !== "CREATED_AT") return null;
  const anyOf = labels && labels.length > 0 ? labels : undefined;
  if (above === "label") return anyOf ? null : { label: sql`x.n`, filter };
  if (anyOf) return { label: anyOf, filter };
  const [first, ...others] = filter.labels ?? [];
  return first === undefined ? null : { label: [first], filter: { ...filter, labels: others } };
}

function statesOf(wanted: readonly (readonly string[])[]): IssueState[] {
  return (["open", "closed"] as const).filter((state) => wanted.every((some) => some.includes(state.toUpperCase())));
}

function stateConditions(states: readonly string[]): Sql[] {
  const [open, closed] = [states.includes("OPEN"), states.includes("CLOSED")];
  return open && closed ? [] : [IN_STATE[open ? "open" : "closed"]];
}

/** Null is "none", `*` is "any"; undefined does not filter. */
function choice<T>(text: string | null | undefined, of: (text: string) => T): T | null | "*" | undefined {
  return text === undefined || text === "*" || text === null ? text : of(text);
}

function milestoneId(text: string | null | undefined): Sql[] {
  if (text === undefined) return [];
  if (text === null) return [sql`i.milestone_id is null`];
  return [text === "*" ? sql`i.milestone_id is not null` : sql`i.milestone_id::text = ${text}`];
}

function anyLabel(alias: Sql, names: string[] | null | undefined): Sql[] {
  if (!names || names.length === 0) return [];
  return [labelCondition(alias, names)];
}

function issueKey(orderBy: Order | null | undefined): SortKey {
  switch (orderBy?.field) {
    case "UPDATED_AT":
      return { key: sql`i.updated_at`, keyType: TIMESTAMP };
    case "COMMENTS":
      return { key: sql`i.comments`, keyType: INTEGER };
    default:
      return { key: sql`i.created_at`, keyType: TIMESTAMP };
  }
}

export function issueComments(orderBy: Order | null | undefined): PageSource {
  return {
    from: sql`issue_comments c`,
    repositoryId: sql`c.repository_id`,
    document: sql`c.document`,
    body: sql`c.body`,
    conditions: [sql`c.repository_id = x.r and c.issue_number = x.n and c.deleted_at is null`],
    ...(orderBy ? { key: sql`c.updated_at`, keyType: TIMESTAMP } : { key: sql`c.id`, keyType: BIGINT }),
    rowId: sql`c.id`,
    direction: direction(orderBy),
  };
}

export function reviews({ author, states }: { author?: string | null; states?: string[] | null }): PageSource {
  return {
    from: sql`pull_request_reviews c`,
    repositoryId: sql`c.repository_id`,
    document: sql`c.document`,
    detail: sql`c.detail`,
    body: sql`c.body`,
    conditions: [
      sql`c.repository_id = x.r and c.pull_number = x.n and c.deleted_at is null and c.state <> 'PENDING'`,
      ...(states && states.length > 0 ? [sql`c.state = any(${states}::text[])`] : []),
      ...(author == null
        ? []
        : [sql`c.user_id = any(array(select u.id from users u where lower(u.login) = ${author.toLowerCase()}))`]),
    ],
    key: sql`c.id`,
    keyType: BIGINT,
    rowId: sql`c.id`,
    direction: "asc",
  };
}

/** Each person's last review, if none is requested anew (GitHub docs: "that are not also pending review"). */
export const latestReviews: PageSource = {
  ...reviews({}),
  conditions: [
    ...reviews({}).conditions,
    sql`not exists (select from pull_request_reviews v where v.repository_id = c.repository_id and v.pull_number = c.pull_number
      and v.user_id = c.user_id and v.id > c.id and v.deleted_at is null and v.state <> 'PENDING')`,
    // The document names the requested reviewers, as placeholders for users: see `template.ts`.
    sql`not exists (select from pull_requests p where p.repository_id = x.r and p.number = x.n and p.document::text ~
      (${`"requested_reviewers":\\[[^\\]]*\\\\u0005u`} || c.user_id || ':'))`,
  ],
};

/** The comments on the diff that a review holds. */
export const reviewComments: PageSource = {
  from: sql`pull_request_review_comments c`,
  repositoryId: sql`c.repository_id`,
  document: sql`c.document`,
  body: sql`c.body`,
  // The pull request is named too, since the index begins with it.
  conditions: [
    sql`c.repository_id = x.r and c.review_id = x.n and c.deleted_at is null and c.pull_number =
      (select v.pull_number from pull_request_reviews v where v.repository_id = x.r and v.id = x.n)`,
  ],
  key: sql`c.id`,
  keyType: BIGINT,
  rowId: sql`c.id`,
  direction: "asc",
};

export function labels({ orderBy, query }: { orderBy?: Order | null; query?: string | null }): PageSource {
  return {
    from: sql`labels l`,
    repositoryId: sql`l.repository_id`,
    document: sql`l.document`,
    conditions: [
      sql`l.repository_id = x.r and l.deleted_at is null`,
      ...contains([sql`l.name`, sql`l.description`], query),
    ],
    // Upstream does not send when a label was made, but later labels have larger ids.
    ...(orderBy?.field === "NAME" ? { key: sql`lower(l.name)`, keyType: TEXT } : { key: sql`l.id`, keyType: BIGINT }),
    rowId: sql`l.id`,
    direction: direction(orderBy),
  };
}

const BY_NUMBER: SortKey = { key: sql`m.number`, keyType: INTEGER };
const MILESTONE_KEYS: Record<string, SortKey> = {
  DUE_DATE: { key: sql`coalesce(m.due_on, 'infinity')`, keyType: TIMESTAMP },
  CREATED_AT: time(sql`m.created_at`),
  UPDATED_AT: time(sql`m.updated_at`),
  NUMBER: BY_NUMBER,
};

export function milestones({
  orderBy,
  query,
  states,
}: {
  orderBy?: Order | null;
  query?: string | null;
  states?: string[] | null;
}): PageSource {
  return {
    from: sql`milestones m`,
    repositoryId: sql`m.repository_id`,
    document: sql`m.document`,
    conditions: [
      sql`m.repository_id = x.r and m.deleted_at is null`,
      ...(states && states.length > 0
        ? [sql`m.state = any(${states.map((state) => state.toLowerCase())}::text[])`]
        : []),
      ...contains([sql`m.title`], query),
    ],
    ...(MILESTONE_KEYS[orderBy?.field ?? ""] ?? BY_NUMBER),
    rowId: sql`m.number`,
    direction: direction(orderBy),
  };
}

/** By login, like REST's list; only people are of the type `User`. */
export function assignableUsers({ query }: { query?: string | null }): PageSource {
  return {
    from: sql`users u`,
    repositoryId: sql`0`,
    document: sql`u.document`,
    conditions: [
      sql`u.id in (${assignable(sql`x.r`)}) and u.deleted_at is null and coalesce(u.type, 'User') = 'User'`,
      ...contains([sql`u.login`, sql`u.name`], query),
    ],
    key: sql`lower(u.login)`,
    keyType: TEXT,
    rowId: sql`u.id`,
    direction: "asc",
  };
}

export interface PullsArguments {
  orderBy?: Order | null;
  states?: ("OPEN" | "CLOSED" | "MERGED")[] | null;
  labels?: string[] | null;
  headRefName?: string | null;
  baseRefName?: string | null;
}

const PULL_STATES = {
  OPEN: sql`p.state = 'open'`,
  CLOSED: sql`(p.state = 'closed' and p.merged_at is null)`,
  MERGED: sql`p.merged_at is not null`,
};

export function pulls(
  { orderBy, states, labels, headRefName, baseRefName }: PullsArguments,
  above: Above = "repository",
): PageSource {
  return {
    from: sql`pull_requests p`,
    repositoryId: sql`p.repository_id`,
    document: sql`p.document`,
    detail: sql`p.detail`,
    body: sql`p.body`,
    conditions: [
      sql`${under(sql`p`, above)} and p.id is not null and p.deleted_at is null`,
      ...(states && states.length > 0 ? [sql.or(states.map((state) => PULL_STATES[state]))] : []),
      ...(headRefName == null ? [] : [sql`p.head_ref = ${headRefName}`]),
      ...(baseRefName == null ? [] : [sql`p.base_ref = ${baseRefName}`]),
      ...anyLabel(sql`p`, labels),
    ],
    ...pullKey(orderBy),
    rowId: sql`p.number`,
    direction: direction(orderBy),
  };
}

function pullKey(orderBy: Order | null | undefined): SortKey {
  switch (orderBy?.field) {
    case "UPDATED_AT":
      return { key: sql`p.updated_at`, keyType: TIMESTAMP };
    case "COMMENTS":
      // Only the read of a single pull request shows the count.
      return { key: sql`coalesce(p.comments, 0)`, keyType: INTEGER };
    default:
      return { key: sql`p.created_at`, keyType: TIMESTAMP };
  }
}
