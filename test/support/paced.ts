import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import type { TestWorld } from "./world.ts";

/** Moves the mirror's clock and upstream's. */
export function pass({ simulator, advance }: Pick<TestWorld, "simulator" | "advance">, ms: number): void {
  // No other clock can be moved. Each world of the tests has a clock of this kind.
  (simulator.world.clock as SettableClock).advance(ms);
  advance(ms);
}

/** Does the work as the scheduler and a queue do: after a wait for the pace or the hour's quota it goes on. */
export async function paced<Value>(
  world: Pick<TestWorld, "simulator" | "advance" | "ctx">,
  work: () => Promise<Value>,
): Promise<Value> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof QuotaSpentError)) throw error;
      pass(world, Math.max(1_000, error.resetAt.getTime() - world.ctx.clock.now().getTime()));
    }
  }
}
