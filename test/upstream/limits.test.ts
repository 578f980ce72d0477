import { expect, test } from "vitest";
import { fingerprint } from "../../src/upstream/credentials/credentials.ts";
import { CredentialRejectedError, QuotaSpentError, UpstreamRefusedError } from "../../src/upstream/protocol/errors.ts";
import { readQuotaHeaders } from "../../src/upstream/protocol/headers.ts";
import { quotaReport } from "../../src/upstream/quota/report.ts";
import { at, json, openUpstreamWorld, quotaHeaders } from "./world.ts";

const spent = { message: "API rate limit exceeded for user ID 1.", status: "403" };
const secondary = {
  message: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
};

test("a spent quota is reported with its reset, and nothing more is sent until then", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 403, spent, quotaHeaders(0, { inS: 600 })),
  );
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({
    name: "QuotaSpentError",
    resetAt: at(600),
  });
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(600) });
  expect(world.asked).toHaveLength(1);

  world.play = (_, response) => json(response, 200, {}, quotaHeaders(4_999, { inS: 4_200 }));
  world.wait(599_999);
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toThrow(QuotaSpentError);
  world.wait(1);
  expect(await world.upstream.get("/user", { priority: "caller" })).toMatchObject({ kind: "ok" });
});

test("the last request of a window empties the bucket before upstream has to refuse one", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 200, {}, quotaHeaders(0, { inS: 60 })));
  await world.upstream.get("/user", { priority: "caller" });
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(60) });
  expect(world.asked).toHaveLength(1);
});

test("a reset that seems over by our clock does not make us ask again at once", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 403, spent, quotaHeaders(0, { inS: -30 })),
  );
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(1) });
  expect(world.asked).toHaveLength(1);
});

test("the reset is translated to our clock by the answer's Date", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    // Upstream's clock is ten minutes behind ours.
    json(response, 403, spent, { ...quotaHeaders(0, { inS: 0 }), date: at(-600).toUTCString() }),
  );
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(600) });
});

test("429 with Retry-After silences the token in every bucket until then", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 429, secondary, { ...quotaHeaders(4_000), "retry-after": "90" }),
  );
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(90) });
  await expect(world.upstream.graphql("{ viewer { login } }", {}, { priority: "caller" })).rejects.toMatchObject({
    resetAt: at(90),
  });
  await expect(world.upstream.write({ method: "POST", path: "/x", body: "{}" })).rejects.toMatchObject({
    resetAt: at(90),
  });
  const other = await world.another();
  await expect(other.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(90) });
  expect(world.asked).toHaveLength(1);
});

test("a Retry-After that is a date is understood", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 403, secondary, { date: at(0).toUTCString(), "retry-after": at(45).toUTCString() }),
  );
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(45) });
});

test("a secondary limit without Retry-After waits a minute, and twice as long each time it repeats", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 403, secondary, quotaHeaders(4_000)));
  const refusedUntil = async () => {
    const error = await world.upstream.get("/user", { priority: "caller" }).catch((reason) => reason);
    expect(error).toBeInstanceOf(QuotaSpentError);
    return error.resetAt.getTime() - world.ctx.clock.now().getTime();
  };
  for (const minutes of [1, 2, 4, 8, 15, 15]) {
    expect(await refusedUntil()).toBe(minutes * 60_000);
    world.wait(minutes * 60_000);
  }
  // After a quiet time the next refusal counts as the first.
  world.wait(16 * 60_000);
  expect(await refusedUntil()).toBe(60_000);
});

test("many requests refused by one incident count as one", async () => {
  await using world = await openUpstreamWorld(async (_, response, count) => {
    if (count === 1) return json(response, 200, {}, quotaHeaders(4_999));
    // All requests are under way before the first is refused.
    while (world.asked.length < 6) await new Promise(setImmediate);
    json(response, 403, secondary, { "x-request": String(count) });
  });
  await world.upstream.get("/user", { priority: "caller" });
  const errors = await Promise.all(
    Array.from({ length: 5 }, () => world.upstream.get("/user", { priority: "caller" }).catch((reason) => reason)),
  );
  expect(errors.map(({ resetAt }) => resetAt)).toEqual(Array(5).fill(at(60)));
});

test("a 429 that is a page of HTML is a limit too", async () => {
  await using world = await openUpstreamWorld((_, response) => {
    response.writeHead(429, { "content-type": "text/html" });
    response.end("<html><body>Too many requests</body></html>");
  });
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(60) });
});

test("a 503 with Retry-After is waited for, not repeated", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 503, { message: "Unavailable" }, { "retry-after": "30" }),
  );
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(30) });
  expect(world.asked).toHaveLength(1);
});

