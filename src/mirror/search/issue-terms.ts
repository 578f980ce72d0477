/** What each qualifier of a search for issues and pull requests asks of them. */

import { SQL, sql } from "../../../db/sql.ts";
import { mentionOf, typeConditions } from "../read/issues.ts";
import { isNamed } from "../read/names.ts";
import { ROLLED_UP_PULLS, standsIn } from "./check-states.ts";
import { loginOf, type SearchNames } from "./names.ts";
import { InvalidSearchError, UnmirroredSearchError } from "./query.ts";
import { numberRange, type Range, timeRange } from "./range.ts";
import type { KeySet, Term } from "./sets.ts";

export interface TermContext {
  names: SearchNames;
}

/** Where words may be looked for. */
export const TEXT_PLACES: ReadonlySet<string> = new Set(["title", "body", "comments"]);

const ISSUES = { from: sql`issues t`, number: sql`t.number` };
const PULLS = { from: sql`pull_requests t`, number: sql`t.number` };
const COMMENTS = { from: sql`issue_comments t`, number: sql`t.issue_number` };
const REVIEWS = { from: sql`pull_request_reviews t`, number: sql`t.pull_number` };
const LABELS = {
  from: sql`issue_labels t
    join labels l on l.repository_id = t.repository_id and l.id = t.label_id and l.deleted_at is null`,
  number: sql`t.number`,
};

const issueSet = (where: SQL): KeySet => ({ ...ISSUES, where });
const pullSet = (where: SQL): KeySet => ({ ...PULLS, where: sql`t.deleted_at is null and ${where}` });
const commentSet = (where: SQL): KeySet => ({ ...COMMENTS, where: sql`t.deleted_at is null and ${where}` });
const reviewSet = (where: SQL): KeySet => ({
  ...REVIEWS,
  where: sql`t.deleted_at is null and t.state <> 'PENDING' and ${where}`,
});

/** The issues in which one of the texts stands, in one of the places; none given is all of them. */
export function textSets(texts: string[], places: readonly string[]): KeySet[] {
  const query = textQuery(texts);
  const isIn = (place: string) => places.length === 0 || places.includes(place);
  const sets: KeySet[] = [];
  if (isIn("title") && isIn("body")) sets.push(issueSet(sql`t.search @@ ${query}`));
  else if (isIn("title")) sets.push(issueSet(sql`t.search @@ ${query} and ts_filter(t.search, '{a}') @@ ${query}`));
  else if (isIn("body")) sets.push(issueSet(sql`t.search @@ ${query} and ts_filter(t.search, '{b}') @@ ${query}`));
  if (isIn("comments")) sets.push(commentSet(sql`t.search @@ ${query}`));
  return sets;
}

export function textQuery(texts: string[]): SQL {
  const queries = texts.map((text) => sql`search_query(${text})`);
  return sql`(${sql.join(queries, " || ")})`;
}

export type Qualifier<Of extends Term = Term> = (values: string[], context: TermContext) => Of;

/** The ids of the people named; `@me` and unknown names included. */
function people(values: string[], { names }: TermContext): SQL {
  const ids = values.flatMap((value) => names.users.get(loginOf(value)) ?? []);
  return sql`any(${ids}::bigint[])`;
}

/** One of several conditions, each by the word that stands for it. @throws InvalidSearchError for other words */
export function worded(name: string, words: Record<string, Term>): Qualifier {
  const known = new Map(Object.entries(words));
  return (values) => {
    const terms = values.map((value) => {
      const term = known.get(value.toLowerCase());
      if (term === undefined) {
        throw new UnmirroredSearchError(
          `"${name}:${value}" is not mirrored; "${name}:" takes ${[...known.keys()].join(", ")}.`,
        );
      }
      return term;
    });
    if (terms.every((term) => term instanceof SQL)) return sql.or(terms);
    if (terms.every((term) => Array.isArray(term))) return terms.flat();
    throw new InvalidSearchError(
      `"${name}:${values.join(",")}" cannot be searched in one; use ${name}: for each and OR.`,
    );
  };
}

