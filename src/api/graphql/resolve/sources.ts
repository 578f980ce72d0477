/** Which rows the connections page through, and in what order. Pure. */

import { type Sql, sql } from "../../../../db/sql.ts";
import {
  IN_STATE,
  type IssueFilter,
  isNarrow,
  issueConditions,
  labelCondition,
  listedConditions,
} from "../../../mirror/read/issues.ts";
import { type IssueState, inLabelList, labelLists } from "../../../mirror/read/label-lists.ts";
import type { PageSource } from "../../../mirror/read/pages.ts";
import { MIRRORED_REPOSITORIES } from "../../../mirror/read/shown-repository.ts";
import { type Sight, visible } from "../../../mirror/read/sight.ts";
import { assignable } from "../../../mirror/read/users.ts";

/** What a list of one type shows, by its arguments. */
export type Source = PageSource;

type SortKey = Pick<PageSource, "key" | "keyType">;

const TIMESTAMP = sql`timestamptz`;
const INTEGER = sql`integer`;
const BIGINT = sql`bigint`;
const TEXT = sql`text`;

type Direction = "ASC" | "DESC";
export interface Order {
  field: string;
  direction: Direction;
}

function direction(orderBy: Order | null | undefined): "asc" | "desc" {
  return orderBy?.direction === "DESC" ? "desc" : "asc";
}

const time = (column: Sql): SortKey => ({ key: sql`coalesce(${column}, '-infinity')`, keyType: TIMESTAMP });

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
  const wanted = [states, filterBy?.states].filter((one) => one != null && one.length > 0) as string[][];
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
      tie: sql`il.number`,
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
    tie: sql`i.number`,
  };
}

/** By which label they are listed, and what else they have to be; null: there is a shorter way. */
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

function pullKey(orderBy: Order | null | undefined): SortKey {
  switch (orderBy?.field) {
    case "UPDATED_AT":
      return { key: sql`p.updated_at`, keyType: TIMESTAMP };
    case "COMMENTS":
      // The count comes with the single pull request alone.
      return { key: sql`coalesce(p.comments, 0)`, keyType: INTEGER };
    default:
      return { key: sql`p.created_at`, keyType: TIMESTAMP };
  }
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
    tie: sql`p.number`,
    direction: direction(orderBy),
  };
}

export function labels({ orderBy, query }: { orderBy?: Order | null; query?: string | null }): PageSource {
  return {
    from: sql`labels l`,
    repositoryId: sql`l.repository_id`,
    document: sql`l.document`,
    conditions: [
      sql`l.repository_id = x.r and l.deleted_at is null`,
      ...contains([sql`l.name`, sql`l.description`], query),
    ],
    // Upstream does not send when a label was made; its id grows with that.
    ...(orderBy?.field === "NAME" ? { key: sql`lower(l.name)`, keyType: TEXT } : { key: sql`l.id`, keyType: BIGINT }),
    tie: sql`l.id`,
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
    tie: sql`m.number`,
    direction: direction(orderBy),
  };
}

function contains(columns: Sql[], query: string | null | undefined): Sql[] {
  if (!query) return [];
  const wanted = sql.value(query.toLowerCase());
  return [sql.or(columns.map((column) => sql`strpos(lower(coalesce(${column}, '')), ${wanted}) > 0`))];
}

export function issueComments(orderBy: Order | null | undefined): PageSource {
  return {
    from: sql`issue_comments c`,
    repositoryId: sql`c.repository_id`,
    document: sql`c.document`,
    body: sql`c.body`,
    conditions: [sql`c.repository_id = x.r and c.issue_number = x.n and c.deleted_at is null`],
    ...(orderBy ? { key: sql`c.updated_at`, keyType: TIMESTAMP } : { key: sql`c.id`, keyType: BIGINT }),
    tie: sql`c.id`,
    direction: direction(orderBy),
  };
}

export function reviews({ author, states }: { author?: string | null; states?: string[] | null }): PageSource {
  return {
    from: sql`pull_request_reviews c`,
    repositoryId: sql`c.repository_id`,
    document: sql`c.document`,
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
    tie: sql`c.id`,
    direction: "asc",
  };
}

