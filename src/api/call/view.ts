import { type Fields, isObject, type Json, objectOf, parseExactly, parseStored } from "../../json.ts";
import { PLACEHOLDER } from "../../kinds/contract/placeholders.ts";
import { isPublicKey, withoutReader } from "../../mirror/documents/documents.ts";
import { sees } from "../../mirror/read/repositories.ts";
import { rowNamed } from "../../mirror/render/left-out.ts";
import { type Audience, renderDocuments, renderList, type StoredDocument } from "../../mirror/render/rendering.ts";
import { accessLevelOf, hasMirrorsRights, permissionsOf } from "../callers/permissions.ts";
import { type Frame, joined } from "../dialect/elements.ts";
import { withNextIds } from "../dialect/node-id.ts";
import type { ApiContext, Call } from "./call.ts";

export type Viewer = { ctx: Pick<ApiContext, "mirror"> } & Pick<Call, "api" | "version" | "caller" | "access"> &
  Partial<Pick<Call, "met" | "embedded" | "reading" | "publicRights" | "hasNextIds">>;

/**
 * Stored documents as JSON texts, in order, as this caller sees them in the version they asked for. Null: the document
 * cannot be shown, and its list leaves it out.
 */
export async function showEach(call: Viewer, documents: StoredDocument[]): Promise<(string | null)[]> {
  const shown = await withoutHiddenAddresses(call, documents);
  const texts = await renderDocuments(call.ctx.mirror.shared, shown, audienceOf(call));
  const { pace } = call.ctx.mirror;
  const restricted: (string | null)[] = [];
  for (const [at, text] of texts.entries()) {
    if (pace.isOver()) await pace.turn();
    const name = () => rowNamed(documents[at] ?? { repositoryId: 0, document: "" });
    const restrictOne = (whole: string) =>
      call.ctx.mirror.leftOut.unless(name, () => restrict(whole, call, mayHoldRepository(documents[at])));
    const one = text === null ? null : restrictOne(text);
    restricted.push(one !== null && call.hasNextIds ? withNextIds(one, documents[at]?.repositoryId ?? 0) : one);
  }
  return restricted;
}

/** The same without those that cannot be shown. */
export async function showAll(call: Viewer, documents: StoredDocument[]): Promise<string[]> {
  return (await showEach(call, documents)).filter((text) => text !== null);
}

export async function showOne(call: Viewer, document: StoredDocument): Promise<string> {
  const [text] = await showEach(call, [document]);
  if (text != null) return text;
  throw new Error("The row cannot be shown; the log names it");
}

/** The same, parsed. */
export async function showFields(call: Viewer, document: StoredDocument): Promise<Fields> {
  return objectOf(JSON.parse(await showOne(call, document)));
}

/** A JSON list of them. Say so where none of them is a repository itself. */
export async function showList(
  call: Viewer,
  documents: StoredDocument[],
  { areRepositories = documents.some(isRepository) }: { areRepositories?: boolean } = {},
): Promise<Buffer> {
  const list =
    isWholeToAll(call) && !areRepositories && !call.hasNextIds
      ? await renderList(call.ctx.mirror.shared, await withoutHiddenAddresses(call, documents), audienceOf(call))
      : null;
  return list ?? joined(await showAll(call, documents), LIST_FRAME, call.ctx.mirror.pace);
}

const LIST_FRAME: Frame = { before: "[", between: ",", behind: "]" };

function audienceOf({ ctx, api, met, embedded, reading, caller, publicRights }: Viewer): Audience {
  const accessLevel = (repositoryId: number) => accessLevelOf(caller, repositoryId, publicRights);
  return { api, met, embedded, reading, pace: ctx.mirror.pace, accessLevel };
}

/** Whether the version shows resources other than repositories whole. */
function isWholeToAll({ version }: Pick<Call, "version">): boolean {
  return version === "2022-11-28";
}

/**
 * Whether the document is a repository or may contain one. The stored text is searched, since it is shorter than the
 * shown one.
 */
function mayHoldRepository(one: StoredDocument | undefined): boolean {
  return !one || one.document.includes("\\u0005r") || isRepository(one);
}

function isRepository({ document }: StoredDocument): boolean {
  return document.includes('"full_name":');
}

/**
 * A key as it stands in JSON text. Inside a string its quotes would be escaped, so nothing that people wrote matches.
 */
const UPSTREAMS_OWN = '"permissions":';
const PRIVATE = /"private":true/;

/** Takes out what the version or the caller does not get. Pure; the usual text is answered as it is, unparsed. */
function restrict(text: string, to: To, holdsRepository: boolean): string {
  if (isWholeToAll(to) && !holdsRepository) return text;
  const hasToken = text.includes('"temp_clone_token":');
  const hasForeign = !hasMirrorsRights(to.caller) && text.includes(UPSTREAMS_OWN);
  const hasHidden = to.access.metadata !== "all" && PRIVATE.test(text);
  if (isWholeToAll(to) && !hasForeign && !hasHidden && !hasToken) return text;
  return JSON.stringify(restrictValue(parseExactly(text), to, true));
}

/**
 * A document of upstream's own, which the mirror's credential read below a repository, as this caller may see it. Code
 * has keys of its own, so here only what is known to be said of the reader is left out. Pure.
 */
export function restrictRead(text: string, to: To, repositoryId: number): string {
  const accessLevel = accessLevelOf(to.caller, repositoryId);
  return restrict(accessLevel === "mirror" ? text : withoutReader(text, accessLevel), to, true);
}

type To = Pick<Call, "version" | "caller" | "access"> & Partial<Pick<Call, "publicRights">>;

