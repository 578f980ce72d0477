import type { FaultSettings, Faults } from "../faults/faults.ts";
import type { BuildOptions, Builds } from "../live/builds.ts";
import type { Live, LiveOptions } from "../live/live.ts";
import type { Service } from "../rest/call.ts";
import type { Access } from "../world/access.ts";
import type { Repository } from "../world/records.ts";

export interface Simulator extends Service, AsyncDisposable {
  /** `http://127.0.0.1:PORT`, without a slash at the end. */
  readonly url: string;
  readonly htmlUrl: string;
  readonly faults: Faults;
  /**
   * What the service lets a token do in a repository: the rule by which it answers, not a copy of it. Null: no token.
   * Unknown, revoked, expired and suspended tokens have nothing.
   */
  accessOf(token: string | null, repository: Repository): Access;
  /** Replaces all faults: HTTP, webhooks, GraphQL, replica lag. */
  setFaults(settings: FaultSettings): void;
  /** Starts the seeded stream of changes, in place of one that runs. */
  startLive(options: LiveOptions): Live;
  /** Ends it; says how many changes it made. */
  stopLive(): number;
  /** Starts builds that progress by the clock, in place of others; they end with the simulator. */
  startBuilds(options: BuildOptions): Builds;
  /** Ends when no webhook is on its way. */
  quiet(): Promise<void>;
  close(): Promise<void>;
}
