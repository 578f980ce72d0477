import type { Needed } from "../world/permissions.ts";
import type { Association, Reactions, Repository, RepositoryRole, Seconds } from "../world/records.ts";
import type { World } from "../world/world.ts";

export type ApiVersion = "2022-11-28" | "2026-03-10";
export type BodyForm = "raw" | "text" | "html" | "full";
export type Json = Record<string, unknown>;

/** The caller and the place that a view is made for. One per request: it remembers what it has already shown. */
export interface View {
  readonly world: World;
  /** Base of API addresses, without a slash at the end. */
  readonly apiUrl: string;
  /** Base of addresses of pages, without a slash at the end. */
  readonly htmlUrl: string;
  readonly version: ApiVersion;
  readonly bodyForm: BodyForm;
  /** `X-Github-Next-Global-ID: 1`: node ids in the new form only. */
  readonly nextIds: boolean;
  /** The reader's role, where some scopes count only for what is `needed`; undefined for anonymous ones and webhooks. */
  roleOf(repository: Repository, needed?: Needed): RepositoryRole | undefined;
  /** Whether another repository may be shown inside what is read. Webhooks and the control interface show all. */
  sees(repository: Repository): boolean;
  readonly people: Map<number, Json>;
  readonly labels: Map<number, Json>;
  readonly milestones: Map<number, Json>;
  /** By repository and head sha: the open pull requests that checks name. */
  readonly pullsAt: Map<string, readonly Json[]>;
}

export type ViewOptions = Pick<View, "world" | "apiUrl" | "htmlUrl"> & Partial<View>;

export function openView(options: ViewOptions): View {
  return {
    version: "2022-11-28",
    bodyForm: "raw",
    nextIds: false,
    roleOf: () => undefined,
    sees: () => true,
    people: new Map(),
    labels: new Map(),
    milestones: new Map(),
    pullsAt: new Map(),
    ...options,
  };
}

/** `YYYY-MM-DDTHH:MM:SSZ`, the one form of the service's times. */
export function time(seconds: Seconds): string {
  return new Date(seconds * 1_000).toISOString().replace(".000Z", "Z");
}

export function timeOrNull(seconds: Seconds | null): string | null {
  return seconds === null ? null : time(seconds);
}

export function repositoryUrl(view: View, repository: Repository): string {
  return `${view.apiUrl}/repos/${view.world.fullName(repository)}`;
}

export function repositoryPage(view: View, repository: Repository): string {
  return `${view.htmlUrl}/${view.world.fullName(repository)}`;
}

/** `body` and its relatives, by the media type that was asked for. */
export function bodyFields(view: View, body: string | null): Json {
  switch (view.bodyForm) {
    case "raw":
      return { body };
    case "text":
      return { body_text: bodyText(body) };
    case "html":
      return { body_html: bodyHtml(body) };
    case "full":
      return { body_html: bodyHtml(body), body_text: bodyText(body), body };
    default:
      return view.bodyForm satisfies never;
  }
}

// The simulator renders no markdown: paragraphs, escaped. Enough to tell the media types apart.
function bodyHtml(body: string | null): string | null {
  if (body === null) return null;
  const escaped = body.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return escaped
    .split(/\r?\n\r?\n/)
    .map((paragraph) => `<p dir="auto">${paragraph}</p>`)
    .join("\n");
}

function bodyText(body: string | null): string | null {
  return body === null ? null : body.replaceAll(/[*_`#>]/g, "");
}

export function reactions(url: string, counts: Reactions | null): Json {
  const of = counts ?? {};
  return {
    url: `${url}/reactions`,
    total_count: Object.values(of).reduce((sum, count) => sum + count, 0),
    "+1": of["+1"] ?? 0,
    "-1": of["-1"] ?? 0,
    laugh: of.laugh ?? 0,
    hooray: of.hooray ?? 0,
    confused: of.confused ?? 0,
    heart: of.heart ?? 0,
    rocket: of.rocket ?? 0,
    eyes: of.eyes ?? 0,
  };
}

/** What the author is to the repository, unless the row knows better. */
export function association(
  world: World,
  repository: Repository,
  authorId: number | null,
  known: Association | null,
): Association {
  if (known) return known;
  const author = authorId === null ? undefined : world.users.get(authorId);
  if (!author) return "NONE";
  if (author.type === "Mannequin") return "MANNEQUIN";
  if (author.id === repository.ownerId) return "OWNER";
  if (world.user(repository.ownerId).memberIds.includes(author.id)) return "MEMBER";
  if (repository.collaborators.has(author.id)) return "COLLABORATOR";
  return repository.contributorIds.has(author.id) ? "CONTRIBUTOR" : "NONE";
}