test("a 403 for want of permission is no limit and blocks nothing", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 403, { message: "Resource not accessible by personal access token" }, quotaHeaders(4_000)),
  );
  const error = await world.upstream.get("/repos/o/n", { priority: "caller" }).catch((reason) => reason);
  expect(error).toBeInstanceOf(UpstreamRefusedError);
  expect(error).toMatchObject({ status: 403, message: expect.stringContaining("Resource not accessible") });
  world.play = (_, response) => json(response, 200, {}, quotaHeaders(3_999));
  expect(await world.upstream.get("/user", { priority: "caller" })).toMatchObject({ kind: "ok" });
});

test("a rejected token gives way to another, is left alone for five minutes and then tried once", async () => {
  await using world = await openUpstreamWorld(
    ({ token }, response) =>
      token === "bad"
        ? json(response, 401, { message: "Bad credentials" })
        : json(response, 200, {}, quotaHeaders(4_000)),
    { tokens: ["bad", "good"] },
  );
  expect(await world.upstream.get("/user", { priority: "caller" })).toMatchObject({ kind: "ok" });
  expect(await world.upstream.get("/user", { priority: "caller" })).toMatchObject({ kind: "ok" });
  expect(world.tokens()).toEqual(["bad", "good", "good"]);
  const other = await world.another();
  await other.get("/user", { priority: "caller" });
  expect(world.tokens()).toEqual(["bad", "good", "good", "good"]);

  world.wait(5 * 60_000);
  await Promise.all(Array.from({ length: 6 }, () => world.upstream.get("/user", { priority: "caller" })));
  expect(world.tokens().filter((token) => token === "bad")).toHaveLength(2);
});

test("when every token is rejected the error names their fingerprints, not the tokens", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 401, { message: "Bad credentials" }), {
    tokens: ["ghp_first", "ghp_second"],
  });
  const error = await world.upstream.get("/user", { priority: "caller" }).catch((reason) => reason);
  expect(error).toBeInstanceOf(CredentialRejectedError);
  expect(error.credentials).toEqual([fingerprint("ghp_first"), fingerprint("ghp_second")]);
  expect(`${error.message} ${error.stack}`).not.toMatch(/ghp_/);
  expect(world.asked).toHaveLength(2);
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toThrow(CredentialRejectedError);
  expect(world.asked).toHaveLength(2);
});

test("a spent token gives way to another; the error tells the first moment of all", async () => {
  await using world = await openUpstreamWorld(
    ({ token }, response) => json(response, 403, spent, quotaHeaders(0, { inS: token === "late" ? 900 : 300 })),
    { tokens: ["late", "soon"] },
  );
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(300) });
  expect(world.tokens()).toEqual(["late", "soon"]);
});

test("requests go to the token with the most left", async () => {
  const left: Record<string, number> = { poor: 100, rich: 4_000 };
  await using world = await openUpstreamWorld(
    ({ token }, response) => json(response, 200, {}, quotaHeaders((left[token] ?? 0) - 1)),
    { tokens: ["poor", "rich"] },
  );
  for (let times = 0; times < 5; times++) await world.upstream.get("/user", { priority: "caller" });
  expect(world.tokens()).toEqual(["poor", "rich", "rich", "rich", "rich"]);
});

test("two processes share one budget and never send more than is left", async () => {
  let left = 12;
  await using world = await openUpstreamWorld((_, response) => {
    if (left === 0) return json(response, 403, spent, quotaHeaders(0));
    left -= 1;
    json(response, 200, {}, quotaHeaders(left));
  });
  const processes = [world.upstream, await world.another()];
  await processes[0]?.get("/user", { priority: "caller" });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 30 }, (_, index) => processes[index % 2]?.get("/user", { priority: "caller" })),
  );
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(11);
  expect(
    outcomes.filter((outcome) => outcome.status === "rejected" && outcome.reason instanceof QuotaSpentError),
  ).toHaveLength(19);
  expect(world.asked).toHaveLength(12);
});

test("each class leaves its floor to those above", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 200, {}, quotaHeaders(world.asked.length === 1 ? 300 : 290)),
  );
  await world.upstream.get("/user", { priority: "caller" });
  await expect(world.upstream.get("/user", { priority: "backfill" })).rejects.toThrow(QuotaSpentError);
  await expect(world.upstream.get("/user", { priority: "audit" })).rejects.toThrow(QuotaSpentError);
  expect(await world.upstream.get("/user", { priority: "catch-up" })).toMatchObject({ kind: "ok" });
  expect(world.asked).toHaveLength(2);
});

test("what others spend with the same token is noticed", async () => {
  await using world = await openUpstreamWorld((_, response, count) =>
    json(response, 200, {}, quotaHeaders(count === 1 ? 4_999 : 2)),
  );
  await world.upstream.get("/user", { priority: "backfill" });
  await world.upstream.get("/user", { priority: "backfill" });
  await expect(world.upstream.get("/user", { priority: "backfill" })).rejects.toThrow(QuotaSpentError);
  expect(await world.upstream.get("/user", { priority: "caller" })).toMatchObject({ kind: "ok" });
});

