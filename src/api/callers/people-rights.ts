import { LRUCache } from "lru-cache";
import type { Context } from "../../context.ts";
import { type Json, objectOf, wholeOf } from "../../json.ts";
import type { UpstreamAsCaller } from "../../upstream/client/as-caller.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import { parseGraphql } from "../../upstream/protocol/graphql.ts";
import { waitAfterMs } from "../../waits/backoff.ts";
import { RETRIES } from "../../waits/retries.ts";
import { mostEntries } from "../../work/bounded.ts";
import { ApiFault } from "../dialect/fault.ts";
import type { ShownToken } from "./public-rights.ts";
import { CallerLimitedFault, unusable } from "./upstream-rights.ts";

/** A repository or an organisation of whose people somebody asks, by global ids; null: not about one. */
export interface PeopleQuestion {
  repository: string | null;
  organization: string | null;
}

/** What upstream shows a token of the people of a repository, and of an organisation. */
export interface PeopleShown {
  collaborators: boolean;
  /** Whether the token's account may administer the repository. */
  isAdmin: boolean;
  /** Whether it is a member, and the token may read what members see. */
  isMember: boolean;
  isOwner: boolean;
  /** How many of the organisation's teams it is shown. */
  teams: number;
}

/**
 * A refused list is null, and so is the whole node above it where no list may be null. So each question has nodes of its
 * own. A connection that is only counted needs no page. GraphQL refuses collaborators in REST's words: electron/
 * repos-using-electron#26.
 */
const QUERY = `query ($ids: [ID!]!) {
  permission: nodes(ids: $ids) { ... on Repository { viewerPermission } }
  collaborators: nodes(ids: $ids) { ... on Repository { collaborators { totalCount } } }
  teams: nodes(ids: $ids) { ... on Organization { teams { totalCount } } }
  viewer: nodes(ids: $ids) { ... on Organization { viewerIsAMember viewerCanAdminister } }
}`;

/** Upstream's words for what concerns the token: it does not see it, may not, or lacks the scope `read:org`. */
const REFUSALS: ReadonlySet<string | null> = new Set(["NOT_FOUND", "FORBIDDEN", "INSUFFICIENT_SCOPES"]);

const REMEMBERED = 10_000;

interface Remembered {
  /** Upstream's last word; null: it has said nothing yet. */
  shown: PeopleShown | null;
  askedAt: number;
  /** Upstream is not asked again before. */
  until: number;
  isBelieved: boolean;
}

type PeopleRightsParts = Pick<Context, "config" | "clock" | "random" | "log"> & {
  upstream: Pick<UpstreamAsCaller["identity"], "graphql">;
};

/**
 * What upstream shows callers of people, by upstream's word: it is asked with the caller's token, where the answer rests on
 * it. Its word is believed for `UPSTREAM_CALLER_TTL`, and for `graceMs` while upstream is away. Tokens are remembered by
 * their hash, in this process alone.
 */
export class PeopleRights {
  readonly #parts: PeopleRightsParts;
  readonly #graceMs: number;
  readonly #known = new LRUCache<string, Remembered>(mostEntries(REMEMBERED));
  readonly #asking = new Map<string, Promise<PeopleShown | null>>();

  constructor(parts: PeopleRightsParts, { graceMs }: { graceMs: number }) {
    this.#parts = parts;
    this.#graceMs = graceMs;
  }

  /** Null: upstream does not say. */
  async find({ text: token, hash }: ShownToken, question: PeopleQuestion): Promise<PeopleShown | null> {
    const name = `${hash} ${question.repository} ${question.organization}`;
    const now = this.#parts.clock.now().getTime();
    const known = this.#known.get(name);
    if (known && now < known.until) return known.isBelieved ? known.shown : null;
    const until = now + this.#parts.config.upstreamCallerTtlMs;
    return await this.#asking.getOrInsertComputed(name, () =>
      this.#ask(token, question)
        .then(
          (shown): Remembered => ({ shown, askedAt: now, until, isBelieved: true }),
          (error: unknown) => this.#unanswered(error, known, now),
        )
        .then((answered) => {
          this.#known.set(name, answered);
          return answered.isBelieved ? answered.shown : null;
        })
        .finally(() => this.#asking.delete(name)),
    );
  }

  /** A limit or a refusal concerns the token: what was known of it is believed only where upstream is away. */
  #unanswered(error: unknown, known: Remembered | undefined, now: number): Remembered {
    const isOutage = error instanceof UpstreamUnavailableError;
    if (!isOutage && !(error instanceof ApiFault)) throw error;
    const { log, random } = this.#parts;
    log.warn({ err: error }, "Upstream cannot be asked which people it shows a caller");
    const waitMs = waitAfterMs(1, RETRIES.callerAtUpstream, random);
    const until = error instanceof CallerLimitedFault ? error.until.getTime() : now + waitMs;
    const { shown = null, askedAt = Number.NEGATIVE_INFINITY } = known ?? {};
    return { shown, askedAt, until, isBelieved: isOutage && now - askedAt < this.#graceMs };
  }

  async #ask(token: string, { repository, organization }: PeopleQuestion): Promise<PeopleShown> {
    const ids = [repository, organization].filter((id) => id !== null);
    const answer = await this.#parts.upstream.graphql({ token, query: QUERY, variables: { ids } });
    const body = answer.status === 200 ? parseGraphql(answer.text) : null;
    if (!body || body.errors.some(({ type }) => !REFUSALS.has(type))) throw unusable(answer, this.#parts.clock.now());
    const data = objectOf(body.data);
    const at = (name: string, id: string | null): { [key: string]: Json } => {
      const nodes = data[name];
      if (!Array.isArray(nodes)) throw unusable(answer, this.#parts.clock.now());
      return id === null ? {} : objectOf(nodes[ids.indexOf(id)]);
    };
    const viewer = at("viewer", organization);
    const teams = wholeOf(objectOf(at("teams", organization).teams).totalCount);
    return {
      collaborators: wholeOf(objectOf(at("collaborators", repository).collaborators).totalCount) !== null,
      isAdmin: at("permission", repository).viewerPermission === "ADMIN",
      // Who is refused the teams lacks the scope: members of whom everybody may not know need it, too.
      isMember: viewer.viewerIsAMember === true && teams !== null,
      isOwner: viewer.viewerCanAdminister === true && teams !== null,
      teams: teams ?? 0,
    };
  }
}
