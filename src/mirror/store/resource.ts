import { hash } from "node:crypto";
import type { ResourceKind } from "../../../db/schema/states.ts";
import type { Table } from "../../../db/schema/table.ts";
import * as tables from "../../../db/schema/tables.ts";
import { type Fields, type Json, largeNumber, numberOf, objectOf, textOf } from "../../json.ts";
import { botLogin, withLogin } from "../bots.ts";
import { isPlaceholder, referenceId, type SharedKind } from "../documents.ts";

export type Kind = ResourceKind;

/** `key`: upstream's id, or the number of an issue or pull request. `repositoryId`: 0 outside repositories. */
export interface ResourceKey {
  kind: Kind;
  repositoryId: number;
  key: number;
}

/** How a kind of resource lies in its table. */
export interface Resource {
  kind: Kind;
  table: Table;
  /** The last column of the primary key. In tables with a `repository_id`, that column comes first. */
  keyColumn: "id" | "number";
  /** The columns whose values are not simply the stripped field of the same name. */
  columns: (fields: Fields) => Record<string, Json>;
  /** Keys that upstream sends only for a single resource; they are stored in the column `detail`. */
  detailKeys: ReadonlySet<string>;
  /** Whether the table has a column `body` for that text. */
  hasBody: boolean;
  /** Whether `updated_at` can order two observations of this kind. Embedded users and labels have no `updated_at`. */
  isVersioned: boolean;
  /** Orders two observations where upstream sends no `updated_at`; stored in the column `progress`. */
  progressOf?: (fields: Fields) => number;
}

const NO_KEYS: ReadonlySet<string> = new Set();

function resource(kind: Kind, table: Table, own: Partial<Resource> = {}): Resource {
  const hasBody = "body" in table.columns;
  return { kind, table, keyColumn: "id", columns: () => ({}), detailKeys: NO_KEYS, hasBody, isVersioned: true, ...own };
}

/**
 * In the order of writing: every transaction takes its locks in this order. Rows that transactions about different
 * issues share come last, so these locks are short: nearly every delivery changes its repository.
 */
const RESOURCES: Readonly<Record<Kind, Resource>> = {
  issue: resource("issue", tables.issues, {
    keyColumn: "number",
    columns: (fields) => ({
      state: stateOf(fields),
      is_pull_request: isPullRequest(fields),
      user_id: referenceId(fields.user),
      milestone_id: referenceId(fields.milestone),
      closed_by_id: referenceId(fields.closed_by),
    }),
  }),
  pull_request: resource("pull_request", tables.pullRequests, {
    keyColumn: "number",
    columns: (fields) => {
      const [head, base] = [objectOf(fields.head), objectOf(fields.base)];
      return {
        state: stateOf(fields),
        merged: fields.merged ?? (fields.merged_at === undefined ? null : fields.merged_at !== null),
        user_id: referenceId(fields.user),
        milestone_id: referenceId(fields.milestone),
        merged_by_id: referenceId(fields.merged_by),
        head_label: head.label ?? null,
        head_ref: head.ref ?? null,
        head_sha: head.sha ?? null,
        head_repository_id: referenceId(head.repo),
        base_ref: base.ref ?? null,
        base_sha: base.sha ?? null,
      };
    },
    // The keys of pull-request that pull-request-simple lacks, in GitHub's OpenAPI description.
    detailKeys: new Set([
      "merged",
      "mergeable",
      "rebaseable",
      "mergeable_state",
      "merged_by",
      "comments",
      "review_comments",
      "maintainer_can_modify",
      "commits",
      "additions",
      "deletions",
      "changed_files",
    ]),
  }),
  issue_comment: resource("issue_comment", tables.issueComments, {
    columns: ({ issue_url, user }) => ({ issue_number: numberInAddress(issue_url), user_id: referenceId(user) }),
  }),
  review: resource("review", tables.pullRequestReviews, {
    columns: ({ pull_request_url, user }) => ({
      pull_number: numberInAddress(pull_request_url),
      user_id: referenceId(user),
    }),
    // REST sends no updated_at of a review; webhooks and GraphQL do.
    detailKeys: new Set(["updated_at"]),
    isVersioned: false,
  }),
  review_comment: resource("review_comment", tables.pullRequestReviewComments, {
    columns: (fields) => ({
      review_id: fields.pull_request_review_id ?? null,
      pull_number: numberInAddress(fields.pull_request_url),
      user_id: referenceId(fields.user),
    }),
  }),
  check_run: resource("check_run", tables.checkRuns, {
    columns: ({ check_suite, app }) => ({ check_suite_id: idOf(check_suite), app_id: idOf(app) }),
    isVersioned: false,
    progressOf: progressOfRun,
  }),
  check_suite: resource("check_suite", tables.checkSuites, { columns: ({ app }) => ({ app_id: idOf(app) }) }),
  status: resource("status", tables.commitStatuses, {
    columns: ({ url, creator }) => ({ sha: shaInAddress(url), creator_id: referenceId(creator) }),
  }),
  release: resource("release", tables.releases, {
    columns: ({ author, draft }) => ({ author_id: referenceId(author), draft: draft === true }),
  }),
  user: resource("user", tables.users, { isVersioned: false }),
  label: resource("label", tables.labels, { isVersioned: false }),
  milestone: resource("milestone", tables.milestones, {
    columns: ({ creator }) => ({ creator_id: referenceId(creator) }),
  }),
  repository: resource("repository", tables.repositories, {
    columns: ({ owner }) => ({ owner_id: referenceId(owner) }),
    // GitHub sends these for GET /repos/{owner}/{repo} only (its OpenAPI: full-repository less repository).
    detailKeys: new Set([
      "subscribers_count",
      "network_count",
      "organization",
      "parent",
      "source",
      "template_repository",
      "temp_clone_token",
      "security_and_analysis",
      "code_of_conduct",
      "allow_squash_merge",
      "allow_merge_commit",
      "allow_rebase_merge",
      "allow_auto_merge",
      "delete_branch_on_merge",
      "allow_update_branch",
      "use_squash_pr_title_as_default",
      "squash_merge_commit_title",
      "squash_merge_commit_message",
      "merge_commit_title",
      "merge_commit_message",
      "anonymous_access_enabled",
      "master_branch",
    ]),
  }),
};
export const resources: readonly Resource[] = Object.values(RESOURCES);

