import type { MirrorPart } from "../../config/parts.ts";
import type { Observed, Sighting } from "../../mirror/store/observation.ts";
import type { ToldRef } from "../../mirror/store/refs.ts";
import type { ResourceKey } from "../../mirror/store/resource.ts";
import type { Payload } from "./payload.ts";

export interface RefreshAsk extends ResourceKey {
  /** Only if the mirror knows it as an issue that is no pull request. */
  ifPlainIssue?: boolean;
}

/** An issue in whose summary another one is counted, and the key of that summary. */
export interface Counting {
  fullName: string;
  number: number;
  key: "sub_issues_summary" | "issue_dependencies_summary";
}

export interface BornHead {
  sha: string;
  at: number;
}

/**
 * How an event is read: what it shows, and what upstream has to be asked for because no payload and no list of the next
 * catch-up shows it. `docs/quota.md` has a table of what each event leaves open, and who answers it.
 */
export interface FollowedEvent {
  observe: (payload: Payload, at: Sighting) => Observed[];
  ask?: (payload: Payload) => Omit<RefreshAsk, "repositoryId">[];
  /** It is read only where one of these is mirrored. */
  parts?: readonly MirrorPart[];
  /** Its repository has keys and values that no other representation has: it is not observed. */
  hasOtherRepository?: true;
  /** The branch that it says was moved, such as `refs/heads/main`. */
  movedRef?: (payload: Payload) => string | null;
  /** The commit that a push has just brought; `at`: when, by upstream's clock, in ms. */
  bornHead?: (payload: Payload) => BornHead | null;
  /** The issues that count its subject and are not in the payload. */
  counting?: (payload: Payload) => Counting[];
  /** What it says of a branch or tag. */
  toldRef?: (payload: Payload) => ToldRef | null;
  /** The pull request of whose review threads one has changed. */
  threadsOf?: (payload: Payload) => number | null;
}
