import type { Fields, Json } from "../../json.ts";
import type { Doubts } from "./doubts.ts";
import type { Conditional, Opened } from "./opened.ts";

/** What makes a repeated request free: an ETag or a date, for one page and one credential. */
export interface Validator {
  /** Names the credential: upstream's ETags depend on the token. */
  credential: string;
  /** The request's path and query; see `validatorPath`. */
  path: string;
  etag: string | null;
  lastModified: string | null;
  next: string | null;
  isFull: boolean;
  seenAt: Date;
  body: Buffer | null;
  variesBy: string | null;
  usedAt: Date;
  madeFor: string | null;
}

/** The pages that a Link header names, by relation, as paths below the base address. */
export type Links = Partial<Record<"next" | "prev" | "first" | "last", string>>;

/** The classes of requests by who waits for the answer, highest first. */
export const PRIORITIES = ["caller", "refresh", "catch-up", "audit", "backfill"] as const;
export type Priority = (typeof PRIORITIES)[number];

export interface GetOptions {
  priority: Priority;
  /** Ask with the stored validator, if there is one. The answer may then be `unchanged`, which costs nothing. */
  conditional?: boolean;
  /** Ask unconditionally, and still keep a validator for later. */
  anew?: boolean;
  /**
   * The only credential to ask: a token's fingerprint, `installation-ID` or `app`. Unset: one that sees it and has the
   * most left.
   */
  credential?: string;
  /** The repository that the answer is about, where the path names none. */
  repository?: number;
  /** A media type instead of `application/vnd.github+json`. A body that is not JSON is then answered as its text. */
  accept?: string;
  /** The caller for whom the page is read, by the name of their quota. */
  caller?: string;
  /**
   * Whether the answer will be believed, so that an upstream mirror has to be certain of it. Default: true for a
   * refresh.
   */
  isBelieved?: boolean;
  signal?: AbortSignal;
}

export interface UpstreamOptions extends Pick<GetOptions, "priority" | "caller" | "signal"> {
  headers: Record<string, string>;
  conditional?: Conditional;
}

/**
 * `seenAt` is our clock when the request began: what upstream changed before that moment is in the answer.
 * `upstreamNow` is upstream's clock at the answer, in whole seconds. `asOf`: upstream is a mirror itself, and shows at
 * least its own upstream's state of that time. Null: upstream is no mirror.
 */
export type ReadAnswer = AnswerOfSource & {
  /** The resources in the answer that a refresh must not believe; see `isDoubtful`. */
  doubts?: Doubts | undefined;
  /** Upstream is a mirror itself, and its own upstream does not show it these phases: see `sync/reads/phases.ts`. */
  missing?: readonly string[] | undefined;
};

type AnswerOfSource =
  /**
   * `validator`: store it together with the body (`saveValidator`), so that the page can be asked conditionally later.
   */
  | {
      kind: "ok";
      body: Json;
      seenAt: Date;
      upstreamNow: Date;
      asOf: Date | null;
      links: Links;
      lastModified: string | null;
      validator: Validator | null;
    }
  /** Upstream confirms what we stored. `next` is the page that followed it. */
  | { kind: "unchanged"; seenAt: Date; upstreamNow: Date; asOf: Date | null; next: string | null }
  /** `location` is a path if it is below UPSTREAM_URL; null: upstream says "moved", but not where to. */
  | { kind: "moved"; location: string | null }
  /** Deleted, or not visible to our credential. A 404 may mean either; 410 means deleted, and 451 blocked. */
  | { kind: "missing"; status: 404 | 410 | 451; message: string };

/** Upstream's own answer to a write. The body is unpacked, so the headers that described its transport are left out. */
export interface RawAnswer {
  status: number;
  headers: Record<string, string | string[]>;
  body: string;
  seenAt: Date;
}

/** A type alias and not an interface, so that an error is assignable to `Json`. */
export type GraphqlError = {
  /** Upstream's word for it, such as NOT_FOUND or FORBIDDEN; null where it gives none. */
  type: string | null;
  /** Which field of the data could not be resolved and is therefore null. Empty: the document as a whole. */
  path: (string | number)[];
  message: string;
};

export interface GraphqlAnswer {
  /**
   * The part that could be resolved, as it came: `field-readers.ts` reads it. A null whose path stands in `errors` is
   * unknown, and not a fact.
   */
  data: Fields;
  errors: GraphqlError[];
  /** Our clock when the request began. */
  seenAt: Date;
  /** As in `ReadAnswer`. */
  upstreamNow: Date;
  /** As in `ReadAnswer`. */
  asOf: Date | null;
  /** Points, when the document asked for `rateLimit { cost }`. */
  cost: number | null;
  /** As in `ReadAnswer`. */
  doubts?: Doubts | undefined;
}

export interface WriteRequest {
  method: "POST" | "PATCH" | "PUT" | "DELETE";
  path: string;
  body: string | null;
  contentType?: string;
  accept?: string;
  apiVersion?: string;
  /** RFC 7240: a server that does not know the preference ignores it. */
  prefer?: string;
}

export interface Upstream {
  /**
   * One GET. Redirects are not followed: "moved" is an answer. Interrupted connections, 502, 503 and 504 are tried
   * again at most twice, and a credential that is rejected or spent gives way to another.
   * @throws QuotaSpentError, CredentialRejectedError, UpstreamUnavailableError, UpstreamRefusedError
   */
  get(path: string, options: GetOptions): Promise<ReadAnswer>;
  /**
   * One forwarded GET: asked as `get` asks, and answered as upstream answers, while the body of a success
   * arrives. The signal ends the body, too.
   * @throws QuotaSpentError, CredentialRejectedError, UpstreamUnavailableError
   */
  open(path: string, options: UpstreamOptions): Promise<Opened>;
  /**
   * One GraphQL document. It should select `RATE_LIMIT`, which corrects the budget. Fields that could not be resolved
   * are in `errors`: look there before taking a null for a fact.
   * @throws GraphqlTooHeavyError, QuotaSpentError, CredentialRejectedError, UpstreamUnavailableError,
   *   UpstreamRefusedError
   */
  graphql(document: string, variables: object, options: GraphqlOptions): Promise<GraphqlAnswer>;
  /**
   * Sends a write once and never again. Answers upstream's own status, headers and body, whatever they are.
   * @throws QuotaSpentError, CredentialRejectedError: nothing was sent
   * @throws UpstreamUnavailableError: nothing was done if its outage is `unreachable`; otherwise the outcome is unknown
   */
  write(request: WriteRequest, options?: { signal?: AbortSignal }): Promise<RawAnswer>;
  /**
   * Splits repositories so that a credential that sees one of a group sees all of it. One GraphQL document may then ask
   * for the whole group, by the id of any of its members (`GraphqlOptions.repository`). Without an App there is one
   * group.
   */
  groups(repositoryIds: readonly number[]): Promise<number[][]>;
  /** Call it when the App's installations or the tokens' owners have changed in Postgres. */
  credentialsChanged(): void;
  /** Lets a rejected credential be tried again at once, since it may be accepted now. */
  tryAgain(credential: string): Promise<void>;
  /** Lets requests under way finish. */
  close(): Promise<void>;
}

export interface GraphqlOptions {
  priority: Priority;
  /** The id of the document's repository: a credential that sees this repository is asked. */
  repository?: number;
  signal?: AbortSignal;
  /** As in `GetOptions`. */
  isBelieved?: boolean;
  /** Called with each answer as it arrived, even if it then becomes an error. */
  onAnswer?: (answer: { status: number; headers: Record<string, string | string[] | undefined> }) => void;
}