/** One of several ranges of a column. */
export function ranged<Bound extends Date | number>(
  read: (text: string) => Range<Bound>,
  of: (within: (column: SQL) => SQL) => Term,
): Qualifier {
  return (values) => {
    const ranges = values.map(read);
    return of((column) =>
      sql.or(
        ranges.map(({ from, until }) => {
          const bounds = [sql`${column} is not null`];
          if (from !== null) bounds.push(sql`${column} >= ${from}`);
          if (until !== null) bounds.push(sql`${column} < ${until}`);
          return sql`(${sql.and(bounds)})`;
        }),
      ),
    );
  };
}

const notMirrored =
  (name: string): Qualifier =>
  () => {
    // Without the condition the search would show too many issues.
    throw new UnmirroredSearchError(`"${name}:" cannot be searched here: what it asks about is not mirrored.`);
  };

const labelled: KeySet = { from: sql`issue_labels t`, number: sql`t.number`, where: sql`true` };
const assigned: KeySet = { from: sql`issue_assignees t`, number: sql`t.number`, where: sql`true` };
const merged = pullSet(sql`t.merged_at is not null`);

const KIND: Readonly<Record<string, SQL>> = {
  issue: sql`not i.is_pull_request`,
  pr: sql`i.is_pull_request`,
  "pull-request": sql`i.is_pull_request`,
};
const STATE: Readonly<Record<string, SQL>> = { open: sql`i.state = 'open'`, closed: sql`i.state = 'closed'` };

const commenter: Qualifier<KeySet[]> = (values, context) => [commentSet(sql`t.user_id = ${people(values, context)}`)];
const author: Qualifier = (values, context) => sql`i.user_id = ${people(values, context)}`;
const assignee: Qualifier<KeySet[]> = (values, context) =>
  values.includes("*") ? [assigned] : [{ ...assigned, where: sql`t.user_id = ${people(values, context)}` }];

/** Words find the candidates by index; the pattern then tells `@login` from the word alone. */
const mentions: Qualifier<KeySet[]> = (values, { names }) => {
  const logins = values.flatMap((value) => (loginOf(value) === "@me" ? (names.login ?? []) : loginOf(value)));
  const people = [...new Set(logins)].filter((login) => /[\p{L}\p{N}]/u.test(login));
  if (people.length === 0) return [issueSet(sql`false`)];
  const found = sql`t.search @@ ${textQuery(people)} and t.body ~* ${mentionOf(people)}`;
  return [issueSet(found), commentSet(found)];
};

const involves: Qualifier = (values, context) => [
  issueSet(sql`t.user_id = ${people(values, context)}`),
  ...[assignee, mentions, commenter].flatMap((one) => one(values, context)),
];

const inMilestone: Qualifier = (values) =>
  sql`i.milestone_id = any(array(select m.id from milestones m where m.deleted_at is null
    and ${isNamed(sql`m.title`, values)}))`;

/** The newest verdict of each reviewer counts. */
function verdict(condition: SQL): KeySet[] {
  return [
    {
      from: sql`(select v.repository_id, v.pull_number from
        (select distinct on (v.repository_id, v.pull_number, v.user_id) v.repository_id, v.pull_number, v.state
          from pull_request_reviews v where v.deleted_at is null and v.state in ('APPROVED', 'CHANGES_REQUESTED', 'DISMISSED')
          order by v.repository_id, v.pull_number, v.user_id, v.submitted_at desc, v.id desc) v
        group by v.repository_id, v.pull_number having ${condition}) t`,
      number: sql`t.pull_number`,
      where: sql`true`,
    },
  ];
}

