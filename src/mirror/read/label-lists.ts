import type { Statement } from "../../../db/statement.ts";

export type IssueState = "open" | "closed";

/** Which of the issues under a label are wanted. */
export interface LabelLists {
  /** SQL of the repository's id. */
  repository: string;
  /** Any of these, in any case of their letters; or SQL of one label's id. */
  label: readonly string[] | string;
  states: readonly IssueState[];
  /** Absent: both. */
  arePulls?: boolean;
}

/**
 * A table `s`, of which each row names a stretch of the index `issue_labels_listed`: open and closed issues and pull requests
 * under one label. Each is read by itself, in its order, as far as a page needs; then a large repository costs what a small
 * one does. An issue that carries several of the labels is found in several.
 */
export function labelLists(statement: Statement, { repository, label, states, arePulls }: LabelLists): string {
  const labels = typeof label === "string" ? `(select ${label} as id)` : `(${labelIds(statement, repository, label)})`;
  const kinds = arePulls === undefined ? "(values (false), (true))" : `(values (${arePulls}))`;
  return `lateral (select l.id as label_id, t.state, k.is_pull_request
    from ${labels} l cross join unnest(${statement.value(states)}::text[]) t(state) cross join ${kinds} k(is_pull_request)) s`;
}

/** The condition that a row `il` of `issue_labels` lies in the list `s`. */
export function inLabelList(repository: string): string {
  return `il.repository_id = ${repository} and il.label_id = s.label_id and il.is_pull_request = s.is_pull_request
    and il.state = s.state and il.is_shown`;
}

/** The condition that what lies in a list also carries this label, in any case of its letters. */
export function alsoLabelled(statement: Statement, repository: string, name: string): string {
  return `exists (select from issue_labels c where c.repository_id = il.repository_id and c.number = il.number
    and c.label_id = any(array(${labelIds(statement, repository, [name])})) offset 0)`;
}

function labelIds(statement: Statement, repository: string, names: readonly string[]): string {
  return `select l.id from labels l where l.repository_id = ${repository} and l.deleted_at is null
    and lower(l.name) = any(${statement.value(names.map((name) => name.toLowerCase()))}::text[])`;
}