// GitHub's OpenAPI, x-github-breaking-changes of 2026-03-10.
const DROPPED_FROM_REPOSITORIES: readonly string[] = [
  "has_downloads",
  "use_squash_pr_title_as_default",
  "master_branch",
];
const DROPPED_FROM_PULLS: readonly string[] = ["assignee", "merge_commit_sha"];

/** GitHub docs, "Get a repository": this takes admin permissions; who may push is shown the rest. */
const SHOWN_TO_ADMINS = "security_and_analysis";

const ORIGINS: readonly string[] = ["parent", "source", "template_repository"];

/** Whether this object of a document is a whole repository. */
function isRepositoryIn(value: Fields): boolean {
  return typeof value.full_name === "string" && "owner" in value;
}

function restrictValue(value: Json, to: To, isWhole: boolean): Json {
  if (Array.isArray(value)) return value.map((element) => restrictValue(element, to, false));
  if (!isObject(value)) return value;
  const isRepository = isRepositoryIn(value);
  // A fork that the caller may not see is shown as a deleted one.
  const one = { id: Number(value.id), isPrivate: value.private === true };
  if (isRepository && !isWhole && !sees(to.access, one, "metadata")) return null;
  const isPull = "head" in value && "base" in value;
  const dropped = new Set<string>();
  if (to.version === "2026-03-10") {
    if (isRepository) for (const key of DROPPED_FROM_REPOSITORIES) dropped.add(key);
    if (isPull) for (const key of DROPPED_FROM_PULLS) dropped.add(key);
    if ("assignees" in value) dropped.add("assignee");
  }
  const mirrors = isObject(value.permissions) ? value.permissions : null;
  const permissions = isRepository ? permissionsOf(to.caller, Number(value.id), mirrors, to.publicRights) : null;
  if (isRepository && !permissions) dropped.add("permissions");
  if (isRepository && permissions?.admin !== true) dropped.add(SHOWN_TO_ADMINS);
  const shown: Fields = {};
  for (const [key, inner] of Object.entries(value)) {
    if (dropped.has(key)) continue;
    if (isRepository && key === "permissions") {
      shown[key] = { ...permissions };
      continue;
    }
    const kept = restrictValue(inner, to, false);
    // The keys of a fork's origin are there only where that can be seen.
    if (kept === null && inner !== null && ORIGINS.includes(key)) continue;
    // This token gives access to upstream itself, so only upstream may show it.
    shown[key] = key === "temp_clone_token" && isRepository && inner !== null ? "" : kept;
  }
  return shown;
}

/** As a stored document has the address of a repository other than its own. */
const ELSEWHERE = '"\\u0002/repos/';
const NAMES = /"\\u0002\/repos\/([^/"{?#]+\/[^/"{?#]+)/g;
/** Addresses at the top that everybody sees and that may name another repository, beside those that are not known yet. */
const NAMING: ReadonlySet<string> = new Set(["parent_issue_url", "commit_url"]);

type Looking = Pick<Call, "caller" | "access"> & Partial<Pick<Call, "met">> & { ctx: { mirror: Mirror } };
type Mirror = Pick<Call["ctx"]["mirror"], "repositories">;

/**
 * Documents without what names a repository that the caller does not see: the credential that read them for the mirror
 * saw it. Where it cannot be seen the key is left out, as where there is no parent; an object is null, and a list lacks
 * the element.
 */
async function withoutHiddenAddresses(call: Looking, documents: StoredDocument[]): Promise<StoredDocument[]> {
  if (hasMirrorsRights(call.caller) || !documents.some(namesAnother)) return documents;
  return await Promise.all(
    documents.map(async (one) =>
      namesAnother(one) ? { ...one, document: await withoutHiddenNames(call, one.document) } : one,
    ),
  );
}

function namesAnother({ document }: StoredDocument): boolean {
  return document.includes(ELSEWHERE);
}

async function withoutHiddenNames(call: Looking, document: string): Promise<string> {
  const fields = Object.entries(parseStored<Fields>(document));
  const judged = fields.filter(([key, value]) => typeof value !== "string" || NAMING.has(key) || !isPublicKey(key));
  const text = JSON.stringify(judged);
  const hidden = new Set<string>();
  for (const name of new Set([...text.matchAll(NAMES)].map(([, one = ""]) => one))) {
    const repository = await call.ctx.mirror.repositories.named(name, call.access);
    // A kept answer ends once they are hidden.
    if (repository) call.met?.add(repository.id);
    else hidden.add(name);
  }
  if (hidden.size === 0) return document;
  const kept = new Map(fields);
  for (const [key, value] of judged) {
    const shown = withoutHidden(value, hidden);
    if (shown !== undefined) kept.set(key, shown);
    else if (isPublicKey(key) && typeof value !== "string") kept.set(key, null);
    else kept.delete(key);
  }
  return JSON.stringify(Object.fromEntries(kept));
}

/** The repository that an address below another one names; empty: this is none. Pure. */
function namedIn(address: string): string {
  const [api = "", repos, ...name] = address.split(/[/{?#]/, 4);
  return api.charCodeAt(0) === PLACEHOLDER.api && repos === "repos" ? name.join("/") : "";
}

/** The value without elements of lists that name a hidden repository. Undefined: the value names one itself. Pure. */
function withoutHidden(value: Json, hidden: ReadonlySet<string>): Json | undefined {
  if (typeof value === "string") return hidden.has(namedIn(value)) ? undefined : value;
  if (Array.isArray(value)) return value.map((one) => withoutHidden(one, hidden)).filter((one) => one !== undefined);
  // Whether a whole repository is shown is judged by itself: see `restrictValue`.
  if (!isObject(value) || isRepositoryIn(value)) return value;
  const kept: Fields = {};
  for (const [key, inner] of Object.entries(value)) {
    const shown = withoutHidden(inner, hidden);
    if (shown === undefined) return undefined;
    kept[key] = shown;
  }
  return kept;
}
