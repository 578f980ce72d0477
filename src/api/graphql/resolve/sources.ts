/** Which rows the connections page through, and in what order. Pure. */

import type { Statement } from "../../../../db/statement.ts";
import {
  type IssueFilter,
  isNarrow,
  issueConditions,
  labelCondition,
  listedConditions,
} from "../../../mirror/read/issues.ts";
import { type IssueState, inLabelList, labelLists } from "../../../mirror/read/label-lists.ts";
import type { PageSource } from "../../../mirror/read/pages.ts";
import { MIRRORED_REPOSITORIES } from "../../../mirror/read/repositories.ts";
import { type Sight, visible } from "../../../mirror/read/sight.ts";
import { assignable } from "../../../mirror/read/users.ts";

/** What a list of one type shows, by its arguments. */
export type Source = PageSource;

type Direction = "ASC" | "DESC";
export interface Order {
  field: string;
  direction: Direction;
}

function direction(orderBy: Order | null | undefined): "asc" | "desc" {
  return orderBy?.direction === "DESC" ? "desc" : "asc";
}

const time = (column: string) => ({ key: `coalesce(${column}, '-infinity')`, keyType: "timestamptz" as const });

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
function under(alias: string, above: Above): string {
  const inRepository = `${alias}.repository_id = x.r`;
  if (above === "repository") return inRepository;
  if (above === "milestone") return `${inRepository} and ${alias}.milestone_id = x.n`;
  return `${inRepository} and exists (select from issue_labels il
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
    repositoryId: "i.repository_id",
    document: "i.document",
    body: "i.body",
    direction: direction(orderBy),
  };
  const list = labelList(filter, args, above);
  if (list) {
    return {
      ...parts,
      lists: (statement) =>
        labelLists(statement, { repository: "x.r", label: list.label, states: statesOf(wanted), arePulls: false }),
      from: "issue_labels il join issues i on i.repository_id = il.repository_id and i.number = il.number",
      counted: "issue_labels il",
      conditions: (statement) => [inLabelList("x.r"), ...listedConditions(statement, "x.r", list.filter)],
      key: "il.created_at",
      keyType: "timestamptz",
      tie: "il.number",
    };
  }
  return {
    ...parts,
    from: "issues i",
    conditions: (statement) => [
      `${under("i", above)} and not i.is_pull_request`,
      ...issueConditions(statement, filter),
      ...wanted.flatMap(stateConditions),
      ...anyLabel(statement, "i", labels),
      ...milestoneId(statement, filterBy?.milestone),
    ],
    ...issueKey("i", orderBy),
    tie: "i.number",
  };
}

/** By which label they are listed, and what else they have to be; null: there is a shorter way. */
function labelList(
  filter: IssueFilter,
  { orderBy, labels, filterBy }: IssuesArguments,
  above: Above,
): { label: readonly string[] | string; filter: IssueFilter } | null {
  if (above === "milestone" || filterBy?.milestone !== undefined || isNarrow(filter)) return null;
  if (orderBy && orderBy.field !== "CREATED_AT") return null;
  const anyOf = labels && labels.length > 0 ? labels : undefined;
  if (above === "label") return anyOf ? null : { label: "x.n", filter };
  if (anyOf) return { label: anyOf, filter };
  const [first, ...others] = filter.labels ?? [];
  return first === undefined ? null : { label: [first], filter: { ...filter, labels: others } };
}

function statesOf(wanted: readonly (readonly string[])[]): IssueState[] {
  return (["open", "closed"] as const).filter((state) => wanted.every((some) => some.includes(state.toUpperCase())));
}

/** Written out, so that indexes of open issues alone can serve. */
function stateConditions(states: readonly string[]): string[] {
  const [open, closed] = [states.includes("OPEN"), states.includes("CLOSED")];
  return open && closed ? [] : [`i.state = '${open ? "open" : "closed"}'`];
}

/** Null is "none", `*` is "any"; undefined does not filter. */
function choice<T>(text: string | null | undefined, of: (text: string) => T): T | null | "*" | undefined {
  return text === undefined || text === "*" || text === null ? text : of(text);
}

function milestoneId(statement: Statement, text: string | null | undefined): string[] {
  if (text === undefined) return [];
  if (text === null) return ["i.milestone_id is null"];
  return [text === "*" ? "i.milestone_id is not null" : `i.milestone_id::text = ${statement.value(text)}`];
}

function anyLabel(statement: Statement, alias: string, names: string[] | null | undefined): string[] {
  if (!names || names.length === 0) return [];
  return [labelCondition(statement, alias, names)];
}

function issueKey(alias: string, orderBy: Order | null | undefined): Pick<PageSource, "key" | "keyType"> {
  switch (orderBy?.field) {
    case "UPDATED_AT":
      return { key: `${alias}.updated_at`, keyType: "timestamptz" };
    case "COMMENTS":
      // An issue always has its count; that of a pull request comes with the single one.
      return { key: alias === "i" ? "i.comments" : `coalesce(${alias}.comments, 0)`, keyType: "integer" };
    default:
      return { key: `${alias}.created_at`, keyType: "timestamptz" };
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
  OPEN: "p.state = 'open'",
  CLOSED: "(p.state = 'closed' and p.merged_at is null)",
  MERGED: "p.merged_at is not null",
};

export function pulls(
  { orderBy, states, labels, headRefName, baseRefName }: PullsArguments,
  above: Above = "repository",
): PageSource {
  return {
    from: "pull_requests p",
    repositoryId: "p.repository_id",
    document: "p.document",
    detail: "p.detail",
    body: "p.body",
    conditions: (statement) => [
      `${under("p", above)} and p.id is not null and p.deleted_at is null`,
      ...(states && states.length > 0 ? [`(${states.map((state) => PULL_STATES[state]).join(" or ")})`] : []),
      ...(headRefName == null ? [] : [`p.head_ref = ${statement.value(headRefName)}`]),
      ...(baseRefName == null ? [] : [`p.base_ref = ${statement.value(baseRefName)}`]),
      ...anyLabel(statement, "p", labels),
    ],
    ...issueKey("p", orderBy),
    tie: "p.number",
    direction: direction(orderBy),
  };
}

export function labels({ orderBy, query }: { orderBy?: Order | null; query?: string | null }): PageSource {
  return {
    from: "labels l",
    repositoryId: "l.repository_id",
    document: "l.document",
    conditions: (statement) => [
      "l.repository_id = x.r and l.deleted_at is null",
      ...contains(statement, ["l.name", "l.description"], query),
    ],
    // Upstream does not send when a label was made; its id grows with that.
    ...(orderBy?.field === "NAME" ? { key: "lower(l.name)", keyType: "text" } : { key: "l.id", keyType: "bigint" }),
    tie: "l.id",
    direction: direction(orderBy),
  };
}

const MILESTONE_KEYS: Record<string, Pick<PageSource, "key" | "keyType">> = {
  DUE_DATE: { key: "coalesce(m.due_on, 'infinity')", keyType: "timestamptz" },
  CREATED_AT: time("m.created_at"),
  UPDATED_AT: time("m.updated_at"),
  NUMBER: { key: "m.number", keyType: "integer" },
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
    from: "milestones m",
    repositoryId: "m.repository_id",
    document: "m.document",
    conditions: (statement) => [
      "m.repository_id = x.r and m.deleted_at is null",
      ...(states && states.length > 0
        ? [`m.state = any(${statement.value(states.map((state) => state.toLowerCase()))}::text[])`]
        : []),
      ...contains(statement, ["m.title"], query),
    ],
    ...(MILESTONE_KEYS[orderBy?.field ?? "NUMBER"] as Pick<PageSource, "key" | "keyType">),
    tie: "m.number",
    direction: direction(orderBy),
  };
}

function contains(statement: Statement, columns: string[], query: string | null | undefined): string[] {
  if (!query) return [];
  const wanted = statement.value(query.toLowerCase());
  return [`(${columns.map((column) => `strpos(lower(coalesce(${column}, '')), ${wanted}) > 0`).join(" or ")})`];
}

export function issueComments(orderBy: Order | null | undefined): PageSource {
  return {
    from: "issue_comments c",
    repositoryId: "c.repository_id",
    document: "c.document",
    body: "c.body",
    conditions: () => ["c.repository_id = x.r and c.issue_number = x.n and c.deleted_at is null"],
    ...(orderBy ? { key: "c.updated_at", keyType: "timestamptz" } : { key: "c.id", keyType: "bigint" }),
    tie: "c.id",
    direction: direction(orderBy),
  };
}

export function reviews({ author, states }: { author?: string | null; states?: string[] | null }): PageSource {
  return {
    from: "pull_request_reviews c",
    repositoryId: "c.repository_id",
    document: "c.document",
    body: "c.body",
    conditions: (statement) => [
      "c.repository_id = x.r and c.pull_number = x.n and c.deleted_at is null and c.state <> 'PENDING'",
      ...(states && states.length > 0 ? [`c.state = any(${statement.value(states)}::text[])`] : []),
      ...(author == null
        ? []
        : [
            `c.user_id = any(array(select u.id from users u where lower(u.login) = ${statement.value(author.toLowerCase())}))`,
          ]),
    ],
    key: "c.id",
    keyType: "bigint",
    tie: "c.id",
    direction: "asc",
  };
}

/** The last review of each person, but for those who are asked again (GitHub docs: "that are not also pending review"). */
export const latestReviews: PageSource = {
  ...reviews({}),
  conditions: (statement) => [
    ...reviews({}).conditions(statement),
    `not exists (select from pull_request_reviews v where v.repository_id = c.repository_id and v.pull_number = c.pull_number
      and v.user_id = c.user_id and v.id > c.id and v.deleted_at is null and v.state <> 'PENDING')`,
    // Who is asked stands in the document, as a mark for the user: see `template.ts`.
    `not exists (select from pull_requests p where p.repository_id = x.r and p.number = x.n and p.document::text ~
      (${statement.value(`"requested_reviewers":\\[[^\\]]*\\\\u0005u`)} || c.user_id || ':'))`,
  ],
};

/** The comments on the diff that a review holds. */
export const reviewComments: PageSource = {
  from: "pull_request_review_comments c",
  repositoryId: "c.repository_id",
  document: "c.document",
  body: "c.body",
  // By its pull request, which the index leads with.
  conditions: () => [
    `c.repository_id = x.r and c.review_id = x.n and c.deleted_at is null and c.pull_number =
      (select v.pull_number from pull_request_reviews v where v.repository_id = x.r and v.id = x.n)`,
  ],
  key: "c.id",
  keyType: "bigint",
  tie: "c.id",
  direction: "asc",
};

/** By login, like REST's list; only people are of the type `User`. */
export function assignableUsers({ query }: { query?: string | null }): PageSource {
  return {
    from: "users u",
    repositoryId: "0",
    document: "u.document",
    conditions: (statement) => [
      `u.id in (${assignable("x.r")}) and u.deleted_at is null and coalesce(u.type, 'User') = 'User'`,
      ...contains(statement, ["u.login", "u.name"], query),
    ],
    key: "lower(u.login)",
    keyType: "text",
    tie: "u.id",
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

const REPOSITORY_KEYS: Record<string, Pick<PageSource, "key" | "keyType">> = {
  CREATED_AT: time("r.created_at"),
  UPDATED_AT: time("r.updated_at"),
  PUSHED_AT: time("r.pushed_at"),
  NAME: { key: "lower(r.name)", keyType: "text" },
  STARGAZERS: { key: "coalesce(r.stargazers_count, 0)", keyType: "integer" },
};

/** The repositories of accounts, of which the viewer is one: only their own relations are known. */
export function repositories(viewerId: number, sight: Sight, args: RepositoriesArguments): PageSource {
  const [from, mirrored] = MIRRORED_REPOSITORIES.replace(/^from /, "").split(" where ") as [string, string];
  const { affiliations, ownerAffiliations, hasIssuesEnabled, isArchived, isFork, orderBy, privacy, visibility } = args;
  return {
    from,
    repositoryId: "r.id",
    document: "r.document",
    detail: "r.detail",
    conditions: (statement) => {
      // Only where a condition names it: Postgres cannot tell the type of a value that stands nowhere.
      let known: string | undefined;
      const viewer = () => {
        known ??= `${statement.value(viewerId)}::bigint`;
        return known;
      };
      const conditions = [
        mirrored,
        visible(statement, "r", sight),
        related("x.r", viewer, ownerAffiliations ?? ["OWNER", "COLLABORATOR"]),
      ];
      if (affiliations && affiliations.length > 0) conditions.push(related(viewer(), viewer, affiliations));
      if (hasIssuesEnabled != null) conditions.push(`r.has_issues is not distinct from ${hasIssuesEnabled}`);
      if (isArchived != null) conditions.push(`r.archived is not distinct from ${isArchived}`);
      if (isFork != null) conditions.push(`r.fork is not distinct from ${isFork}`);
      if (privacy != null) conditions.push(privacy === "PRIVATE" ? "r.private" : "not r.private");
      if (visibility != null) {
        conditions.push(
          `coalesce(r.visibility, case when r.private then 'private' else 'public' end) = ${statement.value(visibility.toLowerCase())}`,
        );
      }
      return conditions;
    },
    ...(REPOSITORY_KEYS[orderBy?.field ?? "CREATED_AT"] as Pick<PageSource, "key" | "keyType">),
    tie: "r.id",
    direction: direction(orderBy),
  };
}

/** How `account` relates to the repository, by the same rule as in REST: see `relationCondition`. */
function related(account: string, viewer: () => string, affiliations: string[]): string {
  const any = ["false"];
  if (affiliations.includes("OWNER")) any.push(`r.owner_id = ${account}`);
  if (affiliations.includes("COLLABORATOR"))
    any.push(`(${account} = ${viewer()} and r.owner_id is distinct from ${viewer()})`);
  if (affiliations.includes("ORGANIZATION_MEMBER")) {
    any.push(
      `(${account} = ${viewer()} and r.owner_id <> ${viewer()} and exists (select from users o where o.id = r.owner_id and o.type = 'Organization'))`,
    );
  }
  return `(${any.join(" or ")})`;
}