test("the buckets are apart: a spent search leaves the rest alone", async () => {
  await using world = await openUpstreamWorld(({ url }, response) =>
    url.startsWith("/search/")
      ? json(response, 403, spent, quotaHeaders(0, { limit: 30, resource: "search", inS: 60 }))
      : json(response, 200, {}, quotaHeaders(4_000)),
  );
  await expect(world.upstream.get("/search/issues?q=x", { priority: "caller" })).rejects.toMatchObject({
    bucket: "search",
    resetAt: at(60),
  });
  expect(await world.upstream.get("/user", { priority: "caller" })).toMatchObject({ kind: "ok" });
});

test("after Redis has lost its memory the budget comes back with the next answer", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 200, {}, quotaHeaders(7)));
  await world.upstream.get("/user", { priority: "caller" });
  const keys = await world.ctx.redis.keys(`${world.ctx.config.redisPrefix}:*`);
  await world.ctx.redis.del(...keys);
  await world.upstream.get("/user", { priority: "caller" });
  expect((await quotaReport(world.ctx))[0]).toMatchObject({
    bucket: "core",
    limit: 5_000,
    remaining: 7,
    resetAt: at(3_600),
  });
});

test("with Redis down nothing is sent, and all are told to come back soon", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 200, {}, quotaHeaders(4_000)), {
    redis: "down",
  });
  for (const priority of ["caller", "refresh", "catch-up", "audit", "backfill"] as const) {
    const error = await world.upstream.get("/user", { priority }).catch((reason) => reason);
    expect(error).toBeInstanceOf(QuotaSpentError);
    expect(error.resetAt).toEqual(at(2));
    expect(error.message).toContain("while Redis does not answer");
  }
  expect(world.asked).toHaveLength(0);
  expect(await quotaReport(world.ctx)).toContainEqual(
    expect.objectContaining({ bucket: "core", limit: null, remaining: null }),
  );
});

test("with Redis down a command asks all the same, but no token again that was rejected", async () => {
  await using world = await openUpstreamWorld(
    ({ token }, response) => (token === "bad" ? json(response, 401, {}) : json(response, 200, {}, quotaHeaders(4_000))),
    { redis: "down", isCommand: true, tokens: ["bad", "good"] },
  );
  for (let times = 0; times < 2; times++)
    expect(await world.upstream.get("/user", { priority: "caller" })).toMatchObject({ kind: "ok" });
  expect(world.tokens()).toEqual(["bad", "good", "good"]);
  const only = await world.another({ upstreamTokens: ["bad"] });
  await expect(only.get("/user", { priority: "caller" })).rejects.toThrow(CredentialRejectedError);
  await expect(only.get("/user", { priority: "caller" })).rejects.toThrow(CredentialRejectedError);
  expect(world.tokens().slice(3)).toEqual(["bad"]);
});

test("with Redis down a limit ends a command's question, and says when to come back", async () => {
  await using world = await openUpstreamWorld(
    (_, response) => json(response, 429, secondary, { "retry-after": "20" }),
    { redis: "down", isCommand: true },
  );
  for (let times = 0; times < 2; times++)
    await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(20) });
  expect(world.asked).toHaveLength(1);
});

test("the report shows what is known, by fingerprint", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 200, {}, quotaHeaders(4_321)), {
    tokens: ["ghp_secret"],
  });
  await world.upstream.get("/user", { priority: "caller" });
  const report = await quotaReport(world.ctx);
  const credential = fingerprint("ghp_secret");
  const said = { credential, name: `token ${credential}`, sharedWith: [], problem: null };
  expect(report).toEqual([
    {
      ...said,
      bucket: "core",
      limit: 5_000,
      remaining: 4_321,
      resetAt: at(3_600),
      copying: { left: 3_821, perWindow: 4_500 },
      blockedUntil: null,
      rejectedUntil: null,
      rejectedSince: null,
    },
    ...["graphql", "search"].map((bucket) => ({
      ...said,
      bucket,
      limit: null,
      remaining: null,
      resetAt: null,
      copying: null,
      blockedUntil: null,
      rejectedUntil: null,
      rejectedSince: null,
    })),
  ]);
});

test("a window ends within the hour, whatever the answer's date says", () => {
  const now = Date.parse("2026-03-01T12:00:00Z");
  const reset = now / 1_000 + 1_200;
  const endFor = (date: string | undefined, end = reset) =>
    (readQuotaHeaders(
      {
        ...(date && { date }),
        "x-ratelimit-limit": "5000",
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": `${end}`,
      },
      now,
    )?.resetAt ?? 0) - now;
  // Hours behind, hours ahead, none and none that can be read.
  for (const date of ["Sun, 01 Mar 2026 07:00:00 GMT", "Sun, 01 Mar 2026 17:00:00 GMT", undefined, "yesterday"])
    expect(endFor(date)).toBe(1_200_000);
  // Upstream's clock is an hour and a half ahead, and its window with it.
  expect(endFor("Sun, 01 Mar 2026 13:30:00 GMT", reset + 5_400)).toBe(1_200_000);
});
