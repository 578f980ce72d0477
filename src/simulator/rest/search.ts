import { namesNothing, type Searcher, searchIssues, searchRepositories, wordsOf } from "../graphql/search.ts";
import { issueView, labelView } from "../views/issue.ts";
import { repositorySummary } from "../views/repository.ts";
import type { Json } from "../views/view.ts";
import { allows, wasGiven } from "../world/access.ts";
import { invalid, Refusal } from "../world/refusal.ts";
import { calledBy, isIntegration } from "../world/tokens.ts";
import { type Answer, type Call, notFound, ok } from "./call.ts";
import { counted, pageNumber, pageSize } from "./pagination.ts";

/** GitHub docs: "up to 1,000 results for each search". */
const MOST_RESULTS = 1_000;
const SORTS: readonly string[] = ["created", "updated", "comments"];

/** `GET /search/issues`. A row that a replica has not heard of is not found. */
export function getIssueSearch(call: Call): Answer {
  const { query, world } = call;
  const q = searchText(call);
  const sort = query.get("sort") ?? "";
  const order = query.get("order") === "asc" ? "asc" : "desc";
  const { rows, total } = searchIssues(searcherOf(call), SORTS.includes(sort) ? `${q} sort:${sort}-${order}` : q);
  const seen = rows.flatMap((row) => world.lag.seen(row) ?? []);
  return results(call, { rows: seen, total, type: "Issue", properties: ["title", "body"] }, (row) => {
    const { closed_by: _, ...item } = issueView(call.view, row);
    return { item, home: row.repository.id };
  });
}

/** `GET /search/repositories`, in one order: by stars. */
export function getRepositorySearch(call: Call): Answer {
  const { rows, total } = searchRepositories(searcherOf(call), searchText(call));
  const seen = rows.flatMap((row) => call.world.lag.seen(row) ?? []);
  const shape = { rows: seen, total, type: "Repository", properties: ["name", "description"] };
  return results(call, shape, (row) => ({ item: repositorySummary(call.view, row), home: row.id }));
}

/** `GET /search/labels`: the labels of one repository. */
export function getLabelSearch(call: Call): Answer {
  const id = Number(call.query.get("repository_id") ?? Number.NaN);
  const repository = call.world.repositories.get(id);
  if (!repository || call.view.roleOf(repository) === undefined) throw notFound();
  const words = wordsOf(searchText(call));
  const rows = [...repository.rows.labels.values()].filter(({ name, description }) =>
    words.every((word) => `${name} ${description ?? ""}`.toLowerCase().includes(word)),
  );
  const shape = { rows, total: rows.length, type: "Label", properties: ["name", "description"] };
  return results(call, shape, (row) => ({ item: labelView(call.view, row), home: repository.id }));
}

/** What is searched for. GitHub docs: at most 256 characters; how qualifiers count is unconfirmed, so they do not here. */
function searchText(call: Call): string {
  const { query } = call;
  const q = query.get("q") ?? "";
  if (q.trim() === "") throw invalid({ resource: "Search", field: "q", code: "missing" });
  const faulty = (message: string) => invalid({ message, resource: "Search", field: "q", code: "invalid" });
  if (wordsOf(q).join(" ").length > 256) throw faulty("The search is longer than 256 characters.");
  if (namesNothing(searcherOf(call), q))
    throw faulty(
      "The listed users and repositories cannot be searched either because the resources do not exist or you do not have permission to view them.",
    );
  if ((pageNumber(query) - 1) * pageSize(query) >= MOST_RESULTS)
    throw new Refusal(422, "Only the first 1000 search results are available");
  return q;
}

function results<Row>(
  call: Call,
  { rows, total, type, properties }: { rows: readonly Row[]; total: number; type: string; properties: string[] },
  show: (row: Row) => { item: Json; home: number },
): Answer {
  const words = wordsOf(call.query.get("q") ?? "");
  // GitHub docs, "Text match metadata".
  const hasMatches = /\.text-match(?:\+json)?\s*(?:[;,]|$)/.test(call.headers.accept ?? "");
  const answer = counted(call, "items", rows, (row) => {
    const { item, home } = show(row);
    const [, , ...below] = String(item.url).slice(`${call.view.apiUrl}/repos/`.length).split("/");
    const object_url = [`${call.view.apiUrl}/repositories/${home}`, ...below].join("/");
    const matches = hasMatches
      ? { text_matches: properties.flatMap((property) => textMatch(item, { object_url, type, property, words })) }
      : {};
    return { ...item, score: 1, ...matches };
  });
  const items = (answer.body as { items: unknown }).items;
  return ok({ total_count: total, incomplete_results: false, items }, { links: answer.links ?? [], uncached: true });
}

function textMatch(
  item: Json,
  { object_url, type, property, words }: { object_url: string; type: string; property: string; words: string[] },
): object[] {
  const fragment = String(item[property] ?? "");
  const matches = words.flatMap((word) => {
    const at = fragment.toLowerCase().indexOf(word);
    const end = at + word.length;
    return at < 0 ? [] : [{ text: fragment.slice(at, end), indices: [at, end] }];
  });
  return matches.length === 0 ? [] : [{ object_url, object_type: type, property, fragment, matches }];
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
