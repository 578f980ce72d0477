import { expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { openWorld } from "../support/world.ts";

/** How many changes are measured: `CHANGES=500 npm test -- test/scenario/freshness` measures more. */
const CHANGES = Number(process.env.CHANGES ?? 24);

test("every change at upstream shows in the API through its webhook", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 40, pulls: 10 }),
    simulator: { quota: { limits: { restPointsPerMinute: 1e9, contentPerMinute: 1e9, contentPerHour: 1e9 } } },
    env: { RATE_LIMIT_USER: "0" },
  });
  await world.mirror(world.first);
  await world.listen(world.first);
  const ask = async (method: string, path: string, body: object) => {
    const headers = {
      authorization: `token ${UPSTREAM_TOKEN}`,
      "user-agent": "test",
      "content-type": "application/json",
    };
    const response = await fetch(`${world.simulator.url}${path}`, { method, headers, body: JSON.stringify(body) });
    expect(response.status).toBeLessThan(300);
    return (await response.json()) as { number: number };
  };
  const issues = `/repos/${world.first}/issues`;
  const delays: number[] = [];
  const measure = async (
    change: () => Promise<string>,
    shows: (issue: { title: string; state: string; labels: { name: string }[] }) => boolean,
  ) => {
    const path = await change();
    const writtenAt = performance.now();
    for (;;) {
      const { status, body } = await world.get(path);
      if (status === 200 && shows(body as Parameters<typeof shows>[0])) break;
      if (performance.now() - writtenAt > 60_000) throw new Error(`${path} does not show its change after a minute`);
    }
    delays.push(performance.now() - writtenAt);
  };

  while (delays.length < CHANGES) {
    const title = `change ${delays.length}`;
    let path = "";
    await measure(
      async () => (path = `${issues}/${(await ask("POST", issues, { title })).number}`),
      () => true,
    );
    await measure(
      async () => (await ask("PATCH", path, { title: `${title} edited` })) && path,
      (issue) => issue.title.endsWith("edited"),
    );
    await measure(
      async () => (await ask("POST", `${path}/labels`, { labels: ["bug"] })) && path,
      (issue) => issue.labels.length > 0,
    );
    await measure(
      async () => (await ask("PATCH", path, { state: "closed" })) && path,
      (issue) => issue.state === "closed",
    );
  }
  delays.sort((a, b) => a - b);
  const at = (share: number) => delays[Math.min(delays.length - 1, Math.floor(delays.length * share))]?.toFixed(1);
  console.info(
    `${delays.length} changes, from upstream's answer to the mirror's: median ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`,
  );
});
