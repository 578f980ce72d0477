import type { MirrorPart } from "../../config/parts.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { Reply } from "../../http/reply.ts";
import type { Params } from "../../http/router.ts";
import type { Right } from "../../kinds/contract/rights.ts";
import type { RepositoryName } from "../../mirror/read/repositories.ts";
import type { Answer, Call, RepositoryCall } from "./call.ts";

/** One operation of the service that we serve. */
export interface Operation {
  method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  /** Whether it counts against the caller's quota. */
  isFree: boolean;
  /** Which quota; `core` unless it says. */
  bucket?: "search";
  /** The operation shows the caller's rights in the repository. */
  showsRights?: true;
  /** The operation shows our own data, not upstream's, and none of its pages is kept. */
  isOurs?: true;
  /** The operation answers JSON also to those who accept a diff or a patch alone. */
  hasNoPatch?: true;
  /** Who is shown the answer is judged by more than their class, so none of its pages is kept. */
  isJudged?: true;
  /**
   * The operation is served only where this part is mirrored; elsewhere the request is forwarded as if it did not
   * exist.
   */
  part?: MirrorPart;
  /**
   * Whether the answer is complete only at upstream, since nothing confines it to mirrored repositories. Callers with a
   * token of upstream's are forwarded. All others get the mirror's part, and are told that it is one.
   */
  isPart?: (call: Call) => boolean | Promise<boolean>;
  /** Below a repository: `run` is given one that the caller may see, and in which they have the right that it takes. */
  run:
    | { of: "service"; with: (call: Call) => Promise<Answer> }
    | { of: "repository"; takes: Right; with: (call: RepositoryCall) => Promise<Answer> };
}

/** What the service publishes of an operation. */
export interface KnownOperation {
  /** Its path below the API's address, by the repository's name, with a star for each value. */
  form: string;
  /** The address of its page. */
  docs: string;
  /** The names of the query parameters that it knows. */
  parameters: ReadonlySet<string>;
}

/** Where a request goes. */
export interface Match {
  route: Operation;
  /** Values of the path, decoded. */
  params: Params;
  /** The repository's name in the path, and the rest of the path as it was sent; null for other operations. */
  repository: (RepositoryName & { rest: string }) | null;
}

/** An operation and its path. Below a repository the path begins behind the repository's name. */
export interface ServedOperation {
  path: string;
  /** The value at its end may have several segments. */
  takesRest?: boolean;
  route: Operation;
}

/** Replies to a request of the REST dialect. @param matched null: we serve no such operation */
export type RestDoor = (exchange: Exchange, matched: (() => Match) | null) => Promise<Reply>;
