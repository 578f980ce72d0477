import type { Database } from "../../../db/database.ts";
import { DIRECTIONS, type SQL, sql } from "../../../db/sql.ts";
import { carriesAll, type IssueState, inLabelList, labelLists } from "./label-lists.ts";
import { isNamed } from "./names.ts";
import { direction, INTEGER, type Order, type PageSource, type SortKey, TIMESTAMP } from "./pages.ts";

interface IssueRow {
  number: number;
  document: string;
  body: string | null;
}

/** An issue in a list, with its sort key there (ms, or the count). */
export interface ListedIssue extends IssueRow {
  key: number;
}

/** Null stands for "none of them", `*` for "any"; undefined does not filter. */
export interface IssueFilter {
  state: "open" | "closed" | "all";
  since?: Date | undefined;
  milestone?: number | null | "*" | undefined;
  assignee?: { login: string } | null | "*" | undefined;
  creator?: string | undefined;
  mentioned?: string | undefined;
  /** All of them, in any case of their letters. */
  labels?: readonly string[] | undefined;
  type?: { name: string } | null | "*" | undefined;
  /** Whether pull requests are listed too, as they are unless this is false. */
  hasPulls?: boolean | undefined;
}

type IssueSort = "created" | "updated" | "comments";

/** A list is in a total order: the sort key, then the number. */
export interface IssueOrder {
  sort: IssueSort;
  direction: "asc" | "desc";
}

/** Where a page begins: behind (`after`) or before a row, given by its sort key (ms, or the count) and number. */
export type IssuePosition = { offset: number } | { side: "after" | "before"; key: number; number: number };

export const ISSUE_SORT_KEYS: Readonly<Record<IssueSort, SQL>> = {
  created: sql`i.created_at`,
  updated: sql`i.updated_at`,
  comments: sql`i.comments`,
};

/** Only whole issues are shown: one that was only seen as a pull request lacks the issue's own id. */
const SHOWN_ISSUES = sql`i.id is not null and i.deleted_at is null`;

/** At most `limit` issues of the repository, in order. */
export async function findIssues(
  db: Database,
  repositoryId: number,
  filter: IssueFilter,
  order: IssueOrder,
  { position, limit }: { position: IssuePosition; limit: number },
): Promise<ListedIssue[]> {
  const repository = sql`${repositoryId}`;
  const isBackward = "side" in position && position.side === "before";
  const isAscending = (order.direction === "asc") !== isBackward;
  const way = DIRECTIONS[isAscending ? "asc" : "desc"];
  const behind = (key: SQL, number: SQL) => {
    if (!("side" in position)) return [];
    const at = order.sort === "comments" ? sql`${position.key}::integer` : sql`${new Date(position.key)}`;
    return [sql`(${key}, ${number}) ${isAscending ? sql`>` : sql`<`} (${at}, ${position.number})`];
  };
  const offset = "offset" in position && position.offset > 0 ? sql`offset ${position.offset}` : sql``;
  const page = sql`limit ${limit} ${offset}`;
  const key = ISSUE_SORT_KEYS[order.sort];
  // As numbers, since the driver is slow to read moments.
  const counted =
    order.sort === "comments" ? sql`coalesce(i.comments, 0)` : sql`(extract(epoch from ${key}) * 1000)::float8`;
  const columns = sql`i.number, i.document::text as document, i.body, ${counted} as key`;
  const [label, ...labels] = filter.labels ?? [];
  if (label !== undefined && order.sort === "created" && !isNarrow(filter)) {
    const { state, hasPulls, ...rest } = filter;
    const lists = labelLists({
      repository,
      label: [label],
      states: state === "all" ? ["open", "closed"] : [state],
      ...(hasPulls === false ? { arePulls: false } : {}),
    });
    const listed = sql.and([
      inLabelList(repository),
      ...behind(sql`il.created_at`, sql`il.number`),
      ...listedConditions(repository, { ...rest, state, labels }),
    ]);
    const deepest = "offset" in position ? position.offset + limit : limit;
    return db.prepared<ListedIssue>(sql`
      select ${columns} from (
          select distinct p.created_at, p.number from ${lists} cross join lateral (
            select il.created_at, il.number from issue_labels il where ${listed}
            order by il.created_at ${way}, il.number ${way} limit ${deepest}) p
          order by p.created_at ${way}, p.number ${way} ${page}) c
        join issues i on i.repository_id = ${repository} and i.number = c.number
        order by c.created_at ${way}, c.number ${way}`);
  }
  const conditions = [sql`i.repository_id = ${repository}`, ...issueConditions(filter), ...behind(key, sql`i.number`)];
  const ordered = sql`order by ${key} ${way}, i.number ${way}`;
  // Documents are read only for rows on the page, not for all rows before it.
  return db.prepared<ListedIssue>(sql`
    select ${columns} from (
      select i.number, i.document, i.body, ${key} from issues i where ${sql.and(conditions)} ${ordered} ${page}) i
      ${ordered}`);
}

