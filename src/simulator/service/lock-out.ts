import type { FaultSettings } from "../faults/faults.ts";
import type { Service } from "../rest/call.ts";
import { credentialOf } from "../rest/negotiation.ts";
import { Refusal } from "../world/refusal.ts";
import type { Exchange } from "./exchange.ts";

const MINUTE_MS = 60_000;

/**
 * A caller who tries a revoked token too often is refused for a while, with every other token of the account too. The
 * service tells neither how often nor how long: both are the fault's.
 */
export class LockOut {
  /** By account: when such tokens were tried. */
  readonly #tries = new Map<number, number[]>();
  readonly #until = new Map<number, number>();

  refuses({ request, token }: Exchange, { tokens, world }: Service, fault: FaultSettings["lockOut"]): Refusal | null {
    if (!fault) return null;
    const credential = credentialOf(request.headers.authorization);
    const userId = token?.userId ?? (credential ? tokens.formerOwner(credential) : undefined);
    if (userId === undefined) return null;
    const now = world.clock.now();
    if (!token) {
      const tries = [...(this.#tries.get(userId) ?? []).filter((at) => at > now - MINUTE_MS), now];
      this.#tries.set(userId, tries);
      if (tries.length >= fault.attempts) this.#until.set(userId, now + fault.seconds * 1_000);
    }
    if (now >= (this.#until.get(userId) ?? 0)) return null;
    return new Refusal(403, "Maximum number of login attempts exceeded. Please try again later.");
  }
}
