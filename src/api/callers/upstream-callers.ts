import { eq } from "drizzle-orm";
import { LRUCache } from "lru-cache";
import type { Config } from "../../config.ts";
import type { Context } from "../../context.ts";
import { type Json, objectOf, textOf } from "../../json.ts";
import { forCode } from "../../kinds/contract/rights.ts";
import { ONES_OWN } from "../../mirror/documents/documents.ts";
import type { AccessScope } from "../../mirror/read/repositories.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { observe } from "../../mirror/store/observation.ts";
import { users } from "../../schema.ts";
import { UpstreamAsCaller } from "../../upstream/client/as-caller.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import { parseGraphql } from "../../upstream/protocol/graphql.ts";
import { limitOf } from "../../upstream/protocol/headers.ts";
import type { Received } from "../../upstream/protocol/transport.ts";
import { waitAfterMs } from "../../waits/backoff.ts";
import { RETRIES } from "../../waits/retries.ts";
import { mostEntries } from "../../work/bounded.ts";
import { ApiFault } from "../dialect/fault.ts";
import type { AsStranger } from "./logins.ts";
import { pauseOfLostRights, pauseOfRefused } from "./makers-rights.ts";
import { PeopleRights } from "./people-rights.ts";
import { PublicRights, type ShownToken } from "./public-rights.ts";
import { classOfRights, type Recognised } from "./quota.ts";
import { askRights, CallerLimitedFault, type RepositoryRights, unusable } from "./upstream-rights.ts";

const REMEMBERED_CALLERS = 10_000;
/** A token that upstream refused is not shown again for this long, or for `UPSTREAM_CALLER_TTL` if that is shorter. */
const REFUSED_MS = 60_000;
/** While upstream cannot be asked, a caller whom it confirmed within this time is believed. */
const BELIEVED_MS = 10 * 60_000;
/** The prefixes of an App's tokens: for an installation or Actions (`ghs_`), and for a user (`ghu_`). */
const APPS = /^gh[su]_/;

/**
 * Where a token reads resources of commits (checks, statuses): wherever it sees a repository, only in public ones, or
 * only upstream knows. A fine-grained token or an App's may lack the permission, and upstream reveals that only by
 * refusing.
 */
type CodeAccess = "all" | "public" | "unknown";

/** The account that a token of upstream's belongs to. */
interface Person {
  userId: number;
  /** The login as REST shows it: an App's has `[bot]` at its end. */
  login: string;
  /** Upstream's answer to `GET /user` with this token. Null: the token is an App's own, which has no such page. */
  profile: string | null;
}

/** A caller that upstream knows by a token of its own. */
export interface UpstreamCaller extends Person {
  /** Whether the token is an App's. Upstream words refusals differently for those. */
  isApps: boolean;
  /** The private mirrored repositories that upstream shows to this token, with the rights in each. */
  rights: ReadonlyMap<number, RepositoryRights>;
  code: CodeAccess;
  access: AccessScope;
  payer: Recognised;
}

/** A token that upstream refused. `fault`: the answer instead of a 401. */
interface Refused {
  until: number;
  fault: ApiFault | null;
}

interface RememberedCaller {
  caller: UpstreamCaller;
  etag: string | null;
  /** When upstream last confirmed the token. */
  confirmedAt: number;
  /** Upstream could not be asked, and is not asked again before then. */
  askAgainAt: number;
}

/**
 * Callers who show upstream's own tokens. Upstream is asked who they are and which private repositories they see, with
 * their token and their quota. The answer is believed for `UPSTREAM_CALLER_TTL`, and longer only while upstream is
 * away: a limit of the caller's own is no outage, and must not prolong rights. Tokens are remembered by their hash, in
 * this process alone.
 */
