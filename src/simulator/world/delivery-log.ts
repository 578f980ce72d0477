import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { Clock } from "./clock.ts";

export interface Delivery {
  /** Above 2^53, as the service's have been since February 2026. */
  readonly id: bigint;
  /** Per event: hooks that hear the same event share it, and so does a redelivery. */
  readonly guid: string;
  readonly hookId: number;
  readonly repositoryId: number | null;
  /** The installation that an App was told of. */
  readonly installationId: number | null;
  readonly event: string;
  readonly action: string | null;
  /** Epoch milliseconds. */
  readonly deliveredAt: number;
  readonly redelivery: boolean;
  /** When it was held back before it was sent. */
  readonly throttledAt: number | null;
  readonly durationMs: number;
  /** "OK", or what went wrong. */
  readonly status: string;
  readonly statusCode: number;
  readonly url: string;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly responseHeaders: Readonly<Record<string, string>> | null;
  readonly responsePayload: string | null;
  /** The JSON that was sent: the original snapshot, also on redelivery. */
  payload(): string;
}

// GitHub: redelivery is possible for three days; payloads rest compressed, they are much alike inside.
const KEPT_MS = 3 * 24 * 3_600_000;

/** Keeps a payload small until it is asked for. */
export function packed(json: string): () => string {
  // A copy: what zlib answers may be a small part of Node's buffer pool, and would keep all of it.
  const bytes = new Uint8Array(deflateRawSync(json, { level: 1 }));
  return () => inflateRawSync(bytes).toString("utf8");
}

/** What was sent to each hook, newest first, for three days. */
export class DeliveryLog {
  readonly #clock: Clock;
  /** By hook, ascending by id. */
  readonly #byHook = new Map<number, Delivery[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(delivery: Delivery): void {
    const log = this.#byHook.get(delivery.hookId) ?? [];
    this.#byHook.set(delivery.hookId, log);
    log.push(delivery);
    const oldest = this.#clock.now() - KEPT_MS;
    const kept = log.findIndex(({ deliveredAt }) => deliveredAt >= oldest);
    log.splice(0, kept === -1 ? log.length : kept);
  }

  find(hookId: number, id: bigint): Delivery | undefined {
    return this.#kept(hookId).find((delivery) => delivery.id === id);
  }

  /** Newest first, those older than `before` (a delivery id, exclusive). `failed` is what is not "OK". */
  list(hookId: number, options: { readonly before?: bigint; readonly status?: "success" | "failure" }): Delivery[] {
    return this.#kept(hookId)
      .filter((delivery) => options.before === undefined || delivery.id < options.before)
      .filter(
        (delivery) => options.status === undefined || (delivery.status === "OK") === (options.status === "success"),
      )
      .sort((a, b) => (a.id < b.id ? 1 : -1));
  }

  #kept(hookId: number): Delivery[] {
    const oldest = this.#clock.now() - KEPT_MS;
    return (this.#byHook.get(hookId) ?? []).filter((delivery) => delivery.deliveredAt >= oldest);
  }
}
