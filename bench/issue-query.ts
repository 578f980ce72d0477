import { writeCursor } from "../src/api/dialect/paging.ts";
import { type Corpus, createdAt } from "./corpus.ts";
import { drawIssue, draws } from "./corpus-web.ts";

const PAGE = 100;

/**
 * As `gh issue list --json number,title,url,state,updatedAt,createdAt,labels,assignees,author,milestone -L 100` sends
 * it.
 */
const ISSUE_QUERY = `fragment issue on Issue {number,title,url,state,updatedAt,createdAt,labels(first:100){nodes{id,name,description,color},totalCount},assignees(first:100){nodes{id,login,name},totalCount},author{login,...on User{id,name}},milestone{number,title,description,dueOn}}
	query IssueList($owner: String!, $repo: String!, $limit: Int, $endCursor: String, $states: [IssueState!] = OPEN, $assignee: String, $author: String, $mention: String) {
		repository(owner: $owner, name: $repo) {
			hasIssuesEnabled
			issues(first: $limit, after: $endCursor, orderBy: {field: CREATED_AT, direction: DESC}, states: $states, filterBy: {assignee: $assignee, createdBy: $author, mentioned: $mention}) {
				totalCount
				nodes {
					...issue
				}
				pageInfo {
					hasNextPage
					endCursor
				}
			}
		}
	}
	`;

/** A page of a repository's open issues. */
export interface IssuePage {
  /** The issue that the page begins after; null: the first page, which `gh` asks for. */
  before: number | null;
  variables: { limit: number; owner: string; repo: string; states: string[]; endCursor?: string };
}

/** The first page of each repository. */
export function firstPages({ repositories }: Corpus): IssuePage[] {
  return repositories.map(({ fullName }) => ({ before: null, variables: variablesOf(fullName) }));
}

function variablesOf(fullName: string): IssuePage["variables"] {
  const [owner = "", repo = ""] = fullName.split("/");
  return { limit: PAGE, owner, repo, states: ["OPEN"] };
}

/** Random pages, none shorter than the others. */
export function issuePages(corpus: Corpus, count: number): IssuePage[] {
  const draw = draws(2);
  return Array.from({ length: count }, () => {
    const { repository, number } = drawIssue(corpus, draw);
    // Of the corpus' issues about a third is open and no pull request.
    const before = Math.max(number, Math.min(repository.issues, PAGE * 8));
    const created = createdAt(before, repository.issues).toISOString();
    const key = `${created.slice(0, 10)} ${created.slice(11, 19)}+00`;
    return { before, variables: { ...variablesOf(repository.fullName), endCursor: writeCursor([key, before]) } };
  });
}

/** As it is posted. */
export function issueRequest({ variables }: IssuePage): Buffer {
  return Buffer.from(JSON.stringify({ query: ISSUE_QUERY, variables }));
}

export const JSON_TYPE = { "Content-Type": "application/json" };

/** What the page is answered with. @throws Error for anything but a page of issues */
export async function askForIssues(
  url: string,
  page: IssuePage,
  headers: Record<string, string> = {},
): Promise<string> {
  const answer = await fetch(`${url}/graphql`, {
    method: "POST",
    body: new Uint8Array(issueRequest(page)),
    headers: { ...JSON_TYPE, ...headers },
  });
  const text = await answer.text();
  const nodes = answer.ok ? JSON.parse(text).data?.repository?.issues?.nodes : null;
  if (nodes?.length !== page.variables.limit)
    throw new Error(`${url} answers ${answer.status} with ${nodes?.length} issues: ${text.slice(0, 300)}`);
  return text;
}
