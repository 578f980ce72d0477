/** A plain matcher for the common search qualifiers. Words must all occur in the title or the body. */

import { kindOf } from "../world/access.ts";
import type { Issue, Repository, Seconds, User } from "../world/records.ts";
import { commentCount, isPull } from "../world/world.ts";
import { type Call, mayRead, readable } from "./call.ts";
import { rollupOf, stateOf } from "./checks.ts";
import { mentionOf } from "./issue-lists.ts";

/** GitHub docs: a search answers at most 1,000 results. */
const SEARCH_LIMIT = 1_000;

/** Who searches. Null: nobody in particular. */
export type Searcher = Pick<Call, "world" | "caller"> & { readonly viewer: User | null };

interface Term {
  readonly negated: boolean;
  readonly name: string | null;
  readonly value: string;
}

function termsOf(query: string): Term[] {
  const terms: Term[] = [];
  for (const match of query.replaceAll(BETWEEN, " ").matchAll(/(-)?(?:([a-z-]+):)?(?:"([^"]*)"|([^\s"]+))/gi)) {
    terms.push({
      negated: match[1] !== undefined,
      name: match[2]?.toLowerCase() ?? null,
      value: match[3] ?? match[4] ?? "",
    });
  }
  return terms;
}

/** What joins terms, outside of quotes. */
const BETWEEN = /[()]|\bOR\b/g;

type IssueTest = (issue: Issue) => boolean;

/** The query as one test: terms that follow each other must all hold, and bind closer than OR; brackets bind closest. */
function queryTest(query: string, testOf: (term: Term) => IssueTest | undefined): IssueTest {
  const tokens = [...query.matchAll(/[()]|-?(?:[a-z-]+:)?(?:"[^"]*"|[^\s"()]+)/gi)].map(([token]) => token);
  let at = 0;
  const any = (): IssueTest => {
    const alternatives = [all()];
    for (; tokens[at] === "OR"; ) {
      at += 1;
      alternatives.push(all());
    }
    return (issue) => alternatives.some((one) => one(issue));
  };
  const all = (): IssueTest => {
    const tests: IssueTest[] = [];
    for (; at < tokens.length && tokens[at] !== ")" && tokens[at] !== "OR"; at++) {
      if (tokens[at] === "(") {
        at += 1;
        tests.push(any());
        continue;
      }
      for (const term of termsOf(tokens[at] ?? "")) {
        const test = testOf(term);
        if (test) tests.push((issue) => test(issue) !== term.negated);
      }
    }
    return (issue) => tests.every((one) => one(issue));
  };
  return any();
}

export interface Found<Row> {
  /** At most `SEARCH_LIMIT`, in the order asked for. */
  readonly rows: readonly Row[];
  /** How many there are in all. */
  readonly total: number;
}

const KINDS = ["issues", "pull_requests"] as const;

/** What the caller may not read is neither found nor counted. */
export function searchIssues(call: Searcher, query: string): Found<Issue> {
  const terms = termsOf(query);
  const repositories = repositoriesFor(call, terms);
  const matches = queryTest(query, (term) => issueTest(call, term));
  const found: Issue[] = [];
  for (const repository of repositories) {
    const kinds = KINDS.filter((kind) => mayRead(call, repository, kind));
    if (kinds.length === 0) continue;
    for (const issue of repository.rows.issuesByCreated.descending())
      if (kinds.includes(kindOf(issue)) && matches(issue)) found.push(issue);
  }
  const sort = terms.find((term) => term.name === "sort")?.value ?? "created-desc";
  const sign = sort.endsWith("-asc") ? 1 : -1;
  const key = (issue: Issue): number => {
    if (sort.startsWith("updated")) return issue.updatedAt;
    return sort.startsWith("comments") ? commentCount(issue) : issue.createdAt;
  };
  found.sort((a, b) => sign * (key(a) - key(b) || a.id - b.id));
  return { rows: found.slice(0, SEARCH_LIMIT), total: found.length };
}

export function searchRepositories(call: Searcher, query: string): Found<Repository> {
  const terms = termsOf(query);
  const words = terms.filter((term) => term.name === null).map((term) => term.value.toLowerCase());
  const found = repositoriesFor(call, terms).filter((repository) => {
    const text = `${call.world.fullName(repository)} ${repository.description ?? ""}`.toLowerCase();
    if (!words.every((word) => text.includes(word))) return false;
    return terms.every((term) => {
      const matches = repositoryMatches(repository, term);
      return matches === undefined || matches !== term.negated;
    });
  });
  found.sort((a, b) => b.stargazers - a.stargazers || a.id - b.id);
  return { rows: found.slice(0, SEARCH_LIMIT), total: found.length };
}

function repositoryMatches(repository: Repository, term: Term): boolean | undefined {
  const value = term.value.toLowerCase();
  switch (term.name) {
    case "is":
      return value === "public" || value === "private" ? repository.visibility === value : undefined;
    case "archived":
      return repository.archived === (value === "true");
    case "fork":
      return value === "only" ? repository.fork : value === "true" ? true : !repository.fork;
    case "language":
      return repository.language?.toLowerCase() === value;
    case "topic":
      return repository.topics.includes(value);
    case "stars":
      return inRange(repository.stargazers, value, Number);
    default:
      return undefined;
  }
}

/** Those named by `repo:`, `org:` and `user:`; without any of them, all that can be read. */
function repositoriesFor(call: Searcher, terms: readonly Term[]): Repository[] {
  const named = terms.filter((term) => !term.negated && term.name === "repo").map((term) => term.value.toLowerCase());
  const owners = terms
    .filter((term) => !term.negated && (term.name === "org" || term.name === "user"))
    .map((term) => term.value.toLowerCase());
  const found: Repository[] = [];
  for (const row of call.world.repositories.values()) {
    const repository = readable(call, row);
    if (!repository) continue;
    const fullName = call.world.fullName(repository).toLowerCase();
    const wanted = named.includes(fullName) || owners.includes(fullName.slice(0, fullName.indexOf("/")));
    if (wanted || (named.length === 0 && owners.length === 0)) found.push(repository);
  }
  return found;
}

