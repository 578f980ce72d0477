import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { LRUCache } from "lru-cache";
import type { Stores } from "../../stores.ts";
import { Gather } from "../../work/gather.ts";
import { tokenDigest } from "../credentials/installation-tokens.ts";
import type { Received } from "../protocol/transport.ts";
import type { Validator } from "../protocol/upstream.ts";
import { isPredicted, predictEtag, routePattern, variesBy } from "./etag.ts";
import { copyValidator, findValidators, type KnownValidator, loadBody, touchValidator } from "./validators.ts";

/** The largest body that is kept, compressed. Pages of a hundred issues with long texts have some 300 kB. */
const MAX_KEPT_BYTES = 1024 * 1024;
/**
 * After a misprediction the ETags of a route are not computed for this long. Upstream may change its rule, and change
 * it back.
 */
const DISTRUST_MS = 24 * 3_600_000;
/**
 * The headers that the ETag of an empty list covers beside `[]`. GitHub's answers to signed requests vary on no other
 * header of ours.
 */
const EMPTY_VARIES_BY = "accept authorization";

const gzipAsync = promisify(gzip);
const gunzipAsync = promisify(gunzip);

/** The headers that make a request conditional, and what a 304 to it means. */
export interface Condition {
  headers: Record<string, string>;
  /**
   * The validator behind the condition:
   * - own: upstream gave it to this credential.
   * - computed: the tag of the stored page, computed for this credential.
   * - dated: the date that another credential got.
   * - empty: the tag of an empty list; nothing is stored.
   */
  kind: "own" | "computed" | "dated" | "empty";
  /** The stored validator; null for `empty`. */
  validator: KnownValidator | null;
}

/** Makes requests conditional, also for credentials that have never asked for the page. */
export class Conditions {
  readonly #ctx: Pick<Stores, "config" | "db" | "clock" | "log">;
  /** Routes whose ETags were mispredicted. */
  readonly #distrusted: LRUCache<string, true>;
  /** Gathered, since a sweep asks for thousands. */
  readonly #validators: Gather<string, Map<string, KnownValidator>>;

  constructor(ctx: Pick<Stores, "config" | "db" | "clock" | "log">) {
    this.#ctx = ctx;
    const perf = { now: () => ctx.clock.now().getTime() };
    this.#distrusted = new LRUCache({ max: 1_000, ttl: DISTRUST_MS, perf });
    this.#validators = new Gather((paths) => findValidators(ctx.db, paths));
  }

  /** The conditions of the question named `key`. */
  async of(key: string): Promise<PageConditions> {
    const known = await this.#validators.ask(key);
    return {
      preferred: [...known.keys()],
      for: (credential, sent) => this.#conditionFor(key, known, credential, sent),
    };
  }

