import { expect, test } from "vitest";
import { forecast } from "../../src/health/forecast.ts";
import type { QuotaReport } from "../../src/upstream/quota/report.ts";
import { at } from "./world.ts";

const begin = at(0).getTime();

function token(left: number, { inS = 3_600, perWindow = 450, bucket = "core", rejected = false } = {}): QuotaReport {
  return {
    ...{ name: "token one", sharedWith: [], problem: null },
    ...{ credential: "one", bucket, limit: 500, remaining: left, resetAt: at(inS), blockedUntil: null },
    ...{ copying: { left, perWindow }, rejectedUntil: rejected ? at(300) : null, rejectedSince: null },
  };
}

test("with quota enough, the pace alone decides", () => {
  expect(forecast({ requests: 300, perSecond: 2 }, [token(450)], begin)).toEqual({
    finishesAt: at(150).toISOString(),
    waitsForQuota: false,
  });
});

test("work for several windows waits for each reset", () => {
  // 450 in this hour, 450 in the next, and 100 in the hour after.
  expect(forecast({ requests: 1_000, perSecond: 1 }, [token(450)], begin)).toEqual({
    finishesAt: at(7_300).toISOString(),
    waitsForQuota: true,
  });
});

test("a slow pace never waits, however many windows it takes", () => {
  expect(forecast({ requests: 1_000, perSecond: 0.1 }, [token(450)], begin)).toEqual({
    finishesAt: at(10_000).toISOString(),
    waitsForQuota: false,
  });
});

test("several tokens add up, each with its own reset; another bucket or a rejected token does not count", () => {
  const tokens = [token(0, { inS: 60 }), token(100), token(450, { bucket: "graphql" }), token(450, { rejected: true })];
  // It sends 100 in 10 s, and then waits for the first token's reset.
  expect(forecast({ requests: 200, perSecond: 10 }, tokens, begin)).toEqual({
    finishesAt: at(70).toISOString(),
    waitsForQuota: true,
  });
});

test.each([
  ["nothing moves", { requests: 10, perSecond: 0 }, [token(450)]],
  ["no answer has told the quota yet", { requests: 10, perSecond: 1 }, []],
  ["the share leaves nothing to copies", { requests: 10, perSecond: 1 }, [token(0, { perWindow: 0 })]],
])("when %s, nobody knows", (_, work, quota) => {
  expect(forecast(work, quota, begin)).toBeNull();
});