export function resourceOf(kind: Kind): Resource {
  return RESOURCES[kind];
}

/** Some webhooks leave out the state, which then follows from `closed_at`. */
function stateOf(fields: Fields): Json {
  return fields.state ?? (fields.closed_at ? "closed" : "open");
}

/** Answers from before 2014 give every issue a `pull_request`, with nulls inside. */
export function isPullRequest(fields: Fields): boolean {
  return (
    typeof objectOf(fields.pull_request).url === "string" || typeof objectOf(fields.pull_request).html_url === "string"
  );
}

function idOf(value: Json | undefined): number | null {
  return numberOf(objectOf(value).id);
}

/**
 * The steps of a check run. It never goes back: a rerun is a run of its own. Others (waiting, requested) come before
 * the last two.
 */
const RUN_STEPS: readonly string[] = ["in_progress", "completed"];
/** More than any time in milliseconds, so that a later step always outweighs a later time. */
const STEP = 1e14;

/** An App may report that a run ended before it began, so times are compared only within a step. Pure. */
function progressOfRun({ status, started_at, completed_at }: Fields): number {
  const step = RUN_STEPS.indexOf(String(status)) + 1;
  const since = Date.parse(String(step === RUN_STEPS.length ? completed_at : started_at));
  return step * STEP + (Number.isNaN(since) ? 0 : since);
}

/** `…/statuses/6dcb09b` → `6dcb09b`: upstream names the commit of a status by address alone. */
function shaInAddress(address: Json | undefined): string | null {
  return (typeof address === "string" && /\/statuses\/([0-9a-f]+)$/.exec(address)?.[1]) || null;
}

/** `…/issues/5` → 5: upstream names the parent of a comment or review by address alone. */
export function numberInAddress(address: Json | undefined): number | null {
  const match = typeof address === "string" ? /\/(\d+)$/.exec(address) : null;
  return match ? Number(match[1]) : null;
}

// The template of a resource's document.

/** A resource found inside another. `fields` are stripped already. */
export interface SharedResource {
  kind: SharedKind;
  id: number;
  fields: Fields;
  /** It is a bot under a login that may be another than its App's, which nothing here shows. */
  isNamedElsewhere?: boolean;
}

/** The addresses that are cut out of a document. `fullName` and `htmlUrl` are those of the document's repository. */
export interface DocumentHome {
  /** Upstream's REST address without a trailing slash. */
  api: string;
  fullName?: string | undefined;
  htmlUrl?: string | undefined;
}

export interface Stripped {
  fields: Fields;
  shared: SharedResource[];
  /** The shapes that the fields refer to: id → keys joined by commas. */
  shapes: Map<string, string>;
}

/**
 * The ids of the shapes that were met in documents, by their keys. Documents that are read together share them: they
 * repeat a few shapes, and to make an id takes longer than to find it.
 */
