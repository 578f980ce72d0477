import { expect, test } from "vitest";
import { openHeartbeat } from "../../src/operations/heartbeat.ts";
import { VIEWS } from "../../src/operator/views.ts";
import { openLink } from "../receiver/breakable-link.ts";
import { testRedis } from "../support/database.ts";
import { openMirror } from "../support/mirror.ts";
import { eventually, until } from "../support/patience.ts";

test("each process is told with its last sign, a killed one as silent, and nothing of them without Redis", async () => {
  const link = await openLink(testRedis().url);
  {
    await using mirror = await openMirror({ web: false, env: { REDIS_URL: link.url } });
    const { ctx } = mirror;
    const told = async () => await VIEWS.queues?.(ctx, new URLSearchParams());
    const none = { living: 0, beats: [], silent: [], lastBeatAt: null };
    expect(await told()).toMatchObject({
      processes: ["worker", "scheduler", "web"].map((role) => ({ role, ...none })),
      queues: { deliveries: { waiting: 0 } },
      failed: [],
    });

    await using _life = openHeartbeat(ctx, "scheduler");
    const killedAt = ctx.clock.now().getTime() - 60_000;
    // As a worker leaves it that was killed a minute ago.
    await ctx.redis.hset(`${ctx.config.redisPrefix}:processes`, { worker: killedAt, "worker gone:1": killedAt });
    await eventually(async () =>
      expect(await told()).toMatchObject({
        processes: [
          {
            ...{ role: "worker", living: 0, beats: [] },
            silent: [{ name: "gone:1", since: new Date(killedAt) }],
            lastBeatAt: new Date(killedAt),
          },
          {
            ...{ role: "scheduler", living: 1, silent: [] },
            beats: [{ name: expect.stringMatching(/:\d+$/), at: expect.any(Date) }],
          },
          { role: "web", ...none },
        ],
      }),
    );

    await link.cut();
    await until("Redis is away", async () => ctx.redis.status !== "ready");
    expect(await told()).toEqual({ processes: null, queues: null, failed: null });
    await link.mend();
  }
  await link[Symbol.asyncDispose]();
});