export class UpstreamCallers {
  readonly #ctx: Pick<Context, "config" | "db" | "clock" | "random" | "log" | "metrics" | "tracing">;
  /** Asks with a caller's own token. */
  readonly upstream: UpstreamAsCaller;
  readonly publicRights: PublicRights;
  readonly peopleRights: PeopleRights;
  readonly #known = new LRUCache<string, RememberedCaller>(mostEntries(REMEMBERED_CALLERS));
  /** Refused tokens, by their hash. They are kept apart, so that they push no caller out. */
  readonly #refused = new LRUCache<string, Refused>(mostEntries(REMEMBERED_CALLERS));
  readonly #asking = new Map<string, Promise<RememberedCaller | null>>();

  constructor(ctx: Pick<Context, "config" | "db" | "clock" | "random" | "log" | "metrics" | "tracing">) {
    this.#ctx = ctx;
    this.upstream = new UpstreamAsCaller(ctx);
    const times = { graceMs: BELIEVED_MS };
    this.publicRights = new PublicRights({ ...ctx, upstream: this.upstream.identity }, times);
    this.peopleRights = new PeopleRights({ ...ctx, upstream: this.upstream.identity }, times);
  }

  /** Upstream's recent answer about the token with this hash; null if upstream would have to be asked. */
  recall(hash: string): UpstreamCaller | null {
    const known = this.#known.get(hash);
    const isRecent =
      known && this.#ctx.clock.now().getTime() - known.confirmedAt < this.#ctx.config.upstreamCallerTtlMs;
    return isRecent ? known.caller : null;
  }

  /**
   * The caller with this token. Null: upstream does not accept the token.
   * @param asStranger asks about a token that is not known yet, or throws
   * @throws ApiFault 503 when upstream cannot be asked and no recent answer is kept; 403 or 429 as upstream words it
   */
  async find({ text: token, hash }: ShownToken, asStranger: AsStranger): Promise<UpstreamCaller | null> {
    const now = this.#ctx.clock.now().getTime();
    const ttlMs = this.#ctx.config.upstreamCallerTtlMs;
    const known = this.#known.get(hash);
    if (known && now - known.confirmedAt < ttlMs) return known.caller;
    if (known && now < known.askAgainAt && now - known.confirmedAt < BELIEVED_MS) return known.caller;
    const refused = this.#refused.get(hash);
    // A caller who was known comes back with the first answer after an outage.
    if (refused && now < refused.until && (!known || refused.fault?.status !== 503)) {
      if (refused.fault) throw refused.fault;
      return null;
    }
    const ask = () => this.#ask(token, known).catch((error: unknown) => this.#remembered(hash, error, now));
    const answered = await this.#asking.getOrInsertComputed(hash, () =>
      (known ? ask() : asStranger(ask)).finally(() => this.#asking.delete(hash)),
    );
    if (answered) {
      this.#known.set(hash, answered);
      return answered.caller;
    }
    this.#known.delete(hash);
    this.#refused.set(hash, { until: now + Math.min(ttlMs, REFUSED_MS), fault: null });
    return null;
  }

  /** Remembers upstream's refusal for a moment, so that a repeated token gets the same answer without a question. */
  #remembered(hash: string, error: unknown, now: number): never {
    if (error instanceof ApiFault) {
      // Without chance: `Retry-After` tells the caller when to come again.
      const outageMs = RETRIES.callerAtUpstream.firstMs;
      const forMs = error.status === 503 ? outageMs : Math.min(this.#ctx.config.upstreamCallerTtlMs, REFUSED_MS);
      const until =
        error instanceof CallerLimitedFault ? Math.min(error.until.getTime(), now + REFUSED_MS) : now + forMs;
      this.#refused.set(hash, { until, fault: error });
    }
    throw error;
  }

  async close(): Promise<void> {
    await this.upstream.close();
  }