export const ISSUE_QUALIFIERS: ReadonlyMap<string, Qualifier> = new Map<string, Qualifier>([
  [
    "is",
    worded("is", {
      ...KIND,
      ...STATE,
      merged: [merged],
      unmerged: sql`i.is_pull_request and not exists (select from pull_requests m
        where m.repository_id = i.repository_id and m.number = i.number and m.merged_at is not null)`,
      draft: sql`i.is_pull_request and i.draft is true`,
      locked: sql`i.locked is true`,
      unlocked: sql`i.locked is not true`,
      public: sql`not r.private`,
      private: sql`r.private`,
      internal: sql`r.visibility = 'internal'`,
      archived: sql`r.archived is true`,
    }),
  ],
  ["state", worded("state", { ...STATE, merged: [merged] })],
  [
    "type",
    (values) =>
      sql.or(
        values.map((value) => {
          const kind = new Map(Object.entries(KIND)).get(value.toLowerCase());
          return kind ?? sql.and(typeConditions({ name: value }));
        }),
      ),
  ],
  ["author", author],
  ["assignee", assignee],
  ["mentions", mentions],
  ["commenter", commenter],
  ["involves", involves],
  ["label", (values) => [{ ...LABELS, where: isNamed(sql`l.name`, values) }]],
  [
    "milestone",
    (values, context) => (values.includes("*") ? sql`i.milestone_id is not null` : inMilestone(values, context)),
  ],
  [
    "no",
    worded("no", {
      label: sql`not exists (select from issue_labels n
        join labels l on l.repository_id = n.repository_id and l.id = n.label_id and l.deleted_at is null
        where n.repository_id = i.repository_id and n.number = i.number)`,
      assignee: sql`not exists (select from issue_assignees n
        where n.repository_id = i.repository_id and n.number = i.number)`,
      milestone: sql`i.milestone_id is null`,
    }),
  ],
  [
    "has",
    worded("has", { label: [labelled], assignee: [assigned], milestone: [issueSet(sql`t.milestone_id is not null`)] }),
  ],
  ["created", ranged(timeRange, (within) => within(sql`i.created_at`))],
  ["updated", ranged(timeRange, (within) => within(sql`i.updated_at`))],
  ["closed", ranged(timeRange, (within) => within(sql`i.closed_at`))],
  ["merged", ranged(timeRange, (within) => [pullSet(within(sql`t.merged_at`))])],
  ["comments", ranged(numberRange, (within) => within(sql`coalesce(i.comments, 0)`))],
  [
    "draft",
    worded("draft", {
      true: sql`i.is_pull_request and i.draft is true`,
      false: sql`i.is_pull_request and i.draft is not true`,
    }),
  ],
  // GitHub docs: the name begins with it.
  [
    "head",
    (values) => [pullSet(sql.or(values.map((value) => sql`starts_with(folded(t.head_ref), folded(${value}::text))`)))],
  ],
  ["base", (values) => [pullSet(isNamed(sql`t.base_ref`, values))]],
  [
    "review",
    worded("review", {
      none: sql`i.is_pull_request and not exists (select from pull_request_reviews n
        where n.repository_id = i.repository_id and n.pull_number = i.number
          and n.deleted_at is null and n.state <> 'PENDING')`,
      approved: verdict(sql`bool_or(v.state = 'APPROVED') and not bool_or(v.state = 'CHANGES_REQUESTED')`),
      changes_requested: verdict(sql`bool_or(v.state = 'CHANGES_REQUESTED')`),
    }),
  ],
  ["reviewed-by", (values, context) => [reviewSet(sql`t.user_id = ${people(values, context)}`)]],
  ["review-requested", reviewRequested],
  ["user-review-requested", reviewRequested],
  [
    "reason",
    worded("reason", {
      completed: sql`i.state_reason = 'completed'`,
      "not planned": sql`i.state_reason = 'not_planned'`,
      duplicate: sql`i.state_reason = 'duplicate'`,
      reopened: sql`i.state_reason = 'reopened'`,
    }),
  ],
  ["archived", worded("archived", { true: sql`r.archived is true`, false: sql`r.archived is not true` })],
  ["language", (values) => isNamed(sql`r.language`, values)],
  // `requireCheckStates` has checked that the state of each candidate is known.
  ["status", (values) => [{ from: ROLLED_UP_PULLS, number: sql`t.number`, where: standsIn(values) }]],
  ...["linked", "team", "team-review-requested", "project", "sha", "app", "parent-issue", "sub-issue"].map(
    (name): [string, Qualifier] => [name, notMirrored(name)],
  ),
]);

/** The document names the requested reviewers, as placeholders for users: see `strip`. */
function reviewRequested(values: string[], { names }: TermContext): Term {
  const ids = values.flatMap((value) => names.users.get(loginOf(value)) ?? []);
  if (ids.length === 0) return sql`false`;
  const asked = `"requested_reviewers":\\[[^\\]]*\\\\u0005u(${ids.join("|")}):`;
  return [pullSet(sql`t.document::text ~ ${asked}`)];
}