/** Written out instead of a parameter, so that Postgres can use the indexes of open issues. */
const ISSUES_IN_STATE = { open: sql`i.state = 'open'`, closed: sql`i.state = 'closed'` };

/** The conditions of the filter on an issue `i`. All must hold. */
export function issueConditions(filter: IssueFilter): SQL[] {
  return [SHOWN_ISSUES, ...(filter.state === "all" ? [] : [ISSUES_IN_STATE[filter.state]]), ...restConditions(filter)];
}

/** Whether a list leaves out issues by more than their state, their kind and their time. Such a list may take long. */
export function isFiltered({ milestone, assignee, creator, mentioned, labels = [], type }: IssueFilter): boolean {
  return labels.length > 0 || [milestone, assignee, creator, mentioned, type].some((one) => one !== undefined);
}

/** Whether another condition of the filter leaves fewer issues than the label, so that it finds them sooner. */
function isNarrow({ milestone, assignee, creator }: IssueFilter): boolean {
  return typeof milestone === "number" || (typeof assignee === "object" && assignee !== null) || creator !== undefined;
}

/**
 * The same conditions for a label's list `il`, whose rows have the right state already. Written so that Postgres looks
 * at one issue after the other, in the order of the list: a join would gather all of them.
 */
function listedConditions(repository: SQL, filter: IssueFilter): SQL[] {
  const { labels = [], ...rest } = filter;
  const conditions = labels.length > 0 ? [carriesAll(sql`il`, repository, labels)] : [];
  const ofIssue = restConditions(rest);
  if (ofIssue.length > 0) {
    conditions.push(sql`exists (select from issues i
      where i.repository_id = il.repository_id and i.number = il.number and ${sql.and(ofIssue)} offset 0)`);
  }
  return conditions;
}

function restConditions(filter: IssueFilter): SQL[] {
  const conditions: SQL[] = [];
  if (filter.hasPulls === false) conditions.push(sql`not i.is_pull_request`);
  if (filter.since) conditions.push(sql`i.updated_at >= ${filter.since}`);
  conditions.push(...milestoneConditions(filter.milestone), ...assigneeConditions(filter.assignee));
  if (filter.creator !== undefined) conditions.push(sql`i.user_id = any(${userIds(filter.creator)})`);
  if (filter.mentioned !== undefined) conditions.push(mentionedCondition(filter.mentioned));
  const [label, ...others] = filter.labels ?? [];
  if (label !== undefined) conditions.push(labelCondition(sql`i`, [label]));
  if (others.length > 0) conditions.push(carriesAll(sql`i`, sql`i.repository_id`, others));
  return [...conditions, ...typeConditions(filter.type)];
}

/** Carries one of the labels, in any case of their letters. A join, whose selectivity Postgres can estimate. */
function labelCondition(alias: SQL, names: readonly string[]): SQL {
  return sql`exists (select from issue_labels il
    join labels l on l.repository_id = il.repository_id and l.id = il.label_id and l.deleted_at is null
    where il.repository_id = ${alias}.repository_id and il.number = ${alias}.number
      and ${isNamed(sql`l.name`, names)})`;
}

function milestoneConditions(milestone: IssueFilter["milestone"]): SQL[] {
  if (milestone === undefined) return [];
  if (milestone === null) return [sql`i.milestone_id is null`];
  if (milestone === "*") return [sql`i.milestone_id is not null`];
  return [
    sql`i.milestone_id = any(array(select m.id from milestones m
      where m.repository_id = i.repository_id and m.number::float8 = ${milestone} and m.deleted_at is null))`,
  ];
}

function assigneeConditions(assignee: IssueFilter["assignee"]): SQL[] {
  if (assignee === undefined) return [];
  const assigned = sql`select from issue_assignees a where a.repository_id = i.repository_id and a.number = i.number`;
  if (assignee === null) return [sql`not exists (${assigned})`];
  if (assignee === "*") return [sql`exists (${assigned})`];
  return [sql`exists (${assigned} and a.user_id = any(${userIds(assignee.login)}))`];
}

/** A regular expression for the `@login` of one of them, standing alone. */
export function mentionOf(logins: readonly string[]): string {
  return `(^|[^\\w/@-])@(${logins.map(literally).join("|")})(?![\\w-])`;
}

