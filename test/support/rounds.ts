import type { SettableClock } from "../../src/simulator/clock.ts";
import type { Repository } from "../../src/simulator/records.ts";
import { dispatchMarks } from "../../src/sync/refresh/marks.ts";
import type { TestWorld } from "./world.ts";

/** Mirrors the first repository, and answers it as the simulator has it. Its webhooks arrive from then on. */
export async function mirrorFirst(world: TestWorld): Promise<Repository> {
  const [owner = "", name = ""] = world.first.split("/");
  const found = world.simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  await world.mirror(world.first);
  await world.listen(world.first);
  return found;
}

/** Lets the scheduler's next round come after so long, and all that it asks for be done. @param markDue marks the part that is due then */
export async function passRound(
  world: TestWorld,
  ms: number,
  markDue: (ctx: TestWorld["ctx"]) => Promise<unknown>,
): Promise<void> {
  const { ctx } = world;
  await world.settle();
  world.advance(ms);
  // Of two changes within a second nobody could tell which is the later.
  (world.simulator.world.clock as SettableClock).advance(ms + 2_000);
  await markDue(ctx);
  await ctx.queues.refresh.clean(0, 1_000, "delayed");
  await dispatchMarks(ctx);
  await world.settle();
}
