import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import type { TestWorld } from "./world.ts";

/** Mirrors the first repository, and registers its hook. Answers the repository as the simulator has it. */
export async function mirrorFirst(world: TestWorld): Promise<Repository> {
  const [owner = "", name = ""] = world.first.split("/");
  const found = world.simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  await world.mirror(world.first);
  await world.listen(world.first);
  return found;
}

/**
 * Lets the time pass, then does the scheduler's next round and all work that it asks for.
 * @param markDue marks the part that is due then
 */
export async function passRound(
  world: TestWorld,
  ms: number,
  markDue: (ctx: TestWorld["ctx"]) => Promise<unknown>,
): Promise<void> {
  const { ctx } = world;
  await world.settle();
  world.advance(ms);
  // Two changes within a second could not be told apart.
  (world.simulator.world.clock as SettableClock).advance(ms + 2_000);
  await markDue(ctx);
  await ctx.queues.refresh.clean(0, 1_000, "delayed");
  await dispatchMarks(ctx);
  await world.settle();
}
