import { type Fields, objectOf, parseStored, textOf } from "../../json.ts";
import { findByNumber, findLabelsByWords, findRepositoriesById } from "../../mirror/read/nodes.ts";
import type { StoredDocument } from "../../mirror/render/rendering.ts";
import { parseIssueSearch, type SearchOrder, searchIssues } from "../../mirror/search/issues.ts";
import { namedScope } from "../../mirror/search/names.ts";
import {
  InvalidSearchError,
  MAX_RESULTS,
  requireShort,
  type SearchQuery,
  UnmirroredSearchError,
} from "../../mirror/search/query.ts";
import { parseRepositorySearch, searchRepositories } from "../../mirror/search/repositories.ts";
import { findFragments, textsIn } from "../../mirror/search/text-matches.ts";
import { type Answer, type Call, ok } from "../call/call.ts";
import { showEach } from "../call/view.ts";
import { learnPublicRights, searcherOf } from "../callers/permissions.ts";
import { joined } from "../dialect/elements.ts";
import { ApiFault, type FieldFault, UnmirroredFault, unshown } from "../dialect/fault.ts";
import { numberedLink } from "../dialect/paging.ts";
import { askedPage, numberParam } from "./page.ts";

const SEARCH_DOCS = "https://docs.github.com/v3/search/";

export async function getSearchedIssues(call: Call): Promise<Answer> {
  const { searchDb } = call;
  const { db } = call.ctx;
  const { found, total } = await searchPage(call, (text, page, order) =>
    searchIssues(searchDb, parseIssueSearch(text), searcherOf(call), page, order),
  );
  const rows = await findByNumber(db, "Issue", found);
  const byKey = new Map(rows.map((row) => [row.key, row]));
  const documents = found
    .flatMap(({ repositoryId, number }) => byKey.get(`${repositoryId}/${number}`) ?? [])
    .map((row) => ({ ...row, document: withoutCloser(row.document) }));
  return results(call, documents, total, { type: "Issue", properties: ["title", "body"], parse: parseIssueSearch });
}

/** A stored issue as searches show it, which do not say who closed it (GitHub's OpenAPI, issue-search-result-item). */
function withoutCloser(document: string): string {
  const { closed_by: _, ...shown } = parseStored<Fields>(document);
  return JSON.stringify(shown);
}

export async function getSearchedRepositories(call: Call): Promise<Answer> {
  const { searchDb } = call;
  const { db } = call.ctx;
  const { found, total } = await searchPage(call, (text, page, order) =>
    searchRepositories(searchDb, parseRepositorySearch(text), searcherOf(call), page, order),
  );
  const rows = await findRepositoriesById(db, found, call.access);
  await learnPublicRights(
    call,
    rows.map(({ repositoryId, ...row }) => ({ id: repositoryId, ...row })),
  );
  const byKey = new Map(rows.map((row) => [row.repositoryId, row]));
  const documents = found.flatMap((id) => byKey.get(id) ?? []);
  const properties = ["name", "description"];
  return results(call, documents, total, { type: "Repository", properties, parse: parseRepositorySearch });
}

export function isPartOfIssues(call: Call): Promise<boolean> {
  return isBeyond(call, parseIssueSearch);
}

export function isPartOfRepositories(call: Call): Promise<boolean> {
  return isBeyond(call, parseRepositorySearch);
}

/** Whether a search may find more at upstream: it is not confined to named repositories that the mirror shows. */
async function isBeyond({ ctx, query, access, reading }: Call, parse: (text: string) => SearchQuery): Promise<boolean> {
  const text = query.get("q") ?? "";
  if (text.trim() === "") return false;
  const names = namesIn(parse, text);
  if (names === null) return true;
  const { repositories } = ctx.mirror;
  const found = await Promise.all(
    [...names].map((fullName) => repositories.at({ fullName, id: null }, access, reading)),
  );
  return found.includes(null);
}

/** The names of all repositories in which the search looks. Null: no names confine it, or it cannot be run here. */
function namesIn(parse: (text: string) => SearchQuery, text: string): ReadonlySet<string> | null {
  try {
    return namedScope(parse(text));
  } catch (error) {
    if (error instanceof InvalidSearchError) return null;
    throw error;
  }
}

/** The labels of one repository that a search finds by words of their name or description. */
export async function getSearchedLabels(call: Call): Promise<Answer> {
  const id = numberParam(call.query.get("repository_id") ?? undefined);
  const repository = id === null ? null : await call.ctx.mirror.repositories.byId(id, call.access);
  if (!repository) throw unshown();
  const { found, total } = await searchPage(call, (text, page) => {
    requireShort(text.length);
    return findLabelsByWords(call.searchDb, repository.id, text.toWellFormed().replaceAll("\0", "\ufffd"), page);
  });
  const parse = (text: string): Pick<SearchQuery, "clauses" | "within"> => ({
    clauses: text.split(/\s+/).map((word) => ({ kind: "text", text: word })),
    within: [],
  });
  return results(call, found, total, { type: "Label", properties: ["name", "description"], parse });
}

