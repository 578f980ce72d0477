import { isUtf8 } from "node:buffer";
import { verify } from "@octokit/webhooks-methods";
import { type HookHolder, hookSecret } from "../config/hook-secrets.ts";
import type { Logger } from "../operations/log.ts";
import { Threads, ThreadsBusyError, TooMuchWorkError } from "../work/threads.ts";
import { type Envelope, emptyBody } from "./envelope.ts";
import { DeliveryFault } from "./fault.ts";

/**
 * A smaller body is checked within a few milliseconds. The largest would hold the event loop for some hundred
 * milliseconds.
 */
const HASHED_APART_BYTES = 512 * 1024;

interface SignatureCheck {
  /** `sha256=` and 64 hexadecimal digits. */
  signature: string;
  /** Tried in this order. */
  groups: readonly (readonly string[])[];
}

/**
 * The group whose secret signed exactly this text; -1: none.
 * @param text is not empty, and was well-formed UTF-8: encoded again, it gives exactly the bytes that came
 */
export async function signedBy(text: string, { signature, groups }: SignatureCheck): Promise<number> {
  for (const [at, secrets] of groups.entries()) {
    for (const secret of secrets) if (await verify(secret, text, signature)) return at;
  }
  return -1;
}

/** A check on a thread of its own. */
export interface LargeBodyCheck extends SignatureCheck {
  body: Uint8Array;
}

/** Checks who signed a delivery. */
export class Signatures {
  readonly #secrets: readonly string[];
  readonly #threads: Threads<LargeBodyCheck, number>;

  /** @param secrets those of WEBHOOK_SECRET */
  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
    const module = new URL("./signature-thread.ts", import.meta.url);
    this.#threads = new Threads(module, { size: 1, mostWaiting: 50, budgetMs: 20_000 });
  }

  /**
   * Answers the holder whose own secret signed exactly these bytes; null: one of WEBHOOK_SECRET itself did, as of hooks
   * that were made before holders had secrets of their own.
   * @param envelope.holder whose hook it is, by headers that nobody signs: they only choose which secret is tried
   * @throws DeliveryFault 400 for a body that is empty or not UTF-8, 401 for a wrong signature, 503 when too many large
   *   bodies are being checked
   */
  async require(
    body: Buffer,
    { signature, holder }: Pick<Envelope, "signature" | "holder">,
  ): Promise<HookHolder | null> {
    if (body.length === 0) throw emptyBody();
    if (!isUtf8(body)) throw new DeliveryFault(400, "The body is not UTF-8: JSON and forms are sent in UTF-8");
    const own = holder ? this.#secrets.map((secret) => hookSecret(secret, holder)) : [];
    const check = { signature, groups: [own, this.#secrets] };
    const group =
      body.length < HASHED_APART_BYTES
        ? await signedBy(body.toString("utf8"), check)
        : await this.#threads.run({ body, ...check }).catch(later);
    if (group === 0) return holder;
    if (group === 1) return null;
    throw new DeliveryFault(
      401,
      "X-Hub-Signature-256 does not match the body: the hook's secret is none that WEBHOOK_SECRET gives it",
    );
  }

  close(): Promise<void> {
    return this.#threads.close();
  }
}

/** @throws always: what is a bug of ours as it is */
function later(error: unknown): never {
  if (!(error instanceof ThreadsBusyError || error instanceof TooMuchWorkError)) throw error;
  throw new DeliveryFault(503, "Too many large bodies are being checked at the moment: send it again later", {
    cause: error,
  });
}

/** Further hooks are not told apart. Once these are mended, the next start names the others. */
const MOST_HOOKS = 1_000;

/**
 * Says once of each hook that it signs with WEBHOOK_SECRET itself, as hooks did that were made before each had its own.
 */
export class CommonSecret {
  readonly #log: Logger;
  readonly #told = new Set<number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  note({ hookId, holder }: Pick<Envelope, "hookId" | "holder">): void {
    if (this.#told.has(hookId) || this.#told.size === MOST_HOOKS) return;
    this.#told.add(hookId);
    this.#log.warn(
      { hookId, [holder?.type ?? "target"]: holder?.id },
      "A hook signs with WEBHOOK_SECRET itself, which can sign for all: `tain hooks register` gives it its own",
    );
  }
}
