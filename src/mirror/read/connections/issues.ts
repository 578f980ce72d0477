import { type Sql, sql } from "../../../../db/sql.ts";
import { IN_STATE, type IssueFilter, isNarrow, issueConditions, labelCondition, listedConditions } from "../issues.ts";
import { type IssueState, inLabelList, labelLists } from "../label-lists.ts";
import { direction, INTEGER, type Order, type PageSource, type SortKey, TIMESTAMP } from "../pages.ts";

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
export function under(alias: Sql, above: Above): Sql {
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

export function anyLabel(alias: Sql, names: string[] | null | undefined): Sql[] {
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