/**
 * One page of a search. @throws ApiFault 422 for an impossible search, and for pages beyond the results that are shown
 */
async function searchPage<Found>(
  { query }: Call,
  run: (text: string, page: { limit: number; offset: number }, order: SearchOrder | null) => Promise<Found>,
): Promise<Found> {
  const text = query.get("q") ?? "";
  if (text.trim() === "") throw impossibleSearch({ code: "missing" });
  const { page, limit, offset } = askedPage(query);
  if (page > Math.ceil(MAX_RESULTS / limit)) {
    throw new ApiFault(422, "Only the first 1000 search results are available", { documentationUrl: SEARCH_DOCS });
  }
  const sort = query.get("sort");
  const order: SearchOrder | null = sort
    ? { key: sort, direction: query.get("order") === "asc" ? "asc" : "desc" }
    : null;
  try {
    return await run(text, { limit, offset }, order);
  } catch (error) {
    if (!(error instanceof InvalidSearchError)) throw error;
    const fault: SearchFault = { code: "invalid", message: error.message };
    throw error instanceof UnmirroredSearchError ? impossibleSearch(fault, UnmirroredFault) : impossibleSearch(fault);
  }
}

type SearchFault = Pick<FieldFault, "message"> & { code: "missing" | "invalid" };

function impossibleSearch(fault: SearchFault, Kind = ApiFault): ApiFault {
  const errors = [{ ...fault, resource: "Search", field: "q" }];
  // The service leaves the slash out where no search was sent.
  const documentationUrl = fault.code === "missing" ? SEARCH_DOCS.slice(0, -1) : SEARCH_DOCS;
  return new Kind(422, "Validation Failed", { errors, documentationUrl });
}

/** What of each result the words are looked for in. */
interface Searched {
  type: "Issue" | "Repository" | "Label";
  properties: string[];
  parse(text: string): Pick<SearchQuery, "clauses" | "within">;
}

async function results(call: Call, documents: StoredDocument[], total: number, searched: Searched): Promise<Answer> {
  const { page, limit } = askedPage(call.query);
  const last = Math.ceil(Math.min(total, MAX_RESULTS) / limit);
  const link = numberedLink(call.api + call.path, call.query, { page, last });
  const shown = (await showEach(call, documents)).flatMap((text, at) =>
    text === null ? [] : [{ text, repositoryId: documents[at]?.repositoryId ?? 0 }],
  );
  const matches = call.media.hasMatches ? await textMatches(call, shown, searched) : [];
  const items = shown.map(({ text }, at) => {
    const found = matches[at] ? `,"text_matches":${JSON.stringify(matches[at])}` : "";
    return `${text.slice(0, -1)},"score":1.0${found}}`;
  });
  // GitHub docs: "true" says that the service stopped before it had looked everywhere.
  const isIncomplete = call.isPart;
  const frame = {
    before: `{"total_count":${total},"incomplete_results":${isIncomplete},"items":[`,
    between: ",",
    behind: "]}",
  };
  return ok(await joined(items, frame, call.ctx.mirror.pace), { link, isUncached: true });
}

/** GitHub docs, "Text match metadata": for each result the properties in which a word stands that was looked for. */
async function textMatches(
  { query, searchDb, api }: Call,
  shown: readonly { text: string; repositoryId: number }[],
  { type, properties, parse }: Searched,
): Promise<Fields[][]> {
  const { clauses, within } = parse(query.get("q") ?? "");
  const isWithin = (property: string) => within.length === 0 || within.includes(property);
  const places = shown.flatMap(({ text, repositoryId }, at) => {
    const item = objectOf(JSON.parse(text));
    // The service names what it found by the repository's id.
    const [, , ...below] = String(item.url).slice(`${api}/repos/`.length).split("/");
    const address = [`${api}/repositories/${repositoryId}`, ...below].join("/");
    const words = (property: string) => textOf(item[property]) ?? "";
    return properties.filter(isWithin).map((property) => ({ at, property, address, text: words(property) }));
  });
  const fragments = await findFragments(
    searchDb,
    textsIn(clauses),
    places.map(({ text }) => text),
  );
  const matches: Fields[][] = shown.map(() => []);
  for (const [index, { at, property, address }] of places.entries()) {
    const found = fragments[index];
    if (!found) continue;
    const { fragment, matches: words } = found;
    const named = words.map(({ text, indices }) => ({ text, indices }));
    matches[at]?.push({ object_url: address, object_type: type, property, fragment, matches: named });
  }
  return matches;
}
