import { createHmac, randomBytes } from "node:crypto";
import { isSameSecret } from "../config/same-secret.ts";
import { sealingKey } from "../config/sealing.ts";
import type { Context } from "../context.ts";
import { levelOf } from "../failure.ts";
import type { Exchange } from "../http/exchange.ts";
import { withPatience } from "../operations/redis.ts";

/** A working day, and a little more. */
const SESSION_MS = 12 * 3_600_000;
const COOKIE = "tain_operator";
/**
 * The header in which the page repeats the session's own word. No other site can read that word, nor set the header.
 */
const WORD_HEADER = "x-tain-session-word";

/** An operator who has signed in, in one browser. */
export interface Session {
  nonce: string;
  /** Epoch milliseconds, by our clock. */
  expiresAt: number;
  /** A word that each changing request has to repeat. It is derived from the cookie, which scripts cannot read. */
  word: string;
}

/**
 * Sessions of operators. A cookie holds its end, a random name and a signature, but no token. The key of the signature
 * is derived from OPERATOR_TOKEN. So any web process can check the cookie, and changing the token ends all sessions.
 * Sessions that were signed out are noted in Redis.
 */
export class Sessions {
  readonly #ctx: Pick<Context, "clock" | "redis" | "config" | "log">;
  readonly #key: Buffer;

  constructor(ctx: Pick<Context, "clock" | "redis" | "config" | "log">, operatorToken: string) {
    this.#ctx = ctx;
    this.#key = sealingKey(operatorToken, "tain operator session");
  }

  /** The cookie of a new session. `isSecure`: the browser speaks https, whatever a proxy speaks with us. */
  begin(isSecure: boolean): { cookie: string; session: Pick<Session, "nonce"> } {
    const expiresAt = this.#ctx.clock.now().getTime() + SESSION_MS;
    const nonce = randomBytes(16).toString("base64url");
    const value = `${expiresAt}.${nonce}.${this.#sign("session", expiresAt, nonce)}`;
    return { cookie: cookieOf(value, SESSION_MS / 1_000, isSecure), session: { nonce } };
  }

  /** The session of the request's cookie. Null: there is no cookie, or its session is over. */
  async find({ headers }: Pick<Exchange, "headers">): Promise<Session | null> {
    const value = cookieIn(headers.cookie);
    const [, moment = "", nonce = "", signature = ""] =
      /^(\d{1,16})\.([\w-]{22})\.([\w-]{43})$/.exec(value ?? "") ?? [];
    const expiresAt = Number(moment);
    if (moment === "" || !isSameSecret(signature, this.#sign("session", expiresAt, nonce))) return null;
    if (expiresAt <= this.#ctx.clock.now().getTime() || (await this.#hasEnded(nonce))) return null;
    return { nonce, expiresAt, word: this.#sign("word", expiresAt, nonce) };
  }

  /** Whether a changing request was made by our own page. */
  isOurs({ headers }: Pick<Exchange, "headers">, { word }: Session, shown = headers[WORD_HEADER]): boolean {
    return typeof shown === "string" && isSameSecret(shown, word);
  }

  /** Ends the session in every process. Returns the header value that deletes the cookie. */
  async end({ nonce, expiresAt }: Session, isSecure: boolean): Promise<string> {
    const { redis, clock } = this.#ctx;
    const leftMs = Math.max(1, Math.ceil(expiresAt - clock.now().getTime()));
    await withPatience(redis, () => redis.set(this.#endedKey(nonce), "1", "PX", leftMs));
    return cookieOf("", 0, isSecure);
  }

  #sign(purpose: "session" | "word", expiresAt: number, nonce: string): string {
    return createHmac("sha256", this.#key).update(`${purpose} ${expiresAt} ${nonce}`).digest("base64url");
  }

  /**
   * If Redis is away, the session counts as not ended, because operators need the page most during an outage. So a
   * session that was signed out works again until Redis is back.
   */
  async #hasEnded(nonce: string): Promise<boolean> {
    const { redis, log } = this.#ctx;
    try {
      return (await withPatience(redis, () => redis.exists(this.#endedKey(nonce)))) === 1;
    } catch (error) {
      log[levelOf(error, "debug")]({ err: error }, "Redis does not say whether the operator has signed out");
      return false;
    }
  }

  #endedKey(nonce: string): string {
    return `${this.#ctx.config.redisPrefix}:operator-ended:${nonce}`;
  }
}

function cookieOf(value: string, seconds: number, isSecure: boolean): string {
  const parts = [`${COOKIE}=${value}`, "Path=/-/", `Max-Age=${seconds}`, "HttpOnly", "SameSite=Strict"];
  return [...parts, ...(isSecure ? ["Secure"] : [])].join("; ");
}

function cookieIn(header: string | undefined): string | undefined {
  return header
    ?.split(/; */)
    .find((each) => each.startsWith(`${COOKIE}=`))
    ?.slice(COOKIE.length + 1);
}

/** Whether the browser uses https, by its `Origin` header or by a trusted proxy's word. */
export function isSecure({ protocol, headers }: Pick<Exchange, "protocol" | "headers">): boolean {
  return protocol === "https" || (headers.origin ?? "").startsWith("https://");
}

/**
 * Whether a request comes from a page of this host. Browsers send the page's origin with every POST. A request without
 * an origin comes from a program, in which no other site can act with the operator's cookie.
 */
export function isFromHere({ headers, host }: Pick<Exchange, "headers" | "host">, publicUrl: string | null): boolean {
  const { origin } = headers;
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") return false;
  if (origin === undefined) return true;
  const from = URL.parse(origin)?.host;
  const hosts = [host, headers.host, publicUrl === null ? undefined : URL.parse(publicUrl)?.host];
  return from !== undefined && hosts.some((each) => each?.toLowerCase() === from);
}