  async #conditionFor(
    key: string,
    known: ReadonlyMap<string, KnownValidator>,
    credential: string,
    sent: Record<string, string>,
  ): Promise<Condition | null> {
    const own = known.get(credential);
    if (own && isValidFor(own, sent)) {
      if (own.etag !== null) return { headers: { "if-none-match": own.etag }, kind: "own", validator: own };
      return own.lastModified === null
        ? null
        : { headers: { "if-modified-since": own.lastModified }, kind: "own", validator: own };
    }
    // The credential's own validator comes first. A 304 then makes it valid for the present token.
    const others = [...known.values()].sort((a, b) => Number(b === own) - Number(a === own));
    const withBody = others.find(({ variesBy: varies }) => varies !== null);
    if (withBody && this.#isTrusted(key)) {
      const body = await loadBody(this.#ctx.db, withBody);
      if (body) {
        const etag = predictEtag(withBody.variesBy ?? "", sent, await gunzipAsync(body));
        return { headers: { "if-none-match": `"${etag}"` }, kind: "computed", validator: withBody };
      }
    }
    // A date is less exact: embedded resources may change without moving it.
    const dated = others.find(({ lastModified }) => lastModified !== null);
    if (dated?.lastModified)
      return { headers: { "if-modified-since": dated.lastModified }, kind: "dated", validator: dated };
    if (others.length > 0 || !/[?&]per_page=/.test(key) || !this.#isTrusted(key)) return null;
    return {
      headers: { "if-none-match": `"${predictEtag(EMPTY_VARIES_BY, sent, "[]")}"` },
      kind: "empty",
      validator: null,
    };
  }

  /**
   * The last row of a stored list page; null when the page is not kept, or not in the form that upstream sent it in.
   */
  async lastRow(validator: KnownValidator): Promise<LastRow | null> {
    if (!this.#isTrusted(validator.path)) return null;
    const known = await this.#validators.ask(validator.path);
    const withBody = [...known.values()].find(({ variesBy: varies }) => varies !== null);
    const body = withBody && (await loadBody(this.#ctx.db, withBody));
    if (!body) return null;
    const text = (await gunzipAsync(body)).toString("utf8");
    const rows: unknown = JSON.parse(text);
    if (!Array.isArray(rows) || rows.length === 0 || JSON.stringify(rows) !== text) return null;
    const alone = JSON.stringify(rows.slice(-1));
    return {
      id: rows.at(-1)?.id,
      conditions: {
        preferred: [],
        for: async (_credential, sent) => {
          const etag = predictEtag(withBody.variesBy ?? "", sent, alone);
          return { headers: { "if-none-match": `"${etag}"` }, kind: "computed", validator: null };
        },
      },
    };
  }

  /**
   * Notes that upstream has confirmed the page. A computed validator becomes a stored one, and a used one is kept
   * longer.
   */
  async confirmed(
    { kind, validator, headers }: Condition,
    { credential, madeFor }: Pick<Validator, "credential" | "madeFor">,
  ): Promise<void> {
    if (!validator) return;
    const now = this.#ctx.clock.now();
    if (kind === "computed") {
      const etag = headers["if-none-match"] ?? null;
      await copyValidator(this.#ctx.db, validator, { credential, madeFor, etag, usedAt: now });
    } else {
      await touchValidator(this.#ctx.db, validator, now);
    }
  }

  /**
   * What to keep of a page so that its ETag can be computed for another credential. Nothing if this is switched off, or
   * if upstream's ETag of this very answer was mispredicted.
   */
  async bodyOf(
    validator: Validator,
    { headers, text, packed }: Pick<Received, "headers" | "text" | "packed">,
    sent: Record<string, string>,
  ): Promise<Pick<Validator, "body" | "variesBy">> {
    const nothing = { body: null, variesBy: null };
    if (validator.etag === null || !this.#isTrusted(validator.path)) return nothing;
    const varies = variesBy(headers, sent);
    if (!isPredicted(validator.etag, predictEtag(varies, sent, text))) {
      const route = routePattern(validator.path);
      this.#distrusted.set(route, true);
      this.#ctx.log.info({ route }, "Upstream makes this route's ETags in another way: they are not computed for now");
      return nothing;
    }
    const body = packed ?? (await gzipAsync(text));
    return body.length > MAX_KEPT_BYTES ? nothing : { body, variesBy: varies };
  }

  #isTrusted(key: string): boolean {
    return this.#ctx.config.validatorBodiesBytes > 0 && !this.#distrusted.has(routePattern(key));
  }
}

/** Whether the ETag is valid for the credential's present token. An ETag that covers no token is valid for all. */
function isValidFor({ etag, madeFor, variesBy: varies }: KnownValidator, sent: Record<string, string>): boolean {
  if (etag === null || madeFor === null) return true;
  const isOfToken = varies === null || varies.split(" ").includes("authorization");
  return !isOfToken || madeFor === tokenDigest(sent.authorization ?? "");
}

interface LastRow {
  id: unknown;
  /** The conditions of a list with this row alone. */
  conditions: PageConditions;
}

export interface PageConditions {
  /** Credentials that need nothing computed. */
  preferred: readonly string[];
  /** @param sent the request headers that are sent anyway, in lower case */
  for(credential: string, sent: Record<string, string>): Promise<Condition | null>;
}

/** The full answer for a 304 that confirms an empty list. Nothing of such a list is stored yet. */
export function emptyPage({ headers }: Condition, { headers: answered }: Received): Received {
  const etag = headers["if-none-match"];
  return { status: 200, headers: { ...answered, vary: EMPTY_VARIES_BY.replace(" ", ", "), etag }, text: "[]" };
}
