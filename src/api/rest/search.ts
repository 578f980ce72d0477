import { findByNumber, findLabelsByWords, findRepositoriesById } from "../../mirror/read/nodes.ts";
import type { StoredDocument } from "../../mirror/render/rendering.ts";
import { type SearchOrder, searchIssues } from "../../mirror/search/issues.ts";
import { InvalidSearchError, MAX_RESULTS, UnmirroredSearchError } from "../../mirror/search/query.ts";
import { searchRepositories } from "../../mirror/search/repositories.ts";
import { type Answer, type Call, ok } from "../call.ts";
import { learnPublicRights, searcherOf } from "../callers/permissions.ts";
import { joined } from "../dialect/elements.ts";
import { ApiFault, type FieldFault, notFound, UnmirroredFault } from "../dialect/fault.ts";
import { numberedLink } from "../dialect/paging.ts";
import { showEach } from "../view.ts";
import { askedPage, numberParam } from "./page.ts";

const SEARCH_DOCS = "https://docs.github.com/v3/search/";

export async function getSearchedIssues(call: Call): Promise<Answer> {
  const { db } = call.ctx;
  const { found, total } = await searchPage(call, (text, page, order) =>
    searchIssues(db, text, searcherOf(call), page, order),
  );
  const rows = await findByNumber(db, "Issue", found);
  const byKey = new Map(rows.map((row) => [row.key, row]));
  const documents = found.flatMap(({ repositoryId, number }) => byKey.get(`${repositoryId}/${number}`) ?? []);
  return results(call, documents, total);
}

export async function getSearchedRepositories(call: Call): Promise<Answer> {
  const { db } = call.ctx;
  const { found, total } = await searchPage(call, (text, page, order) =>
    searchRepositories(db, text, searcherOf(call), page, order),
  );
  const rows = await findRepositoriesById(db, found, call.sight);
  await learnPublicRights(
    call,
    rows.map(({ repositoryId, ...row }) => ({ id: repositoryId, ...row })),
  );
  const byKey = new Map(rows.map((row) => [row.repositoryId, row]));
  const documents = found.flatMap((id) => byKey.get(id) ?? []);
  return results(call, documents, total);
}

/** The labels of one repository that a search finds by words of their name or description. */
export async function getSearchedLabels(call: Call): Promise<Answer> {
  const id = numberParam(call.query.get("repository_id") ?? undefined);
  const repository = id === null ? null : await call.ctx.mirror.repositories.byId(id, call.sight);
  if (!repository) throw notFound();
  const { found, total } = await searchPage(call, (text, page) =>
    findLabelsByWords(call.ctx.db, repository.id, text.toWellFormed().replaceAll("\0", "\ufffd"), page),
  );
  return results(call, found, total);
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
  return new Kind(422, "Validation Failed", { errors, documentationUrl: SEARCH_DOCS });
}

async function results(call: Call, documents: StoredDocument[], total: number): Promise<Answer> {
  const { page, limit } = askedPage(call.query);
  const last = Math.ceil(Math.min(total, MAX_RESULTS) / limit);
  const link = numberedLink(call.api + call.path, call.query, { page, last });
  const items = (await showEach(call, documents)).map((text) => `${text.slice(0, -1)},"score":1.0}`);
  const frame = { before: `{"total_count":${total},"incomplete_results":false,"items":[`, between: ",", behind: "]}" };
  return ok(await joined(items, frame, call.ctx.mirror.pace), { link, isUncached: true });
}
