/**
 * Writes beside reads: one that shows their effect before upstream's answer arrives, and one that does not show it yet.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { fetchAndStorePage } from "../../src/sync/reads/pages.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await openApiWorld({ issues: 20, repositories: 1, upstreamTokens: 20 });
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** The next write is answered only once a list was read that shows it already. */
function readMeanwhile(kind: "issue" | "pull_request", list: string): void {
  const [repository] = world.repositories;
  if (!repository) throw new Error("There is no repository");
  const { ctx } = world;
  const write = ctx.upstream.write.bind(ctx.upstream);
  vi.spyOn(ctx.upstream, "write").mockImplementationOnce(async (...request) => {
    const answer = await write(...request);
    const mirrored = { ...repository, nodeId: null, htmlUrl: null, state: "live", mirrors: [] } as const;
    await fetchAndStorePage(ctx, mirrored, kind, `/repositories/${repository.id}/${list}`, "catch-up");
    return answer;
  });
}

test("a comment that a read has counted already is not counted twice", async () => {
  const issues = `/repos/${world.repositories[0]?.fullName}/issues`;
  const { number } = (await world.send("POST", issues, { body: JSON.stringify({ title: "to be commented on" }) })).body;
  const comment = () =>
    world.send("POST", `${issues}/${number}/comments`, { body: JSON.stringify({ body: "a comment" }) });
  const shown = async () => (await world.get(`${issues}/${number}`)).body.comments;

  expect((await comment()).status).toBe(201);
  expect(await shown()).toBe(1);
  // The read shows a later second than the mirror knows, and so is stored.
  (world.upstream.world.clock as SettableClock).advance(2_000);
  readMeanwhile("issue", "issues?state=all&sort=updated&direction=desc&per_page=5");
  expect((await comment()).status).toBe(201);
  expect(await shown()).toBe(2);
  expect((await comment()).status).toBe(201);
  expect(await shown()).toBe(3);
});

test("what a write implied is not taken back by what a replica that has not heard of it shows after the next write", async () => {
  const issues = `/repos/${world.repositories[0]?.fullName}/issues`;
  const { number } = (await world.send("POST", issues, { body: JSON.stringify({ title: "to be locked" }) })).body;
  const said = await world.send("POST", `${issues}/${number}/comments`, {
    body: JSON.stringify({ body: "a comment" }),
  });
  const lock = () => world.send("PUT", `${issues}/${number}/lock`, { body: JSON.stringify({ lock_reason: "spam" }) });
  expect((await lock()).status).toBe(204);
  const shown = async () => (await world.get(`${issues}/${number}`)).body;
  expect(await shown()).toMatchObject({ comments: 1, locked: true });

  // Replicas stay behind, for upstream's time stands still.
  world.upstream.setFaults({ lagMs: 2_500 });
  expect((await world.send("DELETE", `${issues}/comments/${said.body.id}`)).status).toBe(204);
  expect(await shown()).toMatchObject({ comments: 0, locked: true });
  // The issue is locked already. So the replica seems to confirm the lock, but with the count that includes the
  // deleted comment.
  expect((await lock()).status).toBe(204);
  expect((await world.getUpstream(`${issues}/${number}`)).body).toMatchObject({ comments: 1, locked: true });
  expect(await shown()).toMatchObject({ comments: 0, locked: true });
});
