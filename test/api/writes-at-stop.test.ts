import { expect, test } from "vitest";
import { pushBranch } from "../../src/simulator/changes/pulls.ts";
import { until } from "../support/patience.ts";
import { openApiWorld } from "./api-world.ts";

test("a web process that stops waits for no lagging replica: it answers the write, which is stored", async () => {
  await using world = await openApiWorld({ issues: 10, repositories: 1, mergeableDelayMs: 0 });
  const { world: upstream } = world.upstream;
  const repository = upstream.repositories.get(world.repositories[0]?.id ?? 0);
  if (!repository) throw new Error("The generated world has no repository");
  const pulls = `/repos/${world.repositories[0]?.fullName}/pulls`;
  pushBranch(upstream, world.userId, repository, "late");
  world.upstream.setFaults({ lagMs: 600_000 });
  world.upstream.meter.reset();

  const body = JSON.stringify({ title: "late", head: "late", base: repository.defaultBranch });
  const answering = world.send("POST", pulls, { body });
  await until("replicas were asked about it", async () => world.upstream.meter.read().requests > 3);
  const stoppedAt = performance.now();
  const [answer] = await Promise.all([answering, world.restart({})]);
  expect(answer.status).toBe(201);
  // Replicas may lag for ten seconds.
  expect(performance.now() - stoppedAt).toBeLessThan(5_000);
  expect((await world.get(`${pulls}/${answer.body.number}`)).body).toMatchObject({ title: "late", state: "open" });
});
