import { parseIssueSearch, searchIssues } from "../../../mirror/search/issues.ts";
import { namedScope } from "../../../mirror/search/names.ts";
import { InvalidSearchError, MAX_RESULTS, type SearchQuery, UnknownScopeError } from "../../../mirror/search/query.ts";
import { parseRepositorySearch, searchRepositories } from "../../../mirror/search/repositories.ts";
import { searcherOf } from "../../callers/permissions.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { typedError } from "../run/errors.ts";
import type { FieldInfo } from "../run/plan.ts";
import { type PageArguments, pageRequest } from "./connection.ts";

type SearchResults = { nodes: (Node | null)[]; total: number };
/** Finds at most `limit` results, after the first `offset`. */
type FindResults = (limit: number, offset: number) => Promise<SearchResults>;

/** Searches. The service's cursors count results: `cursor:30` stands behind the thirtieth. */
export function search(
  _root: unknown,
  { query, type, ...args }: PageArguments & { query: string; type: string },
  call: GraphqlCall,
  info: FieldInfo,
) {
  const request = pageRequest(info, args, searchPlace);
  const find = finderOf(call, query, type);
  let loading: Promise<SearchPage> | null = null;
  const page = () => {
    loading ??= loadPage(find, request);
    return loading;
  };
  const count = async (of: string) => (type === of ? (await page()).total : 0);
  return {
    nodes: async () => (await page()).nodes,
    edges: async () => {
      const { nodes, from } = await page();
      return nodes.map((node, at) => ({ node, cursor: searchCursor(from + at + 1) }));
    },
    pageInfo: async () => {
      const { nodes, from, end } = await page();
      return {
        startCursor: nodes.length > 0 ? searchCursor(from + 1) : null,
        endCursor: nodes.length > 0 ? searchCursor(from + nodes.length) : null,
        hasNextPage: from + nodes.length < end,
        hasPreviousPage: from > 0,
      };
    },
    issueCount: () => count("ISSUE"),
    repositoryCount: () => count("REPOSITORY"),
    codeCount: 0,
    discussionCount: 0,
    userCount: 0,
    wikiCount: 0,
  };
}

/** What finds the results. @throws GraphQLError for a search of what is not mirrored */
function finderOf(call: GraphqlCall, query: string, type: string): FindResults {
  const kind = type === "ISSUE" ? ISSUES : type === "REPOSITORY" ? REPOSITORIES : null;
  if (!kind) {
    call.lacks();
    throw typedError("UNPROCESSABLE", `Searches of the type ${type} are not mirrored.`);
  }
  const parsed = parsedOnce(kind.parse, query);
  return async (limit, offset) => {
    if (!(await isOfMirrored(call, parsed()))) call.hasPart();
    if (query.trim() === "") return { nodes: [], total: 0 };
    try {
      const asked = parsed();
      if (asked instanceof InvalidSearchError) throw asked;
      return await kind.find(call, asked, { limit, offset });
    } catch (error) {
      // REST refuses such a search; GraphQL finds nothing.
      if (error instanceof UnknownScopeError) return { nodes: [], total: 0 };
      if (!(error instanceof InvalidSearchError)) throw error;
      call.lacks();
      throw typedError("UNPROCESSABLE", error.message);
    }
  };
}

/** The results that follow the place `from`. */
interface SearchPage {
  nodes: (Node | null)[];
  from: number;
  /** The place of the last result. */
  end: number;
  total: number;
}

/** Loads a page. @param request null: only the number of results is asked for */
async function loadPage(find: FindResults, request: ReturnType<typeof pageRequest<number>>): Promise<SearchPage> {
  if (!request) return { nodes: [], from: 0, end: 0, total: (await find(0, 0)).total };
  const after = request.after ?? 0;
  // `last` without `before` counts from the best result too: `gh` asks so for its pages, and gets the first of them.
  if (!request.fromEnd || request.before === null) {
    const end = Math.min(after + request.limit, (request.before ?? MAX_RESULTS + 1) - 1, MAX_RESULTS);
    const { nodes, total } = await find(Math.max(end - after, 0), after);
    return { nodes, from: after, end: Math.min(total, MAX_RESULTS), total };
  }
  const { total } = await find(0, 0);
  const end = Math.min(total, MAX_RESULTS);
  const until = Math.min(end, (request.before ?? end + 1) - 1);
  const from = Math.max(after, until - request.limit);
  return { nodes: (await find(Math.max(until - from, 0), from)).nodes, from, end, total };
}

/** Parses the query when it is first needed, and once. */
function parsedOnce(parse: (text: string) => SearchQuery, text: string): () => SearchQuery | InvalidSearchError {
  let parsed: SearchQuery | InvalidSearchError | null = null;
  return () => {
    parsed ??= parsedOrInvalid(parse, text);
    return parsed;
  };
}

function parsedOrInvalid(parse: (text: string) => SearchQuery, text: string): SearchQuery | InvalidSearchError {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof InvalidSearchError) return error;
    throw error;
  }
}

/** Whether the search is confined to named repositories that the mirror shows. */
async function isOfMirrored(call: GraphqlCall, query: SearchQuery | InvalidSearchError): Promise<boolean> {
  const names = query instanceof InvalidSearchError ? null : namedScope(query);
  if (names === null) return false;
  const found = await Promise.all([...names].map((name) => call.repositoryNamed(name, false)));
  return !found.includes(null);
}

/** How the query of a search is read, and what it finds. */
interface SearchKind {
  parse: (text: string) => SearchQuery;
  find: (call: GraphqlCall, query: SearchQuery, page: { limit: number; offset: number }) => Promise<SearchResults>;
}

const ISSUES: SearchKind = { parse: parseIssueSearch, find: foundIssues };
const REPOSITORIES: SearchKind = { parse: parseRepositorySearch, find: foundRepositories };

async function foundIssues(
  call: GraphqlCall,
  query: SearchQuery,
  page: { limit: number; offset: number },
): Promise<SearchResults> {
  const { found, total } = await searchIssues(call.searchDb, query, searcherOf(call), page);
  const nodes = await Promise.all(
    found.map(({ repositoryId, number, isPullRequest }) =>
      call.numbered(isPullRequest ? "PullRequest" : "Issue", repositoryId, number),
    ),
  );
  return { nodes, total };
}

async function foundRepositories(
  call: GraphqlCall,
  query: SearchQuery,
  page: { limit: number; offset: number },
): Promise<SearchResults> {
  const { found, total } = await searchRepositories(call.searchDb, query, searcherOf(call), page);
  return { nodes: await Promise.all(found.map((id) => call.repository(id))), total };
}

function searchCursor(place: number): string {
  return Buffer.from(`cursor:${place}`).toString("base64");
}

/** The place that a cursor names. Null: the text is no cursor of a search. */
function searchPlace(text: string): number | null {
  const match = /^cursor:(\d{1,6})$/.exec(Buffer.from(text, "base64").toString("latin1"));
  return match ? Number(match[1]) : null;
}
