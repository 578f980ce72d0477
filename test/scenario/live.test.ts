import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { compare } from "../support/comparison.ts";
import { until } from "../support/patience.ts";
import { openWorld } from "../support/world.ts";

const fill = ({ world: upstream }: Parameters<NonNullable<NonNullable<Parameters<typeof openWorld>[0]>["fill"]>>[0]) =>
  void generateWorld(upstream, { seed: 7, repositories: 1, issues: 60, pulls: 30 });

test("an issue created, edited, labelled and closed at upstream shows in the API through the webhook", async () => {
  await using world = await openWorld({ fill });
  await world.mirror(world.first);
  await world.listen(world.first);
  const ask = async (method: string, path: string, body: object) => {
    const response = await fetch(`${world.simulator.url}${path}`, {
      method,
      headers: { authorization: "token test-upstream-token", "user-agent": "test", "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return (await response.json()) as { number: number };
  };
  const { number } = await ask("POST", `/repos/${world.first}/issues`, { title: "from upstream" });
  const path = `/repos/${world.first}/issues/${number}`;
  const shows = (fields: object) =>
    until(`the mirror shows ${JSON.stringify(fields)}`, async () => {
      const { status, body } = await world.get(path);
      return (
        status === 200 &&
        Object.entries(fields).every(
          ([key, value]) => JSON.stringify((body as Record<string, unknown>)[key]) === JSON.stringify(value),
        )
      );
    });
  await shows({ title: "from upstream", state: "open" });
  await ask("PATCH", path, { title: "edited" });
  await shows({ title: "edited" });
  await ask("POST", `${path}/labels`, { labels: ["bug"] });
  await until("the label shows", async () =>
    ((await world.get(path)).body as { labels: { name: string }[] }).labels.some(({ name }) => name === "bug"),
  );
  await ask("PATCH", path, { state: "closed", state_reason: "not_planned" });
  await shows({ state: "closed", state_reason: "not_planned" });
});

/** `SEEDS=20 npm test -- test/scenario/live` tries more seeds. */
const seeds = Array.from({ length: Number(process.env.SEEDS ?? 1) }, (_, index) => index + 1);

test.each(seeds)(
  "seed %i: after a stream of changes of every kind and one catch-up, the mirror is equal to a quiet upstream",
  async (seed) => {
    await using world = await openWorld({ fill, simulator: { worldOptions: { mergeableDelayMs: 20 } } });
    await world.mirror(world.first);
    await world.listen(world.first);
    const live = world.simulator.startLive({ ratePerSecond: 0, seed });
    for (let step = 0; step < 200; step++) live.step();
    await world.settleMarks();
    await world.catchUp();
    await world.settleMarks();
    // A new contributor becomes one in everything that they ever wrote. Nothing that this test asks upstream shows it.
    const { differences } = await compare(
      world.ctx,
      world.simulator,
      await currentName(world),
      (_kind, path) => path === "author_association",
    );
    expect(differences).toEqual([]);
  },
);

async function currentName(world: Awaited<ReturnType<typeof openWorld>>): Promise<string> {
  const rows = await world.ctx.db.query<{ full_name: string }>(
    sql`select full_name from repositories join repository_syncs on repository_id = id`,
  );
  return rows[0]?.full_name ?? "";
}
