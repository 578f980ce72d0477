import { expect, test } from "vitest";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import { json, openUpstreamWorld, type Play, quotaHeaders } from "./world.ts";

const audit = { priority: "audit" } as const;

/** The token `near` sees repository 7, `far` sees repository 8, and issue 404 exists nowhere. */
const divided: Play = ({ url, token }, response) => {
  const mine = token === "near" ? "/repositories/7" : "/repositories/8";
  const isThere = url.startsWith(mine) && !url.endsWith("/404");
  json(response, isThere ? 200 : 404, isThere ? { token } : { message: "Not Found" }, quotaHeaders(4_000));
};

test("what one token may not see is asked of another, and from then on of that one alone", async () => {
  await using world = await openUpstreamWorld(divided, { tokens: ["near", "far"] });
  for (const repository of [7, 8]) {
    for (let times = 0; times < 4; times++)
      expect(await world.upstream.get(`/repositories/${repository}/issues`, audit)).toMatchObject({ kind: "ok" });
  }
  // For each repository at most one of the two tokens was asked once in vain.
  expect(world.asked.length).toBeLessThanOrEqual(10);
});

test("a 404 of a token that sees the repository is believed at once", async () => {
  await using world = await openUpstreamWorld(divided, { tokens: ["near", "far"] });
  await world.upstream.get("/repositories/7", audit);
  world.asked.length = 0;
  expect(await world.upstream.get("/repositories/7/issues/404", audit)).toMatchObject({ kind: "missing", status: 404 });
  expect(world.asked.length).toBeLessThanOrEqual(2);
  world.asked.length = 0;
  expect(await world.upstream.get("/repositories/7/issues/404", audit)).toMatchObject({ kind: "missing", status: 404 });
  expect(world.tokens()).toContain("near");
});

test("what no token sees is missing, after each was asked once, and is asked for again the next time", async () => {
  await using world = await openUpstreamWorld(divided, { tokens: ["near", "far"] });
  for (let times = 1; times <= 2; times++) {
    expect(await world.upstream.get("/repositories/9", audit)).toMatchObject({ kind: "missing", status: 404 });
    expect(world.tokens().sort()).toEqual([...Array(times).fill("far"), ...Array(times).fill("near")]);
  }
});

test("a 404 is no answer while the token that may see the repository has no quota left", async () => {
  await using world = await openUpstreamWorld(
    (asked, response, count) =>
      asked.token === "far" && asked.url !== "/user"
        ? json(response, 404, { message: "Not Found" }, quotaHeaders(4_000))
        : asked.token === "near"
          ? json(response, 200, {}, quotaHeaders(0))
          : divided(asked, response, count),
    { tokens: ["near", "far"] },
  );
  await world.upstream.get("/user", audit);
  await world.upstream.get("/user", audit);
  await expect(world.upstream.get("/repositories/7/issues", audit)).rejects.toThrow(QuotaSpentError);
});
