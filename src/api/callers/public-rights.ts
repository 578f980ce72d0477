import { LRUCache } from "lru-cache";
import type { Context } from "../../context.ts";
import type { UpstreamAsCaller } from "../../upstream/client/as-caller.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import { waitAfterMs } from "../../waits/backoff.ts";
import { RETRIES } from "../../waits/retries.ts";
import { Gather } from "../../work/gather.ts";
import { ApiFault } from "../dialect/fault.ts";
import {
  ASKED_AT_ONCE,
  type AskedRepository,
  askPermissions,
  CallerLimitedFault,
  type RepositoryPermission,
} from "./upstream-rights.ts";

/** How many repositories are remembered for all callers together: some 20 MB. */
const REMEMBERED_REPOSITORIES = 200_000;

/** A token as its caller shows it, and the hash by which it is remembered. */
export interface ShownToken {
  text: string;
  hash: string;
}

interface RightsQuestion {
  token: string;
  repository: AskedRepository;
}

/** What is remembered of one token. */
interface RememberedRights {
  /** Null: upstream does not show the repository to the token. */
  levels: Map<number, AskedRepository & { level: RepositoryPermission | null }>;
  /** When upstream was asked about the first of them. */
  askedAt: number;
  /** Upstream could not be asked, and is not asked again before then. */
  askAgainAt: number;
  /** Whether the last question met an outage, and not the token's own limit or a refusal: a former answer counts. */
  isOutage: boolean;
  gathered: Gather<RightsQuestion, RepositoryPermission | null>;
}

type PublicRightsParts = Pick<Context, "config" | "clock" | "random" | "log"> & {
  upstream: Pick<UpstreamAsCaller["identity"], "graphql">;
};

/**
 * Callers' rights in public repositories, by upstream's word. They do not change what callers see, so upstream is asked
 * only where an answer shows them, with the caller's token. Its word is believed for `UPSTREAM_CALLER_TTL`. Rights that
 * a caller was told before are refreshed together. Tokens are remembered by their hash, in this process alone.
 */
export class PublicRights {
  readonly #parts: PublicRightsParts;
  readonly #graceMs: number;
  readonly #known = new LRUCache<string, RememberedRights>({
    maxSize: REMEMBERED_REPOSITORIES,
    sizeCalculation: ({ levels }) => levels.size + 1,
  });

  /** @param times how long a former answer counts while upstream cannot be asked, and when it is asked again */
  constructor(parts: PublicRightsParts, { graceMs }: { graceMs: number }) {
    this.#parts = parts;
    this.#graceMs = graceMs;
  }

  /**
   * Upstream's recent answer about the token with this hash. Null: there is none, or upstream does not show the
   * repository.
   */
  recall(hash: string, repositoryId: number): RepositoryPermission | null {
    const known = this.#known.get(hash);
    return known && this.#isRecent(known) ? (known.levels.get(repositoryId)?.level ?? null) : null;
  }

  /**
   * The token's rights in these repositories. A repository is absent if upstream has said nothing, or cannot be asked.
   */
  async find(
    { text: token, hash }: ShownToken,
    repositories: readonly AskedRepository[],
  ): Promise<ReadonlyMap<number, RepositoryPermission>> {
    const known = this.#known.get(hash) ?? this.#remember(hash);
    const levels = await Promise.all(
      repositories.map(
        ({ id, nodeId }) => this.recall(hash, id) ?? known.gathered.ask({ token, repository: { id, nodeId } }),
      ),
    );
    const found = new Map<number, RepositoryPermission>();
    for (const [at, { id }] of repositories.entries()) {
      const level = levels[at];
      if (level) found.set(id, level);
    }
    return found;
  }

  #remember(hash: string): RememberedRights {
    const one: RememberedRights = {
      levels: new Map(),
      askedAt: Number.NEGATIVE_INFINITY,
      askAgainAt: 0,
      isOutage: false,
      gathered: new Gather((questions) => this.#answer(hash, one, questions), {
        most: ASKED_AT_ONCE,
        patienceMs: null,
      }),
    };
    this.#known.set(hash, one);
    return one;
  }

  async #answer(
    hash: string,
    one: RememberedRights,
    questions: readonly RightsQuestion[],
  ): Promise<(RepositoryPermission | null)[]> {
    const now = this.#parts.clock.now().getTime();
    const isRecent = this.#isRecent(one);
    const asked = new Map(questions.map(({ repository }) => [repository.id, repository]));
    if (isRecent) for (const id of asked.keys()) if (one.levels.has(id)) asked.delete(id);
    const [first] = questions;
    if (first && asked.size > 0 && now >= one.askAgainAt) {
      if (!isRecent) withLatest(asked, one.levels);
      try {
        const levels = await askPermissions(this.#parts, first.token, [...asked.values()]);
        if (!isRecent) [one.levels, one.askedAt] = [new Map(), now];
        // The repositories just asked for come last. The cache has to work the size out anew.
        for (const [id, repository] of [...asked].reverse())
          one.levels.set(id, { ...repository, level: levels.get(id) ?? null });
        this.#known.set(hash, one);
      } catch (error) {
        one.isOutage = error instanceof UpstreamUnavailableError;
        if (!one.isOutage && !(error instanceof ApiFault)) throw error;
        const waitMs = waitAfterMs(1, RETRIES.callerAtUpstream, this.#parts.random);
        one.askAgainAt = error instanceof CallerLimitedFault ? error.until.getTime() : now + waitMs;
        this.#parts.log.warn({ err: error }, "Upstream cannot be asked what a caller may do in public repositories");
      }
    }
    const believedMs = one.isOutage ? this.#graceMs : 0;
    const isBelieved = now - one.askedAt < Math.max(believedMs, this.#parts.config.upstreamCallerTtlMs);
    return questions.map(({ repository: { id } }) => (isBelieved ? (one.levels.get(id)?.level ?? null) : null));
  }

  #isRecent({ askedAt }: RememberedRights): boolean {
    return this.#parts.clock.now().getTime() - askedAt < this.#parts.config.upstreamCallerTtlMs;
  }
}

/** Adds the repositories that the caller was shown last, as many as one question holds. */
function withLatest(asked: Map<number, AskedRepository>, levels: RememberedRights["levels"]): void {
  for (const { id, nodeId } of [...levels.values()].reverse()) {
    if (asked.size >= ASKED_AT_ONCE) return;
    asked.set(id, { id, nodeId });
  }
}
