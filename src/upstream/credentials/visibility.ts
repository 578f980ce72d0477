import { LRUCache } from "lru-cache";
import type { Clock } from "../../../db/database.ts";
import { mostEntries } from "../../work/bounded.ts";

/** How long it is believed whether a credential sees a repository. Rights change rarely, and without notice. */
const BELIEF_MS = 3_600_000;

/**
 * Which credentials see which repositories. Upstream's 404 means either "not for this token" or "does not exist". With
 * several tokens, only a token that is known to see the repository can prove that something in it is missing.
 */
export class Visibility {
  readonly #seen: LRUCache<string, boolean>;

  constructor(clock: Clock) {
    const perf = { now: () => clock.now().getTime() };
    this.#seen = new LRUCache({ ...mostEntries(50_000), ttl: BELIEF_MS, perf });
  }

  /** Notes whether an answer shows the repository to the credential. */
  note(path: string, credential: string, sees: boolean): void {
    const repository = repositoryPathIn(path);
    if (repository !== null) this.#seen.set(`${credential} ${repository}`, sees);
  }

  sees(path: string, credential: string): boolean {
    return this.#seen.get(`${credential} ${repositoryPathIn(path)}`) === true;
  }

  /** The credentials to ask: those that see the repository or may see it; all when none is left. */
  mayBeAsked(path: string, credentials: readonly string[]): readonly string[] {
    const rest = credentials.filter(
      (credential) => this.#seen.get(`${credential} ${repositoryPathIn(path)}`) !== false,
    );
    return rest.length > 0 ? rest : credentials;
  }
}

/** `/repositories/7/issues` → `/repositories/7`; null when the path is in no repository. Pure. */
export function repositoryPathIn(path: string): string | null {
  return /^\/(?:repositories\/\d+|repos\/[^/?]+\/[^/?]+)(?=[/?]|$)/.exec(path)?.[0].toLowerCase() ?? null;
}