/** Whether the query names repositories or owners, and the caller may see none of them. */
export function namesNothing(call: Searcher, query: string): boolean {
  const scopes = termsOf(query).filter(
    ({ negated, name }) => !negated && (name === "repo" || name === "org" || name === "user"),
  );
  const owners = scopes.filter(({ name }) => name !== "repo");
  const isOwner = owners.some(({ value }) => value === "@me" || call.world.userByLogin(value) !== undefined);
  return scopes.length > 0 && !isOwner && repositoriesFor(call, scopes).length === 0;
}

/** The words and phrases that a query looks for. */
export function wordsOf(query: string): string[] {
  return termsOf(query).flatMap(({ negated, name, value }) =>
    negated || name !== null || /^(?:AND|NOT)$/.test(value) ? [] : [value.toLowerCase()],
  );
}

/** Undefined for terms that do not narrow issues down. */
function issueTest(call: Searcher, term: Term): ((issue: Issue) => boolean) | undefined {
  const { world } = call;
  const value = term.value.toLowerCase();
  const userId = () => (value === "@me" ? call.viewer?.id : world.userByLogin(value)?.id);
  switch (term.name) {
    case null:
      return (issue) => issue.title.toLowerCase().includes(value) || (issue.body ?? "").toLowerCase().includes(value);
    case "is":
    case "type":
    case "state":
      return stateTest(value);
    case "draft":
      return (issue) => isPull(issue) && issue.pull.draft === (value === "true");
    case "author": {
      const id = userId();
      return (issue) => id !== undefined && issue.authorId === id;
    }
    case "assignee": {
      const id = userId();
      return (issue) => id !== undefined && issue.assigneeIds.includes(id);
    }
    case "commenter": {
      const id = userId();
      return (issue) => id !== undefined && issue.thread.some((comment) => comment.authorId === id);
    }
    case "mentions": {
      const mention = mentionOf(value);
      return (issue) => mention.test(issue.body ?? "");
    }
    case "label":
      return (issue) =>
        issue.labelIds.some((id) => value.split(",").includes(world.labels.get(id)?.name.toLowerCase() ?? ""));
    case "milestone":
      return (issue) =>
        issue.milestoneId !== null && world.milestones.get(issue.milestoneId)?.title.toLowerCase() === value;
    case "no":
      if (value === "label") return (issue) => issue.labelIds.length === 0;
      if (value === "assignee") return (issue) => issue.assigneeIds.length === 0;
      return value === "milestone" ? (issue) => issue.milestoneId === null : undefined;
    // Unconfirmed: that it is the rollup that counts, and for what an error does.
    case "status":
      return (issue) => {
        if (!isPull(issue)) return false;
        const rollup = rollupOf(call, { oid: issue.pull.head.sha, repository: issue.repository });
        return rollup !== null && stateOf(rollup).toLowerCase() === value;
      };
    case "comments":
      return (issue) => inRange(commentCount(issue), value, Number);
    case "created":
      return (issue) => inRange(issue.createdAt, value, parseTime);
    case "updated":
      return (issue) => inRange(issue.updatedAt, value, parseTime);
    case "closed":
      return (issue) => issue.closedAt !== null && inRange(issue.closedAt, value, parseTime);
    case "merged":
      return (issue) => issue.pull?.mergedAt != null && inRange(issue.pull.mergedAt, value, parseTime);
    default:
      return undefined;
  }
}

function stateTest(value: string): ((issue: Issue) => boolean) | undefined {
  switch (value) {
    case "issue":
      return (issue) => !issue.pull;
    case "pr":
    case "pull-request":
      return isPull;
    case "open":
    case "closed":
      return (issue) => issue.state === value;
    case "merged":
      return (issue) => issue.pull?.mergedAt != null;
    case "unmerged":
      return (issue) => isPull(issue) && issue.pull.mergedAt === null;
    case "draft":
      return (issue) => issue.pull?.draft === true;
    case "locked":
      return (issue) => issue.locked;
    case "public":
    case "private":
      return (issue) => issue.repository.visibility === value;
    default:
      return undefined;
  }
}

function parseTime(text: string): Seconds {
  return Date.parse(text) / 1_000;
}

/** Whether the time lies in a range as searches write it: see `inRange`. */
export function isInTimes(at: Seconds, range: string): boolean {
  return inRange(at, range, parseTime);
}

/** `>=a`, `>a`, `<=b`, `<b`, `a..b` with `*` for no bound, or the thing itself (a whole day for a date). */
function inRange(actual: number, range: string, parse: (text: string) => number): boolean {
  const [, comparison, limit = ""] = /^(>=|<=|>|<)(.+)$/.exec(range) ?? [];
  if (comparison !== undefined) {
    const bound = parse(limit);
    switch (comparison) {
      case ">=":
        return actual >= bound;
      case "<=":
        return actual <= bound;
      case ">":
        return actual > bound;
      default:
        return actual < bound;
    }
  }
  const [isBetween, low = "", high = ""] = /^(.+)\.\.(.+)$/.exec(range) ?? [];
  if (isBetween !== undefined) {
    return (
      (low === "*" || actual >= parse(low)) &&
      (high === "*" || actual <= parse(high) + (high.length === 10 ? 86_399 : 0))
    );
  }
  const exact = parse(range);
  return /^\d{4}-\d\d-\d\d$/.test(range) ? actual >= exact && actual < exact + 86_400 : actual === exact;
}
