import { type Searcher, searchIssues } from "../graphql/search.ts";
import { issueView } from "../views/issue.ts";
import { allows, wasGiven } from "../world/access.ts";
import { invalid, Refusal } from "../world/refusal.ts";
import { calledBy, isIntegration } from "../world/tokens.ts";
import { type Answer, type Call, ok } from "./call.ts";
import { counted, pageNumber, pageSize } from "./pagination.ts";

/** GitHub docs: "up to 1,000 results for each search". */
const MOST_RESULTS = 1_000;
const SORTS: readonly string[] = ["created", "updated", "comments"];

/** `GET /search/issues`. A row that a replica has not heard of is not found. */
export function getIssueSearch(call: Call): Answer {
  const { query, world } = call;
  const q = query.get("q") ?? "";
  if (q.trim() === "") throw invalid({ resource: "Search", field: "q", code: "missing" });
  if ((pageNumber(query) - 1) * pageSize(query) >= MOST_RESULTS)
    throw new Refusal(422, "Only the first 1000 search results are available");
  const sort = query.get("sort") ?? "";
  const order = query.get("order") === "asc" ? "asc" : "desc";
  const { rows, total } = searchIssues(searcherOf(call), SORTS.includes(sort) ? `${q} sort:${sort}-${order}` : q);
  const shown = rows.filter((row) => world.lag.seen(row));
  const answer = counted(call, "items", shown, (row) => {
    const seen = world.lag.seen(row);
    if (!seen) return null;
    const { closed_by: _, ...item } = issueView(call.view, seen);
    return { ...item, score: 1 };
  });
  const items = (answer.body as { items: unknown }).items;
  return ok({ total_count: total, incomplete_results: false, items }, { links: answer.links ?? [], uncached: true });
}

function searcherOf({ world, token, view }: Call): Searcher {
  return {
    world,
    viewer: token ? (world.users.get(token.userId) ?? null) : null,
    caller: {
      token,
      kind: token ? calledBy(token) : "personal access token",
      isApp: token !== null && isIntegration(token),
      roleOf: (repository) => view.roleOf(repository),
      wasGiven: (repository) => token !== null && wasGiven(token, repository),
      may: (repository, needed) => allows(world, token, repository, needed),
    },
  };
}
