/** An outage of a store is borne where the code expects one. A mistake of ours is not taken for an outage. */
import { expect, test } from "vitest";
import { Replicas } from "../../db/replicas.ts";
import { LastHour, sumsOfLastHour } from "../../src/operations/last-hour.ts";
import { openRedis, RedisSilentError, withPatience } from "../../src/operations/redis.ts";
import { eachAlone } from "../../src/sync/problems/isolated.ts";
import { noteQuota, quotaHistory } from "../../src/upstream/quota/history.ts";
import { quotaReport } from "../../src/upstream/quota/report.ts";
import { openMirror } from "../support/mirror.ts";

test("what Redis refuses as a mistake of ours is thrown, and its absence leaves figures unknown", async () => {
  await using mirror = await openMirror({ web: false });
  const { ctx } = mirror;
  await noteQuota(ctx);
  expect(await quotaHistory(ctx)).toHaveLength(1);
  await using away = new AsyncDisposableStack();
  const silent = { ...ctx, redis: openRedis({ ...ctx, config: { redisUrl: "redis://127.0.0.1:1" } }, "away") };
  away.defer(() => silent.redis.disconnect());
  await expect(withPatience(silent.redis, () => silent.redis.get("a"))).rejects.toThrow(RedisSilentError);
  expect(await quotaHistory(silent)).toBeNull();
  expect(await sumsOfLastHour(silent, "sums")).toBeNull();
  expect((await quotaReport(silent)).map(({ remaining }) => remaining)).toContain(null);

  const sums = new LastHour(ctx, "sums");
  sums.note(["one"], 1);
  await sums.flush();
  expect(await sumsOfLastHour(ctx, "sums")).toEqual([{ words: ["one"], sum: 1 }]);
  // This stands for another part of Tain that has written to these keys.
  for (const key of await ctx.redis.keys(`${ctx.config.redisPrefix}:*`))
    await ctx.redis.del(key).then(() => ctx.redis.sadd(key, "x"));
  await expect(quotaHistory(ctx)).rejects.toThrow("WRONGTYPE");
  await expect(sumsOfLastHour(ctx, "sums")).rejects.toThrow("WRONGTYPE");
  // Redis runs a transaction to its end, and tells errors of single commands in its result.
  await expect(noteQuota(ctx)).rejects.toThrow("WRONGTYPE");
  const told: unknown[] = [];
  const log = { ...ctx.log, error: (what: object) => void told.push(what) } as typeof ctx.log;
  const refused = new LastHour({ ...ctx, log }, "sums");
  refused.note(["one"], 1);
  await refused.flush();
  expect(told).toEqual([{ err: expect.objectContaining({ name: "ReplyError" }), sums: "sums" }]);
});

test("of several things that were stopped by what is no fault of theirs, the first is thrown and the others are logged", async () => {
  await using mirror = await openMirror({ web: false });
  const told: unknown[] = [];
  const log = { ...mirror.ctx.log, warn: (what: object) => void told.push(what) } as typeof mirror.ctx.log;
  const outage = (name: string) => Object.assign(new Error(name), { code: "ECONNREFUSED" });
  const all = eachAlone({ ...mirror.ctx, log }, ["first", "second", "third"], {
    subjectOf: (key) => ({ task: "hook", key, repositoryId: null }),
    atOnce: 3,
    work: (name) => Promise.reject(outage(name)),
  });
  await expect(all).rejects.toThrow("first");
  expect(told).toEqual([{ err: outage("second") }, { err: outage("third") }]);
});

test("replicas are left out, and say why, when the primary answers but does not tell where it is", async () => {
  const reads = (error: Error) =>
    new Replicas(["postgres://nobody@127.0.0.1:1/none"], {
      lanes: {
        reads: { maxConnections: 1, statementTimeoutMs: 1_000 },
        searches: { maxConnections: 1, statementTimeoutMs: 1_000 },
      },
      applicationName: "test",
      waitMs: 1_000,
      random: () => 0.5,
      position: () => Promise.reject(error),
      changed: () => {},
      answered: () => {},
    });
  const refused = reads(new Error("permission denied for table eras"));
  await refused.tried();
  expect(refused.states()[0]?.leftOut).toBe("the primary does not say where it is: permission denied for table eras");
  const away = reads(Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));
  await away.tried();
  expect(await away.position()).toBeNull();
  expect(away.states()[0]?.leftOut).toBe("not asked yet");
  await Promise.all([refused.close(), away.close()]);
});
