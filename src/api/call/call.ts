import type { LRUCache } from "lru-cache";
import type { Context } from "../../context.ts";
import type { Freshness, Reply, RequestHeaders } from "../../http/reply.ts";
import { isRead } from "../../http/reply.ts";
import type { Right } from "../../kinds/contract/rights.ts";
import type { AccessScope, ShownRepository } from "../../mirror/read/repositories.ts";
import type { MirrorReader } from "../../mirror/reader.ts";
import type { Reading } from "../../mirror/unchanged/unchanged.ts";
import type { Caller } from "../callers/permissions.ts";
import type { CallerQuota } from "../callers/quota.ts";
import type { UpstreamForCallers } from "../callers/upstream-for-callers.ts";
import type { RepositoryPermission } from "../callers/upstream-rights.ts";
import type { ApiVersion, MediaType } from "../dialect/protocol.ts";
import type { ForwardCache } from "../forward/cache/cache.ts";
import type { KeptBody } from "./kept-bodies.ts";
import type { Searches } from "./searches.ts";

export interface ApiContext
  extends Pick<Context, "config" | "db" | "redis" | "queues" | "clock" | "random" | "log" | "metrics" | "tracing"> {
  mirror: MirrorReader;
  /** Upstream's answers to forwarded reads; null: nothing of it is kept. */
  forwarded: ForwardCache | null;
  /** The only way in which requests can spend the mirror's quota at upstream. */
  upstream: UpstreamForCallers;
  /** The paths of accounts that upstream does not show. So nobody can make the mirror ask again and again. */
  unshownAccounts: LRUCache<string, true>;
  /**
   * The database for callers' reads. It has connections of its own, so the receiver and writes never wait for reads.
   */
  readDb: Context["db"];
  /** Where searches and filtered lists run, which must not keep other reads from being answered. */
  searches: Searches;
  /** Aborts when the process is to stop. Requests that run are finished, and wait for nothing any more. */
  stopping: AbortSignal;
}

/** One request, checked, authenticated and paid for. */
export interface Call {
  ctx: ApiContext;
  /** The database for the caller's searches and filtered lists. */
  searchDb: Context["db"];
  quota: CallerQuota;
  caller: Caller;
  /** The part of the mirror that the caller may see. */
  access: AccessScope;
  version: ApiVersion;
  method: string;
  /** The API's address as the caller wrote it, without a trailing slash. */
  api: string;
  /** Below the API's address, with the repository's numeric id for its name, as `Link` shows it. */
  path: string;
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  headers: RequestHeaders;
  /** As it was sent. */
  body: string;
  /** In which form the answer is asked for. */
  media: MediaType;
  /** Whether ids are asked for in their newer form: see `hasNextIds`. */
  hasNextIds: boolean;
  /** The repositories that the answer has shown something of so far; the first is the one that was asked for. */
  met: Set<number>;
  /** When what is embedded in what is shown last changed, in ms; 0: never, as far as the mirror saw. */
  embedded: { changedAt: number };
  /** The versions of repositories that the request has learnt. */
  reading: Reading;
  /** The caller's rights in public repositories that the request has learnt. */
  publicRights: Map<number, RepositoryPermission>;
  /** Whether the caller asked for upstream's present state. */
  isFresh: boolean;
  /** Whether the mirror has only a part of what is asked for: see `Operation`. */
  isPart: boolean;
  /** Fires once the caller has gone away. */
  gone: AbortSignal;
  /** Names this request in error bodies and logs. */
  requestId: string;
}

/**
 * A call below `/repos/{owner}/{repo}` or `/repositories/{id}`: its repository is mirrored and the caller may see it.
 */
export interface RepositoryCall extends Call {
  repository: ShownRepository;
  /** The right that the operation takes. */
  takes: Right;
}

export interface Answer extends Freshness {
  status: number;
  /** JSON, as text or in UTF-8, or other text with `contentType`. Null: none. */
  body: string | Buffer | null;
  contentType?: string;
  headers?: Record<string, string>;
  lastModified?: Date | null;
  link?: string | null;
  /** `confirmedAt` is of what is shown, and not of its repository. */
  isOwnTime?: true;
  /** Has no validators and may not be kept. */
  isUncached?: true;
  /** Where the body is kept; `body` is null then. */
  page?: RenderedPage;
  /** It was kept before this request came. */
  isKept?: true;
  /** Upstream's own answer as it arrives; `body` is null then. It has all its headers. */
  stream?: NonNullable<Reply["stream"]>;
}

export function ok(body: string | Buffer, extra: Omit<Answer, "status" | "body"> = {}): Answer {
  return { status: 200, body, ...extra };
}

/** A redirect: 301 for a read. A write gets 307, so that clients repeat it with the same method. */
export function moved({ method, api, query }: Call, path: string): Answer {
  const location = `${api}${path}${query.size > 0 ? `?${query}` : ""}`;
  const body = JSON.stringify({
    // The service was recorded to say so with both.
    message: "Moved Permanently",
    url: location,
    documentation_url: "https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects",
  });
  return { status: isRead(method) ? 301 : 307, body, headers: { Location: location } };
}

/** A rendered answer of status 200. It may be given again while all that it shows is unchanged. */
export interface RenderedPage extends KeptBody {
  /** Unlike any other page's. */
  id: symbol;
  /** Names it among those that are kept. */
  key: string;
  /** Null: to callers of their class it is the same, whatever upstream permits them. */
  right: PublicRight | null;
  link: string | null;
  lastModified: Date | null;
  /** The repository that was asked for. */
  repositoryId: number;
  /** When upstream confirmed what it shows. Null: as its repository. */
  confirmedAt: Date | null;
  /** Its ETags, by the parts of the request that they cover. */
  tags: Map<string, string>;
}

/** What upstream permits in a public repository to those who are shown a page. */
export interface PublicRight {
  repositoryId: number;
  level: RepositoryPermission;
}