/** In the issue's own text or in a comment. */
function mentionedCondition(login: string): SQL {
  const pattern = sql`${mentionOf([login])}`;
  return sql`(i.body ~* ${pattern} or exists (select from issue_comments c
    where c.repository_id = i.repository_id and c.issue_number = i.number and c.deleted_at is null and c.body ~* ${pattern}))`;
}

// Postgres cannot look into a document that holds a NUL; its text can be searched. Quotes inside strings are escaped
// there, so only the key itself matches.
export function typeConditions(type: IssueFilter["type"]): SQL[] {
  if (type === undefined) return [];
  const none = sql`i.document::text not like '%"type":{%'`;
  if (type === null) return [none];
  if (type === "*") return [sql`not (${none})`];
  return [sql`i.document::text ~* ${`"type":\\{[^{}]*"name":${literally(JSON.stringify(type.name))}`}`];
}

function literally(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** A login is unique at upstream, but a rename that we have not heard of may have left it on two rows. */
function userIds(login: string): SQL {
  return sql`array(select u.id from users u where folded(u.login) = ${login.toLowerCase()})`;
}

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
export function under(alias: SQL, above: Above): SQL {
  const inRepository = sql`${alias}.repository_id = x.r`;
  if (above === "repository") return inRepository;
  if (above === "milestone") return sql`${inRepository} and ${alias}.milestone_id = x.n`;
  return sql`${inRepository} and exists (select from issue_labels il
    where il.repository_id = x.r and il.label_id = x.n and il.number = ${alias}.number)`;
}

/** Issues without pull requests. `labels` matches any of them, those of `filterBy` all. */
export function issueSource(args: IssuesArguments, above: Above = "repository"): PageSource {
  const { orderBy, states, labels, filterBy } = args;
  const filter: IssueFilter = {
    state: "all",
    since: filterBy?.since ? new Date(filterBy.since) : undefined,
    assignee: noneOrAny(filterBy?.assignee, (login) => ({ login })),
    creator: filterBy?.createdBy ?? undefined,
    mentioned: filterBy?.mentioned ?? undefined,
    labels: filterBy?.labels ?? undefined,
    milestone: noneOrAny(filterBy?.milestoneNumber, Number),
  };
  const wanted = [states ?? [], filterBy?.states ?? []].filter(({ length }) => length > 0);
  const parts = {
    repositoryId: sql`i.repository_id`,
    document: sql`i.document`,
    body: sql`i.body`,
    direction: direction(orderBy),
    isFiltered: isFiltered(filter) || filterBy?.milestone !== undefined || (labels ?? []).length > 0,
  };
  const list = labelList(filter, args, above);
  if (list) {
    return {
      ...parts,
      lists: labelLists({ repository: sql`x.r`, label: list.label, states: wantedStates(wanted), arePulls: false }),
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
): { label: readonly string[] | SQL; filter: IssueFilter } | null {
  if (above === "milestone" || filterBy?.milestone !== undefined || isNarrow(filter)) return null;
  if (orderBy && orderBy.field !== "CREATED_AT") return null;
  const anyOf = labels && labels.length > 0 ? labels : undefined;
  if (above === "label") return anyOf ? null : { label: sql`x.n`, filter };
  if (anyOf) return { label: anyOf, filter };
  const [first, ...others] = filter.labels ?? [];
  return first === undefined ? null : { label: [first], filter: { ...filter, labels: others } };
}

function wantedStates(wanted: readonly (readonly string[])[]): IssueState[] {
  return (["open", "closed"] as const).filter((state) => wanted.every((some) => some.includes(state.toUpperCase())));
}

function stateConditions(states: readonly string[]): SQL[] {
  const [open, closed] = [states.includes("OPEN"), states.includes("CLOSED")];
  return open && closed ? [] : [ISSUES_IN_STATE[open ? "open" : "closed"]];
}

/** Null is "none", `*` is "any"; undefined does not filter. */
function noneOrAny<T>(text: string | null | undefined, of: (text: string) => T): T | null | "*" | undefined {
  return text === undefined || text === "*" || text === null ? text : of(text);
}

function milestoneId(text: string | null | undefined): SQL[] {
  if (text === undefined) return [];
  if (text === null) return [sql`i.milestone_id is null`];
  return [text === "*" ? sql`i.milestone_id is not null` : sql`i.milestone_id::text = ${text}`];
}

export function anyLabel(alias: SQL, names: string[] | null | undefined): SQL[] {
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
