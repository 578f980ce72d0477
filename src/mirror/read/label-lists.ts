import { SQL, sql } from "../../../db/sql.ts";
import { isNamed } from "./names.ts";

export type IssueState = "open" | "closed";

/** Which of the issues under a label are wanted. */
export interface LabelLists {
  /** The repository's id. */
  repository: SQL;
  /** Any of these, in any case of their letters; or one label's id. */
  label: readonly string[] | SQL;
  states: readonly IssueState[];
  /** Absent: both. */
  arePulls?: boolean;
}

/**
 * A table `s`. Each row names a stretch of the index `issue_labels_listed`: the issues or pull requests in one state
 * under one label. Each stretch is read by itself, in its order, as far as a page needs. So a large repository costs as
 * much as a small one. An issue with several of the labels is found several times.
 */
export function labelLists({ repository, label, states, arePulls }: LabelLists): SQL {
  const labels = label instanceof SQL ? sql`(select ${label} as id)` : sql`(${labelIds(repository, label)})`;
  const kinds = { both: sql`(false), (true)`, pulls: sql`(true)`, issues: sql`(false)` };
  const kind = kinds[arePulls === undefined ? "both" : arePulls ? "pulls" : "issues"];
  return sql`lateral (select l.id as label_id, t.state, k.is_pull_request
    from ${labels} l cross join unnest(${states}::text[]) t(state) cross join (values ${kind}) k(is_pull_request)) s`;
}

/** The condition that a row `il` of `issue_labels` lies in the list `s`. */
export function inLabelList(repository: SQL): SQL {
  return sql`il.repository_id = ${repository} and il.label_id = s.label_id and il.is_pull_request = s.is_pull_request
    and il.state = s.state and il.is_shown`;
}

/** The most labels that one list may ask for: GitHub was seen to let an issue carry no more. */
export const MOST_LABELS = 100;

/**
 * The condition that the issue or pull request `alias` carries all these labels, in any case of their letters. It looks
 * at the labels of one row: a join for each name would take Postgres seconds to plan.
 */
export function carriesAll(alias: SQL, repository: SQL, names: readonly string[]): SQL {
  return sql`(select count(distinct folded(l.name)) from issue_labels c
      join labels l on l.repository_id = c.repository_id and l.id = c.label_id and l.deleted_at is null
    where c.repository_id = ${repository} and c.number = ${alias}.number and ${isNamed(sql`l.name`, names)})
    = (select count(distinct n) from unnest(folded(${names}::text[])) n)`;
}

function labelIds(repository: SQL, names: readonly string[]): SQL {
  return sql`select l.id from labels l where l.repository_id = ${repository} and l.deleted_at is null
    and ${isNamed(sql`l.name`, names)}`;
}
