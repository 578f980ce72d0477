/** What each qualifier of a search for issues and pull requests asks of them. */

import type { Statement } from "../../../db/statement.ts";
import { mentionOf, typeConditions } from "../read/issues.ts";
import { loginOf, type SearchNames } from "./names.ts";
import { InvalidSearchError } from "./query.ts";
import { numberRange, type Range, timeRange } from "./range.ts";

/** Rows `t` that name issues: by `t.repository_id` and `number`. */
export interface KeySet {
  from: string;
  number: string;
  where: string;
}

/** A condition on the issue `i` in its repository `r`, or sets of which the issue must be in one. */
export type Term = string | KeySet[];

export interface TermContext {
  statement: Statement;
  names: SearchNames;
}

/** Where words may be looked for. */
export const TEXT_PLACES = new Set(["title", "body", "comments"]);

const issueSet = (where: string): KeySet => ({ from: "issues t", number: "t.number", where });
const pullSet = (where: string): KeySet => ({
  from: "pull_requests t",
  number: "t.number",
  where: `t.deleted_at is null and ${where}`,
});
const commentSet = (where: string): KeySet => ({
  from: "issue_comments t",
  number: "t.issue_number",
  where: `t.deleted_at is null and ${where}`,
});
const reviewSet = (where: string): KeySet => ({
  from: "pull_request_reviews t",
  number: "t.pull_number",
  where: `t.deleted_at is null and t.state <> 'PENDING' and ${where}`,
});

/** The issues in which one of the texts stands, in one of the places; none given is all of them. */
export function textSets(statement: Statement, texts: string[], places: readonly string[]): KeySet[] {
  const query = textQuery(statement, texts);
  const isIn = (place: string) => places.length === 0 || places.includes(place);
  const sets: KeySet[] = [];
  if (isIn("title") && isIn("body")) sets.push(issueSet(`t.search @@ ${query}`));
  else if (isIn("title")) sets.push(issueSet(`t.search @@ ${query} and ts_filter(t.search, '{a}') @@ ${query}`));
  else if (isIn("body")) sets.push(issueSet(`t.search @@ ${query} and ts_filter(t.search, '{b}') @@ ${query}`));
  if (isIn("comments")) sets.push(commentSet(`t.search @@ ${query}`));
  return sets;
}

export function textQuery(statement: Statement, texts: string[]): string {
  return `(${texts.map((text) => `search_query(${statement.value(text)})`).join(" || ")})`;
}

export type Qualifier = (values: string[], context: TermContext) => Term;

/** The ids of the people named; `@me` and unknown names included. */
function people(values: string[], { statement, names }: TermContext): string {
  const ids = values.flatMap((value) => names.users.get(loginOf(value)) ?? []);
  return `any(${statement.value(ids)}::bigint[])`;
}

/** One of several conditions, each by the word that stands for it. @throws InvalidSearchError for other words */
export function worded(name: string, words: Record<string, Term>): Qualifier {
  const known = new Map(Object.entries(words));
  return (values) => {
    const terms = values.map((value) => {
      const term = known.get(value.toLowerCase());
      if (term === undefined) {
        throw new InvalidSearchError(
          `"${name}:${value}" is not mirrored; "${name}:" takes ${[...known.keys()].join(", ")}.`,
        );
      }
      return term;
    });
    if (terms.every((term) => typeof term === "string")) return either(terms);
    if (terms.every((term) => typeof term !== "string")) return terms.flat();
    throw new InvalidSearchError(
      `"${name}:${values.join(",")}" cannot be searched in one; use ${name}: for each and OR.`,
    );
  };
}

export function either(conditions: string[]): string {
  return conditions.length === 1 ? (conditions[0] as string) : `(${conditions.join(" or ")})`;
}

/** One of several ranges of a column. */
export function ranged<Value>(
  read: (text: string) => Range<Value>,
  of: (within: (column: string) => string) => Term,
): Qualifier {
  return (values, { statement }) => {
    const ranges = values.map(read);
    return of((column) =>
      either(
        ranges.map(({ from, until }) => {
          const bounds = [`${column} is not null`];
          if (from !== null) bounds.push(`${column} >= ${statement.value(from)}`);
          if (until !== null) bounds.push(`${column} < ${statement.value(until)}`);
          return `(${bounds.join(" and ")})`;
        }),
      ),
    );
  };
}