/** The last review of each person, but for those who are asked again (GitHub docs: "that are not also pending review"). */
export const latestReviews: PageSource = {
  ...reviews({}),
  conditions: [
    ...reviews({}).conditions,
    sql`not exists (select from pull_request_reviews v where v.repository_id = c.repository_id and v.pull_number = c.pull_number
      and v.user_id = c.user_id and v.id > c.id and v.deleted_at is null and v.state <> 'PENDING')`,
    // Who is asked stands in the document, as a mark for the user: see `template.ts`.
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
  // By its pull request, which the index leads with.
  conditions: [
    sql`c.repository_id = x.r and c.review_id = x.n and c.deleted_at is null and c.pull_number =
      (select v.pull_number from pull_request_reviews v where v.repository_id = x.r and v.id = x.n)`,
  ],
  key: sql`c.id`,
  keyType: BIGINT,
  tie: sql`c.id`,
  direction: "asc",
};

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
    tie: sql`u.id`,
    direction: "asc",
  };
}

export interface RepositoriesArguments {
  affiliations?: string[] | null;
  ownerAffiliations?: string[] | null;
  hasIssuesEnabled?: boolean | null;
  isArchived?: boolean | null;
  isFork?: boolean | null;
  orderBy?: Order | null;
  privacy?: "PUBLIC" | "PRIVATE" | null;
  visibility?: string | null;
}

const BY_CREATION = time(sql`r.created_at`);
const REPOSITORY_KEYS: Record<string, SortKey> = {
  CREATED_AT: BY_CREATION,
  UPDATED_AT: time(sql`r.updated_at`),
  PUSHED_AT: time(sql`r.pushed_at`),
  NAME: { key: sql`lower(r.name)`, keyType: TEXT },
  STARGAZERS: { key: sql`coalesce(r.stargazers_count, 0)`, keyType: INTEGER },
};

/** The repositories of accounts, of which the viewer is one: only their own relations are known. */
export function repositories(viewerId: number, sight: Sight, args: RepositoriesArguments): PageSource {
  const { affiliations, ownerAffiliations, hasIssuesEnabled, isArchived, isFork, orderBy, privacy, visibility } = args;
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  const viewer = sql`${viewerId}::bigint`;
  const conditions = [
    isMirrored,
    visible(sql`r`, sight),
    related(sql`x.r`, viewer, ownerAffiliations ?? ["OWNER", "COLLABORATOR"]),
  ];
  if (affiliations && affiliations.length > 0) conditions.push(related(viewer, viewer, affiliations));
  if (hasIssuesEnabled != null) conditions.push(sql`r.has_issues is not distinct from ${hasIssuesEnabled}`);
  if (isArchived != null) conditions.push(sql`r.archived is not distinct from ${isArchived}`);
  if (isFork != null) conditions.push(sql`r.fork is not distinct from ${isFork}`);
  if (privacy != null) conditions.push(privacy === "PRIVATE" ? sql`r.private` : sql`not r.private`);
  if (visibility != null) {
    const shown = sql`coalesce(r.visibility, case when r.private then 'private' else 'public' end)`;
    conditions.push(sql`${shown} = ${visibility.toLowerCase()}`);
  }
  return {
    from: tables,
    repositoryId: sql`r.id`,
    document: sql`r.document`,
    detail: sql`r.detail`,
    conditions,
    ...(REPOSITORY_KEYS[orderBy?.field ?? ""] ?? BY_CREATION),
    tie: sql`r.id`,
    direction: direction(orderBy),
  };
}

/** How `account` relates to the repository, by the same rule as in REST: see `relationCondition`. */
function related(account: Sql, viewer: Sql, affiliations: string[]): Sql {
  const any: Sql[] = [];
  if (affiliations.includes("OWNER")) any.push(sql`r.owner_id = ${account}`);
  if (affiliations.includes("COLLABORATOR"))
    any.push(sql`(${account} = ${viewer} and r.owner_id is distinct from ${viewer})`);
  if (affiliations.includes("ORGANIZATION_MEMBER")) {
    any.push(sql`(${account} = ${viewer} and r.owner_id <> ${viewer}
      and exists (select from users o where o.id = r.owner_id and o.type = 'Organization'))`);
  }
  return sql.or(any);
}
