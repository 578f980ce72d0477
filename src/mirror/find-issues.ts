import type { Database } from "../../db/connection.ts";
import { Statement } from "./statement.ts";

export interface IssueRow {
  number: number;
  document: string;
  body: string | null;
  createdAt: Date;
  updatedAt: Date;
  comments: number;
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
}

export type IssueSort = "created" | "updated" | "comments";

/** A list is in a total order: the sort key, then the number. */
export interface IssueOrder {
  sort: IssueSort;
  direction: "asc" | "desc";
}

/** Where a page begins: behind (`after`) or before a row, given by its sort key (ms, or the count) and number. */
export type IssuePosition =
  | { offset: number }
  | { side: "after" | "before"; key: number; number: number };

const SORT_KEYS: Record<IssueSort, string> = { created: "i.created_at", updated: "i.updated_at", comments: "i.comments" };

/** Only whole issues are shown: one that was only seen as a pull request lacks the issue's own id. */
const SHOWN = "i.id is not null and i.deleted_at is null";

/** At most `limit` issues of the repository, pull requests included, in order. */
export async function findIssues(
  db: Database,
  repositoryId: number,
  filter: IssueFilter,
  order: IssueOrder,
  { position, limit }: { position: IssuePosition; limit: number },
): Promise<IssueRow[]> {
  const statement = new Statement();
  const repository = statement.value(repositoryId);
  statement.where(`i.repository_id = ${repository}`).where(SHOWN);
  if (filter.state !== "all") statement.where(`i.state = '${filter.state}'`);
  if (filter.since) statement.where(`i.updated_at >= ${statement.value(filter.since)}`);
  filterMilestone(statement, filter.milestone);
  filterAssignee(statement, filter.assignee);
  if (filter.creator !== undefined) statement.where(`i.user_id = any(${userIds(statement, filter.creator)})`);
  if (filter.mentioned !== undefined) filterMentioned(statement, filter.mentioned);
  for (const name of filter.labels ?? []) {
    statement.where(`exists (select from issue_labels x join labels l on l.repository_id = x.repository_id and l.id = x.label_id and l.deleted_at is null
      where x.repository_id = i.repository_id and x.number = i.number and lower(l.name) = ${statement.value(name.toLowerCase())})`);
  }
  filterType(statement, filter.type);

  const key = SORT_KEYS[order.sort];
  const isBackward = "side" in position && position.side === "before";
  const direction = (order.direction === "asc") !== isBackward ? "asc" : "desc";
  if ("side" in position) {
    const at = order.sort === "comments" ? `${statement.value(position.key)}::integer` : statement.value(new Date(position.key));
    statement.where(`(${key}, i.number) ${direction === "asc" ? ">" : "<"} (${at}, ${statement.value(position.number)})`);
  }
  const offset = "offset" in position && position.offset > 0 ? ` offset ${statement.value(position.offset)}` : "";
  const rows = await statement.rows<RawIssue>(
    db,
    `select ${COLUMNS} from issues i where ${statement.conditions} order by ${key} ${direction}, i.number ${direction} limit ${statement.value(limit)}${offset}`,
  );
  return rows.map(toIssue);
}

/** "deleted": upstream deleted it. Null: there is none. */
export async function findIssue(db: Database, repositoryId: number, number: number): Promise<IssueRow | "deleted" | null> {
  const statement = new Statement();
  const [row] = await statement.rows<RawIssue & { id: string | null; deleted_at: Date | null }>(
    db,
    `select ${COLUMNS}, i.id, i.deleted_at from issues i where i.repository_id = ${statement.value(repositoryId)} and i.number = ${statement.value(number)}`,
  );
  if (!row) return null;
  if (row.deleted_at) return "deleted";
  return row.id === null ? null : toIssue(row);
}

const COLUMNS = "i.number, i.document::text as document, i.body, i.created_at, i.updated_at, i.comments";

interface RawIssue {
  number: number;
  document: string;
  body: string | null;
  created_at: Date;
  updated_at: Date;
  comments: number | null;
}

function toIssue(row: RawIssue): IssueRow {
  const { number, document, body } = row;
  return { number, document, body, createdAt: row.created_at, updatedAt: row.updated_at, comments: row.comments ?? 0 };
}

function filterMilestone(statement: Statement, milestone: IssueFilter["milestone"]): void {
  if (milestone === undefined) return;
  if (milestone === null) statement.where("i.milestone_id is null");
  else if (milestone === "*") statement.where("i.milestone_id is not null");
  else {
    statement.where(`i.milestone_id = any(array(select m.id from milestones m
      where m.repository_id = i.repository_id and m.number = ${statement.value(milestone)} and m.deleted_at is null))`);
  }
}

function filterAssignee(statement: Statement, assignee: IssueFilter["assignee"]): void {
  if (assignee === undefined) return;
  const assigned = "select from issue_assignees a where a.repository_id = i.repository_id and a.number = i.number";
  if (assignee === null) statement.where(`not exists (${assigned})`);
  else if (assignee === "*") statement.where(`exists (${assigned})`);
  else statement.where(`exists (${assigned} and a.user_id = any(${userIds(statement, assignee.login)}))`);
}

/** In the issue's own text or in a comment, as `@login` standing alone. */
function filterMentioned(statement: Statement, login: string): void {
  const pattern = statement.value(`(^|[^\\w/@-])@${literally(login)}(?![\\w-])`);
  statement.where(`(i.body ~* ${pattern} or exists (select from issue_comments c
    where c.repository_id = i.repository_id and c.issue_number = i.number and c.deleted_at is null and c.body ~* ${pattern}))`);
}

// Postgres cannot look into a document that holds a NUL; its text can be searched. Quotes inside strings are escaped there,
// so only the key itself matches.
function filterType(statement: Statement, type: IssueFilter["type"]): void {
  if (type === undefined) return;
  const none = `i.document::text not like '%"type":{%'`;
  if (type === null) statement.where(none);
  else if (type === "*") statement.where(`not (${none})`);
  else statement.where(`i.document::text ~* ${statement.value(`"type":\\{[^{}]*"name":${literally(JSON.stringify(type.name))}`)}`);
}

function literally(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** A login is unique at upstream, but a rename that we have not heard of may have left it on two rows. */
function userIds(statement: Statement, login: string): string {
  return `array(select u.id from users u where lower(u.login) = ${statement.value(login.toLowerCase())})`;
}