const notMirrored =
  (name: string): Qualifier =>
  () => {
    // To leave it out would show what was not asked for.
    throw new InvalidSearchError(`"${name}:" cannot be searched here: what it asks about is not mirrored.`);
  };

const labelled: KeySet = { from: "issue_labels t", number: "t.number", where: "true" };
const assigned: KeySet = { from: "issue_assignees t", number: "t.number", where: "true" };
const merged = pullSet("t.merged_at is not null");

const KIND: Record<string, string> = {
  issue: "not i.is_pull_request",
  pr: "i.is_pull_request",
  "pull-request": "i.is_pull_request",
};
const STATE: Record<string, string> = { open: "i.state = 'open'", closed: "i.state = 'closed'" };

const commenter: Qualifier = (values, context) => [commentSet(`t.user_id = ${people(values, context)}`)];
const author: Qualifier = (values, context) => `i.user_id = ${people(values, context)}`;
const assignee: Qualifier = (values, context) =>
  values.includes("*") ? [assigned] : [{ ...assigned, where: `t.user_id = ${people(values, context)}` }];

/** Words find the candidates by index; the pattern then tells `@login` from the word alone. */
const mentions: Qualifier = (values, { statement, names }) =>
  values.flatMap((value) => {
    const name = loginOf(value) === "@me" ? names.login : loginOf(value);
    if (name === null || !/[\p{L}\p{N}]/u.test(name)) return [issueSet("false")];
    const found = `t.search @@ ${textQuery(statement, [name])} and t.body ~* ${statement.value(mentionOf(name))}`;
    return [issueSet(found), commentSet(found)];
  });

const involves: Qualifier = (values, context) => [
  issueSet(`t.user_id = ${people(values, context)}`),
  ...[assignee, mentions, commenter].flatMap((one) => one(values, context) as KeySet[]),
];

const named: Qualifier = (values, { statement }) =>
  `i.milestone_id in (select m.id from milestones m where m.deleted_at is null
    and lower(m.title) = any(${statement.value(values.map((value) => value.toLowerCase()))}::text[]))`;

/** The newest verdict of each reviewer counts. */
function verdict(condition: string): KeySet[] {
  return [
    {
      from: `(select v.repository_id, v.pull_number from
        (select distinct on (v.repository_id, v.pull_number, v.user_id) v.repository_id, v.pull_number, v.state from pull_request_reviews v
          where v.deleted_at is null and v.state in ('APPROVED', 'CHANGES_REQUESTED', 'DISMISSED')
          order by v.repository_id, v.pull_number, v.user_id, v.submitted_at desc, v.id desc) v
        group by v.repository_id, v.pull_number having ${condition}) t`,
      number: "t.pull_number",
      where: "true",
    },
  ];
}

