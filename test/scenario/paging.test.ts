import { expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openWorld } from "../support/world.ts";

/** `SEEDS=20 npm test -- test/scenario/paging` tries more seeds. */
const seeds = Array.from({ length: Number(process.env.SEEDS ?? 1) }, (_, index) => index + 1);

interface Row {
  id: number;
  number: number;
  created_at: string;
}

test.each(seeds)(
  "seed %i: a walk of all pages by creation while upstream changes meets every issue once, and no other twice",
  async (seed) => {
    await using world = await openWorld({
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed, repositories: 1, issues: 40, pulls: 20 }),
      env: { RATE_LIMIT_USER: "0" },
    });
    await world.mirror(world.first);
    await world.listen(world.first);
    const live = world.simulator.startLive({ ratePerSecond: 0, seed });
    const numbersNow = async () => {
      const numbers: number[] = [];
      for (let page = 1; ; page++) {
        const { body } = await world.get(`/repos/${world.first}/issues?state=all&per_page=100&page=${page}`);
        numbers.push(...(body as Row[]).map(({ number }) => number));
        if ((body as Row[]).length < 100) return new Set(numbers);
      }
    };
    for (const direction of ["asc", "desc"] as const) {
      const before = await numbersNow();
      const met: Row[] = [];
      let next: string | null =
        `/repos/${world.first}/issues?state=all&sort=created&direction=${direction}&per_page=10`;
      for (let pages = 0; next !== null; pages++) {
        expect(pages, "the walk ends").toBeLessThan(200);
        const { status, headers, body } = await world.get(next);
        expect(status).toBe(200);
        met.push(...(body as Row[]));
        next = /<[^>]*?(\/repositories\/[^>]*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1] ?? null;
        for (let step = 0; step < 5; step++) live.step();
        await world.settle();
      }
      const after = await numbersNow();
      const numbers = met.map(({ number }) => number);
      expect(numbers, "nobody is met twice").toHaveLength(new Set(numbers).size);
      // A client may or may not meet an issue that was deleted, transferred or opened meanwhile.
      const stayed = [...before].filter((number) => after.has(number));
      expect(stayed.filter((number) => !numbers.includes(number))).toEqual([]);
      expect(stayed.length).toBeGreaterThan(40);
      const times = met.map(({ created_at }) => Date.parse(created_at) * (direction === "asc" ? 1 : -1));
      expect(times).toEqual(times.toSorted((a, b) => a - b));
    }
    expect(live.count).toBeGreaterThan(50);
  },
);
