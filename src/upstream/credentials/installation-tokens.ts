import { createHash, randomBytes } from "node:crypto";
import { seal, sealingKey, unseal } from "../../config/sealing.ts";
import { parseStored } from "../../json.ts";
import { RedisSilentError, withPatience } from "../../operations/redis.ts";
import type { Stores } from "../../stores.ts";
import { waitAfterMs } from "../../waits/backoff.ts";
import { Waits } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { unlessAborted } from "../../work/signals.ts";

/** The token for an installation's requests, valid for an hour. GitHub docs: opaque, of any length. */
export interface InstallationToken {
  text: string;
  /** By upstream's clock, in epoch milliseconds. */
  expiresAt: number;
}

/**
 * With less than this left a new token is made: a walk of many pages should not end in a 401, and clocks may differ.
 */
const TOKEN_LEFT_MS = 10 * 60_000;
/** With less than this left a token is not used any more, even while another process is making a new one. */
const LAST_USE_MS = 60_000;
/** How long processes wait for the one that makes a token. */
const MAKING_MS = RETRIES.othersToken.withinMs;

/**
 * The tokens of the App's installations, made once for all processes. They are in Redis, encrypted with a key derived
 * from the App's private key; its holder could have made them anyway. If Redis loses them, they are made anew. While
 * Redis is away, each process makes its own.
 */
export class InstallationTokens {
  readonly #ctx: Pick<Stores, "config" | "redis" | "random" | "log">;
  readonly #make: (installationId: number) => Promise<InstallationToken>;
  readonly #upstreamNow: () => number;
  readonly #key: Buffer;
  readonly #space: string;
  readonly #known = new Map<number, InstallationToken>();
  readonly #underWay = new Map<number, Promise<InstallationToken>>();
  /** When a token may be made again that could not be renewed, so that not every request tries. */
  readonly #renewAgainAt = new Map<number, number>();
  /** Tokens that upstream refused before they expired. */
  readonly #refused = new Map<number, string>();

  /** @param make asks upstream for a new one */
  constructor(
    ctx: Pick<Stores, "config" | "redis" | "random" | "log">,
    { make, upstreamNow }: { make: (installationId: number) => Promise<InstallationToken>; upstreamNow: () => number },
  ) {
    this.#ctx = ctx;
    this.#make = make;
    this.#upstreamNow = upstreamNow;
    const { appId, appPrivateKey, redisPrefix } = ctx.config;
    this.#key = sealingKey(appPrivateKey ?? "", "tain installation tokens");
    this.#space = `${redisPrefix}:app:${appId}:installation`;
  }

  /**
   * A token that is valid for at least another minute.
   * @throws what `make` throws; the signal's reason if it aborts first. Other requests go on waiting
   */
  async of(installationId: number, signal?: AbortSignal): Promise<string> {
    const known = this.#known.get(installationId);
    if (known && this.#leftMs(known) > TOKEN_LEFT_MS) return known.text;
    const isUsable = known !== undefined && this.#leftMs(known) > LAST_USE_MS;
    if (isUsable && this.#upstreamNow() < (this.#renewAgainAt.get(installationId) ?? 0)) return known.text;
    const underWay = this.#underWay.getOrInsertComputed(installationId, () =>
      this.#obtain(installationId).finally(() => this.#underWay.delete(installationId)),
    );
    if (isUsable) {
      // The old token is still valid. After it expires, the first request that needs a new one reports the error.
      underWay.catch((error: Error) => {
        const waitMs = waitAfterMs(1, RETRIES.tokenRenewal, this.#ctx.random);
        this.#renewAgainAt.set(installationId, this.#upstreamNow() + waitMs);
        this.#ctx.log.warn({ installationId, reason: error.message }, "An installation's token cannot be renewed yet");
      });
      return known.text;
    }
    return (await unlessAborted(underWay, signal)).text;
  }

  /** Drops a token that upstream refused, since it expired or was revoked. It is never used again. */
  async discard(installationId: number, text: string): Promise<void> {
    this.#refused.set(installationId, text);
    if (this.#known.get(installationId)?.text === text) this.#known.delete(installationId);
    const shared = await this.#read(installationId);
    if (shared?.text === text) await this.#redis(() => this.#ctx.redis.del(this.#tokenKey(installationId)));
  }

  async #obtain(installationId: number): Promise<InstallationToken> {
    const place = randomBytes(8).toString("hex");
    const lock = `${this.#tokenKey(installationId)}:making`;
    // Without a signal: all requests of the process that need the token share this wait.
    const waits = new Waits({ policy: RETRIES.othersToken, random: this.#ctx.random });
    for (;;) {
      const shared = await this.#read(installationId);
      if (shared && shared.text !== this.#refused.get(installationId) && this.#leftMs(shared) > TOKEN_LEFT_MS) {
        this.#known.set(installationId, shared);
        return shared;
      }
      const isOurs = await this.#redis(() => this.#ctx.redis.set(lock, place, "PX", MAKING_MS, "NX"));
      // Redis is away, or the other process takes too long: better two tokens than none.
      if (isOurs === null || isOurs.reply === "OK" || !(await waits.next())) break;
    }
    try {
      const made = await this.#make(installationId);
      this.#known.set(installationId, made);
      await this.#write(installationId, made);
      return made;
    } finally {
      await this.#redis(() => this.#ctx.redis.eval(UNLOCK, 1, lock, place));
    }
  }

  async #read(installationId: number): Promise<InstallationToken | null> {
    const stored = await this.#redis(() => this.#ctx.redis.get(this.#tokenKey(installationId)));
    return stored?.reply ? this.#open(installationId, stored.reply) : null;
  }

  async #write(installationId: number, token: InstallationToken): Promise<void> {
    const keptMs = Math.max(1_000, Math.round(this.#leftMs(token)));
    const sealed = seal(this.#key, String(installationId), JSON.stringify(token)).toString("base64");
    await this.#redis(() => this.#ctx.redis.set(this.#tokenKey(installationId), sealed, "PX", keptMs));
  }

  /** Null if another key of the App sealed it, or if it is damaged. Then a new token takes its place. */
  #open(installationId: number, text: string): InstallationToken | null {
    try {
      return parseStored<InstallationToken>(unseal(this.#key, String(installationId), Buffer.from(text, "base64")));
    } catch (error) {
      this.#ctx.log.info({ installationId, err: error }, "A shared token cannot be read");
      return null;
    }
  }

  #leftMs({ expiresAt }: InstallationToken): number {
    return expiresAt - this.#upstreamNow();
  }

  #tokenKey(installationId: number): string {
    return `${this.#space}:${installationId}`;
  }

  /** null: Redis is away. */
  async #redis<T>(run: () => Promise<T>): Promise<{ reply: T } | null> {
    try {
      return { reply: await withPatience(this.#ctx.redis, run) };
    } catch (error) {
      if (!(error instanceof RedisSilentError)) throw error;
      this.#ctx.log.warn({ err: error }, "Redis does not answer: this process makes its installation tokens by itself");
      return null;
    }
  }
}

/** KEYS: the lock. ARGV: the place that holds it. */
const UNLOCK = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** A digest, which tells the successive tokens of a credential apart. */
export function tokenDigest(authorization: string): string {
  return createHash("sha256").update(authorization).digest("hex").slice(0, 16);
}
