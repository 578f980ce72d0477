import { LRUCache } from "lru-cache";
import { isPostgresOutage } from "../../../db/outage.ts";
import type { Stores } from "../../stores.ts";
import { mostEntries } from "../../work/bounded.ts";
import { failureOf, messageOf, shownObject } from "../protocol/answer.ts";
import { CredentialUnusableError, UpstreamUnavailableError } from "../protocol/errors.ts";
import type { Received } from "../protocol/transport.ts";
import { isSuspension } from "../protocol/wording.ts";
import { AppSignature } from "./app-signature.ts";
import { APP, type KnownCredential, loadCredentials, parseTokens } from "./credentials.ts";
import { type InstallationToken, InstallationTokens } from "./installation-tokens.ts";
import { findInstallations, type Installation, installationCredential, installationOf } from "./installations.ts";
import { repositoryPathIn } from "./visibility.ts";

/** How long the known installations are believed. */
const KNOWN_MS = 5_000;
const COVERING_MS = 60_000;
/** Outside its coverage every installation sees only public repositories, so asking a few is enough. */
const MOST_STRANGERS = 10;

export interface Candidates {
  all: readonly string[];
  /** The credentials that surely see the resource; they are tried first. */
  preferred: readonly string[];
}

/** All our credentials at upstream: which one may see a path, and each one's Authorization string. */
export class Keyring {
  readonly #ctx: Pick<Stores, "config" | "db" | "redis" | "clock" | "random" | "log">;
  readonly #tokens: ReadonlyMap<string, string>;
  readonly #app: { signature: AppSignature; tokens: InstallationTokens } | null;
  #known: { credentials: readonly KnownCredential[]; loadedAt: number } | null = null;
  #loading: Promise<readonly KnownCredential[]> | null = null;
  /** Counts the calls of `forget`. A read that began before one may be old, so it is not remembered. */
  #forgotten = 0;
  readonly #covering = new LRUCache<number, { installationId: number | null }>({
    ...mostEntries(50_000),
    ttl: COVERING_MS,
    perf: { now: () => this.#now() },
  });

  /** @param post sends a POST as the App, and answers whatever upstream says */
  constructor(
    ctx: Pick<Stores, "config" | "db" | "redis" | "clock" | "random" | "log">,
    post: (path: string) => Promise<Received>,
  ) {
    this.#ctx = ctx;
    this.#tokens = parseTokens(ctx.config.upstreamTokens);
    const { appId, appPrivateKey } = ctx.config;
    if (appId === null || appPrivateKey === null) {
      this.#app = null;
    } else {
      const signature = new AppSignature({ id: appId, privateKey: appPrivateKey }, ctx.clock);
      const make = async (id: number) => readToken(id, await post(tokenPath(id)));
      const tokens = new InstallationTokens(ctx, { make, upstreamNow: () => signature.upstreamNow() });
      this.#app = { signature, tokens };
    }
  }

  /**
   * The credentials that may be asked for a path: all tokens, and the installation that covers the path's repository.
   * @throws CredentialUnusableError when none is left, with the reason
   */
  async candidates(path: string, { writes = false } = {}): Promise<Candidates> {
    const tokens = [...this.#tokens.keys()];
    if (!this.#app) return { all: tokens, preferred: [] };
    if (isOfApp(path)) return { all: [APP], preferred: [] };
    const installations = await this.#installations();
    const usable = installations.filter(({ suspendedAt }) => suspendedAt === null);
    // GitHub docs: an installation is no user, so it is refused a user's own resources.
    if (/^\/user(?=[/?]|$)/.test(path) && tokens.length > 0) return { all: tokens, preferred: [] };
    const covering = await this.#coveringOf(path, installations);
    if (covering === "lost") {
      if (tokens.length > 0) return { all: tokens, preferred: [] };
      throw new CredentialUnusableError(APP, LOST);
    }
    if (covering && covering.suspendedAt === null && (tokens.length === 0 || isPermitted(covering, path, writes))) {
      const credential = installationCredential(covering.id);
      return { all: [credential, ...tokens], preferred: [credential] };
    }
    if (covering && tokens.length > 0) return { all: tokens, preferred: [] };
    if (covering) throw new CredentialUnusableError(installationCredential(covering.id), suspended(covering.account));
    const strangers = usable.slice(0, MOST_STRANGERS).map(({ id }) => installationCredential(id));
    const all = [...tokens, ...strangers];
    if (all.length === 0)
      throw new CredentialUnusableError(
        APP,
        installations.length === 0
          ? "The GitHub App is installed nowhere, and there is no token: install it on an account, or set UPSTREAM_TOKEN"
          : "Every installation of the GitHub App is suspended, and there is no token: see to it that one is unsuspended, or set UPSTREAM_TOKEN",
      );
    return { all, preferred: [] };
  }

  /**
   * Groups repositories by usable installation, and the rest in one group, so that one credential sees a whole group.
   * Keeps the order.
   */
  async groups(repositoryIds: readonly number[]): Promise<number[][]> {
    if (!this.#app || repositoryIds.length === 0) return repositoryIds.length === 0 ? [] : [[...repositoryIds]];
    const covering = await findInstallations(this.#ctx.db, repositoryIds);
    const usable = new Set((await this.#installations()).filter((one) => one.suspendedAt === null).map(({ id }) => id));
    const groupOf = (id: number) => {
      const installationId = covering.get(id);
      return installationId !== undefined && usable.has(installationId) ? installationId : null;
    };
    return [...Map.groupBy(repositoryIds, groupOf).values()];
  }

  /**
   * The value of the Authorization header.
   * @throws CredentialUnusableError; any error of asking upstream for a token; the signal's reason
   */
  async authorization(credential: string, signal?: AbortSignal): Promise<string> {
    const token = this.#tokens.get(credential);
    if (token !== undefined) return `Bearer ${token}`;
    if (!this.#app) throw new CredentialUnusableError(credential, `There is no credential ${credential} any more`);
    const installationId = installationOf(credential);
    if (installationId === null) return await this.#app.signature.authorization();
    return `Bearer ${await this.#app.tokens.of(installationId, signal)}`;
  }

  /** Whether the credential's string changes over time. Then a validator has to say which string it is for. */
  changes(credential: string): boolean {
    return !this.#tokens.has(credential);
  }

  /**
   * Renews a credential after upstream has answered 401 to this `authorization`. True: the credential has another
   * string now, and the request may be repeated. An installation gets a new token. The App signs anew if upstream's
   * clock differs from our estimate.
   */
  async renew(credential: string, authorization: string, { headers }: Received, sentAt: Date): Promise<boolean> {
    if (!this.#app || this.#tokens.has(credential)) return false;
    const isClockNews = this.#app.signature.learn(headers.date, sentAt);
    const installationId = installationOf(credential);
    if (installationId === null) return isClockNews;
    await this.#app.tokens.discard(installationId, authorization.replace(/^Bearer /, ""));
    return true;
  }

  /** Learns upstream's clock from the `Date` header of an answer. */
  learnClock({ headers }: Received, sentAt: Date): void {
    this.#app?.signature.learn(headers.date, sentAt);
  }

  /** The quota that a credential spends: the tokens of one user share theirs. An arrow, since it is handed on. */
  readonly ledgerOf = (credential: string): string =>
    this.#known?.credentials.find(({ id }) => id === credential)?.ledger ?? credential;

  /** Loads the ledgers of `ledgerOf` from Postgres. The App itself has its own ledger, and needs no Postgres. */
  async prepare(path: string): Promise<void> {
    if (this.#app && isOfApp(path)) return;
    if (this.#tokens.size > 1 || this.#app) await this.#load();
  }

  /** Forgets the known credentials, since installations or owners have changed. The next use reads them anew. */
  forget(): void {
    this.#forgotten += 1;
    this.#known = null;
    this.#loading = null;
    this.#covering.clear();
  }

  /** How many different credentials a request may try. */
  get size(): number {
    return this.#tokens.size + (this.#known?.credentials.length ?? 0) + 1;
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }

  async #installations(): Promise<Installation[]> {
    return (await this.#load()).flatMap(({ installation }) => installation ?? []);
  }

  async #load(): Promise<readonly KnownCredential[]> {
    if (this.#known && this.#now() - this.#known.loadedAt < KNOWN_MS) return this.#known.credentials;
    const forgotten = this.#forgotten;
    const loading = this.#loading ?? loadCredentials(this.#ctx);
    this.#loading = loading;
    try {
      const credentials = await loading;
      // `forget` was called meanwhile, so these rows may be too old.
      if (forgotten !== this.#forgotten) return await this.#load();
      this.#known = { credentials, loadedAt: this.#now() };
      return credentials;
    } catch (error) {
      // While Postgres is away, the last known credentials are the best guess.
      if (!this.#known || !isPostgresOutage(error)) throw error;
      return this.#known.credentials;
    } finally {
      if (this.#loading === loading) this.#loading = null;
    }
  }

  /**
   * The installation that covers the path's repository, or else the path's account. "lost": an installation covered the
   * repository and no longer does. The owner may have wanted that, so no other installation is asked.
   */
  async #coveringOf(path: string, installations: readonly Installation[]): Promise<Installation | "lost" | null> {
    const [, id] = /^\/repositories\/(\d+)/.exec(repositoryPathIn(path) ?? "") ?? [];
    if (id !== undefined) {
      const installationId = await this.#coveringId(Number(id));
      if (installationId === 0) return "lost";
      return installations.find((each) => each.id === installationId) ?? null;
    }
    const [, account] = /^\/(?:repos|orgs|users)\/([^/?]+)/.exec(path) ?? [];
    const login = account?.toLowerCase();
    return installations.find((each) => each.account.toLowerCase() === login) ?? null;
  }

  async #coveringId(repositoryId: number): Promise<number | null> {
    const known = this.#covering.get(repositoryId);
    if (known) return known.installationId;
    const forgotten = this.#forgotten;
    const found = await findInstallations(this.#ctx.db, [repositoryId]);
    const installationId = found.get(repositoryId) ?? null;
    if (forgotten === this.#forgotten) this.#covering.set(repositoryId, { installationId });
    return installationId;
  }
}

/** Whether upstream answers the path only to the App itself. Pure. */
function isOfApp(path: string): boolean {
  return /^\/app(?=[/?]|$)/.test(path);
}

/**
 * Whether the account has granted what the path needs. Only rights that tokens may have beyond the App count: reading a
 * repository's webhooks, and writing. Pure.
 */
function isPermitted({ permissions }: Installation, path: string, writes: boolean): boolean {
  const [, part = ""] = /^\/(?:repositories\/\d+|repos\/[^/]+\/[^/]+)\/([^/?]+)/.exec(path) ?? [];
  if (part === "hooks")
    return permissions.repository_hooks === "write" || (!writes && "repository_hooks" in permissions);
  if (!writes) return true;
  return permissions[part === "pulls" ? "pull_requests" : "issues"] === "write";
}

const LOST = "The GitHub App may no longer see this repository: add it to the installation, or set UPSTREAM_TOKEN";

function suspended(account: string): string {
  return `The GitHub App's installation on ${account} is suspended: an owner of ${account} can unsuspend it in its settings, under GitHub Apps`;
}

function tokenPath(installationId: number): string {
  return `/app/installations/${installationId}/access_tokens`;
}

/** Reads upstream's answer to the question for an installation's token. */
function readToken(installationId: number, received: Received): InstallationToken {
  const credential = installationCredential(installationId);
  const { status } = received;
  const message = messageOf(received);
  if (status === 201) {
    const { token, expires_at: expiresAt } = shownObject(tokenPath(installationId), received);
    if (typeof token !== "string" || typeof expiresAt !== "string")
      throw new UpstreamUnavailableError("Upstream made a token and did not show it", "unreadable", { status });
    return { text: token, expiresAt: Date.parse(expiresAt) };
  }
  if (isSuspension(status, message))
    throw new CredentialUnusableError(
      credential,
      "Upstream says that the installation is suspended: an owner of the account can unsuspend it in its settings, under GitHub Apps",
    );
  if (status === 404)
    throw new CredentialUnusableError(
      credential,
      "The GitHub App is no longer installed there: install it again, or set UPSTREAM_TOKEN",
    );
  if (status === 401)
    throw new CredentialUnusableError(
      credential,
      `Upstream does not accept the GitHub App's signature (${message}): see that APP_ID and APP_PRIVATE_KEY belong together, and that the key is still listed at the App`,
    );
  throw failureOf("/app/installations/…/access_tokens", received);
}