export type ShapeIds = Map<string, string>;

/**
 * Makes a template of a resource: cuts out everything that is stored elsewhere (`PLACEHOLDER`). Pure. `takeApart` is the
 * first step of the way back.
 */
export function strip(resource: Fields, home: DocumentHome, shapeIds: ShapeIds = new Map()): Stripped {
  const shared: SharedResource[] = [];
  const shapes = new Map<string, string>();

  const stripObject = (object: Fields, at: Addresses): Fields => {
    const fields: Fields = {};
    for (const key of Object.keys(object)) {
      const value = object[key];
      if (value !== undefined) fields[key] = stripValue(value, key, at);
    }
    return fields;
  };
  const stripValue = (value: Json, key: string, at: Addresses): Json => {
    if (typeof value === "string") return isAddressKey(key) ? stripAddress(value, at) : escapePlaceholder(value);
    if (value === null || typeof value !== "object") return value;
    const digits = largeNumber(value);
    if (digits !== null) return `\u0007${digits}`;
    if (Array.isArray(value)) return value.map((element) => stripValue(element, key, at));
    const { id } = value;
    const kind = sharedKind(value, key);
    if (typeof id !== "number" || kind === null) return stripObject(value, at);
    const stripped = stripObject(value, kind === "r" ? repositoryAddresses(value, at.api) : at);
    const isBot = kind === "u" && value.type === "Bot";
    const login = isBot ? botLogin(value) : null;
    shared.push({
      kind,
      id,
      fields: login === null ? stripped : withLogin(stripped, login),
      isNamedElsewhere: isBot && login === null,
    });
    const keys = Object.keys(value).join(",");
    const shape = shapeIds.getOrInsertComputed(keys, shapeIdOf);
    shapes.set(shape, keys);
    const place = isBot && login !== value.login ? `:${encodeURIComponent(String(value.login))}` : "";
    return `\u0005${kind}${id}:${shape}${place}`;
  };

  const fields = stripObject(resource, addressesOf(home));
  return { fields, shared, shapes };
}

/** The beginnings of addresses in a document. */
interface Addresses {
  api: string;
  repository: string | null;
  page: string | null;
}

function addressesOf({ api, fullName, htmlUrl }: DocumentHome): Addresses {
  return { api, repository: fullName === undefined ? null : `${api}/repos/${fullName}`, page: htmlUrl ?? null };
}

/** A repository's own document keeps the address of its page: the addresses of its resources are made of it. */
function repositoryAddresses(repository: Fields, api: string): Addresses {
  return addressesOf({ api, fullName: textOf(repository.full_name) ?? undefined });
}

/**
 * Only these keys hold upstream's addresses. A `body` that begins with such an address is a person's text, and stays as
 * it is.
 */
function isAddressKey(key: string): boolean {
  return key === "url" || key === "href" || key.endsWith("_url");
}

function stripAddress(text: string, { api, repository, page }: Addresses): string {
  if (repository !== null) {
    const rest = after(text, repository);
    if (rest !== null) return `\u0001${rest}`;
  }
  const rest = after(text, api);
  if (rest !== null) return `\u0002${rest}`;
  if (page !== null) {
    const below = after(text, page);
    if (below !== null) return `\u0003${below}`;
  }
  return escapePlaceholder(text);
}

function escapePlaceholder(text: string): string {
  return isPlaceholder(text) ? `\u0006${text}` : text;
}

/** The rest of an address after `prefix`. Null if the address begins otherwise. */
function after(text: string, prefix: string): string | null {
  if (!text.startsWith(prefix)) return null;
  const rest = text.slice(prefix.length);
  return rest === "" || "/{?#".includes(rest.charAt(0)) ? rest : null;
}

/**
 * Upstream has no type names in its JSON, so a shared resource is known by the keys that only its kind has.
 * One without an id (answers from before 2017), or without what its row must have, stays where it is.
 */
function sharedKind(value: Fields, key: string): SharedKind | null {
  if (typeof value.login === "string" && typeof value.type === "string" && "followers_url" in value) return "u";
  if (
    typeof value.full_name === "string" &&
    typeof value.name === "string" &&
    value.owner !== undefined &&
    "issues_url" in value
  )
    return "r";
  if ((key === "labels" || key === "label") && typeof value.name === "string" && "color" in value) return "l";
  const isTitled = typeof value.title === "string" && typeof value.state === "string";
  if (key === "milestone" && typeof value.number === "number" && isTitled && "labels_url" in value) return "m";
  return null;
}

function shapeIdOf(keys: string): string {
  return hash("sha256", keys).slice(0, 8);
}
