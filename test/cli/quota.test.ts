import { expect, test } from "vitest";
import { noteQuota } from "../../src/upstream/quota/history.ts";
import { withOutlooks } from "../../src/upstream/quota/outlook.ts";
import { eventually } from "../support/patience.ts";
import { openWorld } from "../support/world.ts";
import { tainOn } from "./tain-on.ts";

test("what upstream's quota is spent on, for whom by name, and where it leads", async () => {
  await using world = await openWorld({ workers: false });
  const { ctx } = world;
  const { id, userId } = (await tainOn(world, ["token", "create", "--limit", "50", "--json"])).json;
  const at = (ago: number) => ({ ...ctx, clock: { now: () => new Date(Date.now() - ago) } });
  const spend = (caller: string, times: number) =>
    Promise.all(Array.from({ length: times }, () => ctx.upstream.get("/user", { priority: "audit", caller })));
  await spend(`t${id}`, 3);
  await noteQuota(at(120_000));
  await spend(`u${userId}`, 5);
  await spend("u4711", 2);
  await spend("strangers", 4);
  await noteQuota(at(0));
  await eventually(async () => {
    const told = await tainOn(world, ["quota"]);
    expect(told.stdout).toMatch(/^token \w+ +core +[\d,]+ of 5,000 +in .* 5\.5 a minute: about [\d,]+ are left then$/m);
    for (const [who, cost] of [
      [`token ${id} of mirror-owner`, 3],
      ["mirror-owner", 5],
      ["user 4711", 2],
      ["callers without a token", 4],
    ])
      expect(told.stdout).toMatch(new RegExp(`^audit +/user +${who} +core +${cost}$`, "m"));
  });
  const { json } = await tainOn(world, ["quota", "--limit", "1", "--json"]);
  expect(json).toMatchObject({ spent: [{ cost: 5, who: "mirror-owner" }], history: [{}, {}] });
  expect(json.quota).toContainEqual(expect.objectContaining({ bucket: "core", outlook: expect.any(Object) }));
  const blind = await tainOn(world, ["quota"], { REDIS_URL: "redis://127.0.0.1:1" });
  expect(blind.stdout).toContain("Redis does not answer, so it is not known what was spent within the last hour.");
});

test("an outlook is of one window, and says when it will be spent", () => {
  const minute = 60_000;
  const resetAt = 100 * minute;
  const report = {
    ...{ credential: "one", name: "token one", sharedWith: [], bucket: "core", limit: 5_000, remaining: 1_000 },
    ...{
      resetAt: new Date(resetAt),
      copying: null,
      blockedUntil: null,
      rejectedUntil: null,
      rejectedSince: null,
      problem: null,
    },
  };
  let copiesEndedAt: Date | null = new Date(0);
  const outlook = (...samples: [at: number, remaining: number, resetAt?: number][]) =>
    withOutlooks(
      [report],
      samples.map(([at, remaining, until = resetAt]) => ({
        at: at * minute,
        figures: [
          { credential: "one", bucket: "core", limit: 5_000, remaining, resetAt: until },
          { credential: "other", bucket: "core", limit: 5_000, remaining: 1, resetAt: until },
        ],
      })),
      copiesEndedAt,
    )[0]?.outlook;
  expect(outlook()).toBe(null);
  expect(outlook([40, 900])).toBe(null);
  expect(outlook([40, 1_000], [50, 900])).toEqual({ perMinute: 10, leftAtReset: 400, spentAt: null });
  expect(outlook([40, 1_000], [50, 500])).toEqual({
    perMinute: 50,
    leftAtReset: 0,
    spentAt: new Date(60 * minute),
  });
  // Counts from before the window, or from more than ten minutes ago, say nothing of the pace.
  expect(outlook([41, 10, 42 * minute], [44, 1_000], [50, 940])).toMatchObject({ perMinute: 10 });
  expect(outlook([20, 5_000], [40, 1_000], [50, 900])).toMatchObject({ perMinute: 10 });
  // The last count may be older than the report.
  expect(outlook([40, 4_000], [50, 4_000])).toMatchObject({ leftAtReset: 1_000 });
  // A window that becomes longer does not make the pace negative.
  expect(outlook([40, 900], [50, 1_000])).toEqual({ perMinute: 0, leftAtReset: 1_000, spentAt: null });

  // What a first copy spends foretells nothing, while it runs and once it has ended.
  const copy = [
    [40, 4_000],
    [44, 1_000],
    [50, 940],
  ] as const;
  copiesEndedAt = null;
  expect(outlook(...copy.map(([...one]) => one))).toBe(null);
  copiesEndedAt = new Date(44 * minute);
  expect(outlook(...copy.map(([...one]) => one))).toMatchObject({ perMinute: 10 });
  copiesEndedAt = new Date(45 * minute);
  expect(outlook(...copy.map(([...one]) => one))).toBe(null);
});