export const issueQualifiers: ReadonlyMap<string, Qualifier> = new Map<string, Qualifier>([
  [
    "is",
    worded("is", {
      ...KIND,
      ...STATE,
      merged: [merged],
      unmerged:
        "i.is_pull_request and not exists (select from pull_requests m where m.repository_id = i.repository_id and m.number = i.number and m.merged_at is not null)",
      draft: "i.is_pull_request and i.draft is true",
      locked: "i.locked is true",
      unlocked: "i.locked is not true",
      public: "not r.private",
      private: "r.private",
      internal: "r.visibility = 'internal'",
      archived: "r.archived is true",
    }),
  ],
  ["state", worded("state", { ...STATE, merged: [merged] })],
  [
    "type",
    (values, { statement }) =>
      either(
        values.map((value) => {
          const kind = new Map(Object.entries(KIND)).get(value.toLowerCase());
          return kind ?? `(${typeConditions(statement, { name: value }).join(" and ")})`;
        }),
      ),
  ],
  ["author", author],
  ["assignee", assignee],
  ["mentions", mentions],
  ["commenter", commenter],
  ["involves", involves],
  [
    "label",
    (values, { statement }) => [
      {
        from: "issue_labels t join labels l on l.repository_id = t.repository_id and l.id = t.label_id and l.deleted_at is null",
        number: "t.number",
        where: `lower(l.name) = any(${statement.value(values.map((value) => value.toLowerCase()))}::text[])`,
      },
    ],
  ],
  ["milestone", (values, context) => (values.includes("*") ? "i.milestone_id is not null" : named(values, context))],
  [
    "no",
    worded("no", {
      label:
        "not exists (select from issue_labels n join labels l on l.repository_id = n.repository_id and l.id = n.label_id and l.deleted_at is null where n.repository_id = i.repository_id and n.number = i.number)",
      assignee:
        "not exists (select from issue_assignees n where n.repository_id = i.repository_id and n.number = i.number)",
      milestone: "i.milestone_id is null",
    }),
  ],
  [
    "has",
    worded("has", { label: [labelled], assignee: [assigned], milestone: [issueSet("t.milestone_id is not null")] }),
  ],
  ["created", ranged(timeRange, (within) => within("i.created_at"))],
  ["updated", ranged(timeRange, (within) => within("i.updated_at"))],
  ["closed", ranged(timeRange, (within) => within("i.closed_at"))],
  ["merged", ranged(timeRange, (within) => [pullSet(within("t.merged_at"))])],
  ["comments", ranged(numberRange, (within) => within("coalesce(i.comments, 0)"))],
  [
    "draft",
    worded("draft", {
      true: "i.is_pull_request and i.draft is true",
      false: "i.is_pull_request and i.draft is not true",
    }),
  ],
  // GitHub docs: the name begins with it.
  [
    "head",
    (values, { statement }) => [
      pullSet(either(values.map((value) => `starts_with(lower(t.head_ref), ${statement.value(value.toLowerCase())})`))),
    ],
  ],
  [
    "base",
    (values, { statement }) => [
      pullSet(`lower(t.base_ref) = any(${statement.value(values.map((value) => value.toLowerCase()))}::text[])`),
    ],
  ],
  [
    "review",
    worded("review", {
      none: "i.is_pull_request and not exists (select from pull_request_reviews n where n.repository_id = i.repository_id and n.pull_number = i.number and n.deleted_at is null and n.state <> 'PENDING')",
      approved: verdict("bool_or(v.state = 'APPROVED') and not bool_or(v.state = 'CHANGES_REQUESTED')"),
      changes_requested: verdict("bool_or(v.state = 'CHANGES_REQUESTED')"),
    }),
  ],
  ["reviewed-by", (values, context) => [reviewSet(`t.user_id = ${people(values, context)}`)]],
  ["review-requested", reviewRequested],
  ["user-review-requested", reviewRequested],
  [
    "reason",
    worded("reason", {
      completed: "i.state_reason = 'completed'",
      "not planned": "i.state_reason = 'not_planned'",
      duplicate: "i.state_reason = 'duplicate'",
      reopened: "i.state_reason = 'reopened'",
    }),
  ],
  ["archived", worded("archived", { true: "r.archived is true", false: "r.archived is not true" })],
  [
    "language",
    (values, { statement }) =>
      `lower(r.language) = any(${statement.value(values.map((value) => value.toLowerCase()))}::text[])`,
  ],
  ...["linked", "status", "team", "team-review-requested", "project", "sha", "app", "parent-issue", "sub-issue"].map(
    (name): [string, Qualifier] => [name, notMirrored(name)],
  ),
]);

/** Who is asked stands in the document, as a mark for the user: see `template.ts`. */
function reviewRequested(values: string[], { statement, names }: TermContext): Term {
  const ids = values.flatMap((value) => names.users.get(loginOf(value)) ?? []);
  if (ids.length === 0) return "false";
  const asked = statement.value(`"requested_reviewers":\\[[^\\]]*\\\\u0005u(${ids.join("|")}):`);
  return [pullSet(`t.document::text ~ ${asked}`)];
}
