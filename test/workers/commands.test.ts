import { expect, test } from "vitest";
import { listTargets } from "../../src/events/target.ts";
import { openRedis } from "../../src/operations/redis.ts";
import { askCommand } from "../../src/queues/commands.ts";
import { openCommandsWorker } from "../../workers/commands.ts";
import { AWAITED_LOCKS, connectTo } from "../support/database.ts";
import { until } from "../support/patience.ts";
import { openWorkerWorld } from "./worker-world.ts";

test("a command that has ended is not begun again, though its worker stops and cannot tell what came of it", async () => {
  await using world = await openWorkerWorld();
  const { ctx } = world;
  const telling = openRedis(ctx, "telling");
  const stop = new AbortController();
  const worker = openCommandsWorker({ ...ctx, redis: telling, stopping: stop.signal });
  const holder = await connectTo(ctx.config.databaseUrl);
  try {
    // The command stops in the middle, because another connection holds the table's lock.
    await holder.query("begin");
    await holder.query("lock table targets in access exclusive mode");
    await askCommand(ctx, { name: "targets add", args: ["https://ci.example/hook"] });
    await until("the command waits for the table", async () => {
      const { rows } = await holder.query(`select from ${AWAITED_LOCKS} where relation = 'targets'::regclass`);
      return rows.length > 0;
    });
    telling.disconnect();
    stop.abort();
  } finally {
    await holder.end();
  }
  await worker.close();
  openCommandsWorker(ctx);
  const queue = ctx.queues.commands;
  await until("no command waits", async () => (await queue.getJobCountByTypes("waiting", "active", "delayed")) === 0);
  expect(await listTargets(ctx)).toHaveLength(1);
});