  async #ask(token: string, known: RememberedCaller | undefined): Promise<RememberedCaller | null> {
    const now = this.#ctx.clock.now().getTime();
    const parts = { ...this.#ctx, upstream: this.upstream.identity };
    try {
      const confirmed = await this.#confirm(token, known, now);
      await (confirmed ? pauseOfLostRights(parts, token, confirmed.caller) : pauseOfRefused(parts, token));
      return confirmed;
    } catch (error) {
      if (!(error instanceof UpstreamUnavailableError)) throw error;
      if (known && now - known.confirmedAt < BELIEVED_MS) {
        this.#ctx.log.warn({ err: error }, "Upstream cannot be asked about a caller, who is believed a while longer");
        return { ...known, askAgainAt: now + waitAfterMs(1, RETRIES.callerAtUpstream, this.#ctx.random) };
      }
      throw new ApiFault(503, "Upstream cannot be asked whose token this is. Try again soon.", {
        headers: { "Retry-After": "5" },
        cause: error,
      });
    }
  }

  async #confirm(token: string, known: RememberedCaller | undefined, now: number): Promise<RememberedCaller | null> {
    const etag = known?.caller.profile != null ? known.etag : null;
    const answer = await this.upstream.identity.send({
      token,
      method: "GET",
      path: "/user",
      headers: etag === null ? {} : { "if-none-match": etag },
    });
    if (answer.status === 401) return null;
    const isSame = answer.status === 304 && known?.caller;
    const person: Person | null = isSame
      ? known.caller
      : answer.status === 200
        ? this.#person(answer.text)
        : await this.#app(token, answer);
    if (!person) return null;
    const { userId, login, profile } = person;
    await requireAllowed({ ...this.#ctx, upstream: this.upstream.identity }, token, login);
    if (!isSame) await this.#introduce(userId, profile);
    const rights = await askRights({ ...this.#ctx, upstream: this.upstream.identity }, token);
    const isApps = profile === null || APPS.test(token);
    const tag = [answer.headers.etag].flat()[0];
    const scopes = [answer.headers["x-oauth-scopes"]].flat()[0] ?? (isSame ? known.caller.payer.scopes : null);
    const code = isApps ? "unknown" : codeAccess(scopes);
    const access = accessByKind(rights, { code: code === "all" });
    return {
      caller: {
        userId,
        login,
        profile,
        isApps,
        rights,
        code,
        access,
        payer: payerOf(userId, { rights, code, scopes }),
      },
      etag: isSame ? etag : (tag ?? null),
      confirmedAt: now,
      askAgainAt: 0,
    };
  }

  #person(text: string): Person {
    const { id, login } = objectOf(parsedAnswer(text));
    if (typeof id !== "number" || typeof login !== "string")
      throw new UpstreamUnavailableError("GET /user: upstream names no user", "unreadable");
    return { userId: id, login, profile: text };
  }

  /**
   * The account of an App's token. REST knows no user for an App's installation; to GraphQL, the viewer is the App's
   * bot.
   */
  async #app(token: string, refused: Received): Promise<Person | null> {
    if (refused.status !== 403 || limitOf(refused.status, refused.headers, refused.text))
      throw unusable(refused, this.#ctx.clock.now());
    const answer = await this.upstream.identity.graphql({
      token,
      query: "query { viewer { databaseId login } }",
      variables: {},
    });
    if (answer.status === 401) return null;
    const { databaseId, login } = objectOf(parseGraphql(answer.text)?.data?.viewer);
    if (typeof databaseId === "number" && typeof login === "string")
      return { userId: databaseId, login: `${login.replace("[bot]", "")}[bot]`, profile: null };
    throw new ApiFault(403, textOf(objectOf(parsedAnswer(refused.text)).message) ?? "Forbidden");
  }

  /** Makes sure that the mirror can show the caller: it stores what upstream shows of them to everybody. */
  async #introduce(userId: number, profile: string | null): Promise<void> {
    if (profile === null) return;
    const rows = await this.#ctx.db.select({ id: users.id }).from(users).where(eq(users.id, userId));
    if (rows.length > 0) return;
    const all = parsedAnswer(profile);
    const known = Object.fromEntries(Object.entries(all ?? {}).filter(([key]) => !ONES_OWN.test(key)));
    const sighting = { api: this.#ctx.config.upstreamUrl, seenAt: this.#ctx.clock.now(), read: true };
    await this.#ctx.db.transaction((tx) => mergeObserved(tx, observe("user", known, sighting)));
  }
}

/**
 * AccessScope from the issues and pull requests that are given in each repository, and the rights about commits that are
 * given in all. Pure.
 */
function accessByKind(
  given: ReadonlyMap<number, { issues: boolean; pulls: boolean }>,
  { code }: { code: boolean },
): AccessScope {
  const lists = new Map<string, number[]>();
  const none: readonly number[] = [];
  // Equal lists are one list, so comparing them costs nothing.
  const where = (test: (kinds: { issues: boolean; pulls: boolean }) => boolean) => {
    const ids = [...given].filter(([, kinds]) => test(kinds)).map(([id]) => id);
    return lists.getOrInsertComputed(ids.join(), () => ids);
  };
  return {
    metadata: where(() => true),
    issues: where(({ issues }) => issues),
    pulls: where(({ pulls }) => pulls),
    "issues or pulls": where(({ issues, pulls }) => issues || pulls),
    ...forCode(() => (code ? where(() => true) : none)),
  };
}

function payerOf(
  userId: number,
  { rights, code, scopes }: Pick<UpstreamCaller, "rights" | "code"> & { scopes: string | null },
): Recognised {
  const ofClass = classOfRights("upstream", [...rights, code]);
  return { kind: "user", quotaName: `u${userId}`, hourlyLimit: null, class: ofClass, scopes };
}

/** What a token reads, by its scopes. Only classic and OAuth tokens have scopes. Pure. */
function codeAccess(scopes: string | null): CodeAccess {
  if (scopes === null) return "unknown";
  return scopes.split(/,\s*/).includes("repo") ? "all" : "public";
}

function parsedAnswer(text: string): Json {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UpstreamUnavailableError("Upstream's answer is no JSON", "unreadable", { cause });
  }
}

interface Rule extends Pick<Context, "clock"> {
  config: Pick<Config, "allowedUsers" | "allowedOrganizations">;
  upstream: Pick<UpstreamAsCaller["identity"], "graphql">;
}

/**
 * Admits the users that the operator has named, and the members of named organizations. Without names it admits everybody.
 * @param login of the token's owner; an App's with its `[bot]`
 * @throws ApiFault 403 for all others
 * @throws as `unusable`
 */
async function requireAllowed({ config, clock, upstream }: Rule, token: string, login: string): Promise<void> {
  const { allowedUsers: users, allowedOrganizations: organizations } = config;
  if (users.length === 0 && organizations.length === 0) return;
  if (users.includes(login.toLowerCase())) return;
  if (organizations.length > 0 && (await isMember({ clock, upstream }, token, organizations))) return;
  throw new ApiFault(
    403,
    `${login} may not use this mirror: its operator allows certain users and organizations only.`,
  );
}

/**
 * Whether the token's user is a member. A token without `read:org` may be refused here, or hear that it is no member;
 * then it is not let in. This is not confirmed of GitHub.
 */
async function isMember(
  { clock, upstream }: Pick<Rule, "clock" | "upstream">,
  token: string,
  organizations: readonly string[],
): Promise<boolean> {
  const names = organizations.map((_, at) => `$o${at}: String!`);
  const fields = organizations.map((_, at) => `o${at}: organization(login: $o${at}) { viewerIsAMember }`);
  const variables = Object.fromEntries(organizations.map((login, at) => [`o${at}`, login]));
  const answer = await upstream.graphql({
    token,
    query: `query (${names.join(", ")}) { ${fields.join(" ")} }`,
    variables,
  });
  const body = answer.status === 200 ? parseGraphql(answer.text) : null;
  const isOfCaller = (type: string | null) =>
    type === "NOT_FOUND" || type === "FORBIDDEN" || type === "INSUFFICIENT_SCOPES";
  if (!body || body.errors.some(({ type }) => !isOfCaller(type))) throw unusable(answer, clock.now());
  return Object.values(objectOf(body.data)).some((one) => objectOf(one).viewerIsAMember === true);
}
