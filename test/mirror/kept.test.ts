import { expect, test } from "vitest";
import { Kept, Reading, type RepositoryVersion } from "../../src/mirror/unchanged/unchanged.ts";

/** Repositories whose revisions a test moves by hand. */
function openStandings() {
  const now = new Map<number, RepositoryVersion>();
  const asked: number[][] = [];
  return {
    asked,
    set: (id: number, revision: string, isMirrored = true) =>
      now.set(id, { revision, isMirrored, confirmedAt: new Date(0), missing: null }),
    now: async (ids: Iterable<number>) => {
      asked.push([...ids]);
      return new Map(now);
    },
  };
}

const openKept = (maxBytes = 100_000) => new Kept<{ text: string }>({ maxBytes, bytesOf: ({ text }) => text.length });

/** One request: it answers the kept value, or else `text`, which it keeps if it can. */
async function answered(kept: ReturnType<typeof openKept>, reading: Reading, text: string, shown = [1, 2]) {
  const known = await kept.get("key", reading);
  if (known) return known.text;
  kept.keep("key", () => ({ text }), { shown, before: reading.soFar() });
  return text;
}

test("a value is kept from the second time on, and given again until anything that it shows changes", async () => {
  const repositoryVersions = openStandings();
  repositoryVersions.set(1, "a");
  repositoryVersions.set(2, "b");
  const kept = openKept();
  const ask = (text: string) => answered(kept, new Reading(repositoryVersions), text);
  expect(await ask("first")).toBe("first");
  expect(repositoryVersions.asked).toEqual([]);
  expect(await ask("second")).toBe("second");
  expect(await ask("third")).toBe("second");
  repositoryVersions.set(2, "c");
  expect(await ask("fourth")).toBe("fourth");
  expect(await ask("fifth")).toBe("fourth");
  repositoryVersions.set(1, "a", false);
  expect(await ask("sixth")).toBe("sixth");
});

test("a value that was read before something changed is not kept as if it had been read after that", async () => {
  const repositoryVersions = openStandings();
  repositoryVersions.set(1, "before");
  const kept = openKept();
  const reading = new Reading(repositoryVersions);
  const before = reading.soFar();
  // First the value is read, and then it changes. Afterwards another part of the same request asks for the versions.
  repositoryVersions.set(1, "after");
  await reading.now([1]);
  expect(kept.keep("key", () => ({ text: "old" }), { shown: [1], before })).toBeUndefined();
  expect(await kept.get("key", new Reading(repositoryVersions))).toBeUndefined();
});

test("a reading is told once how a repository stands, and what it was told before does not grow", async () => {
  const repositoryVersions = openStandings();
  for (const id of [1, 2]) repositoryVersions.set(id, "a");
  const reading = new Reading(repositoryVersions);
  const first = await reading.now([1]);
  repositoryVersions.set(1, "b");
  expect((await reading.now([1, 2])).get(1)?.revision).toBe("a");
  expect([...first.keys()]).toEqual([1]);
  expect(repositoryVersions.asked).toEqual([[1], [2]]);
});

test("a request that changes the mirror is told each time anew", async () => {
  const repositoryVersions = openStandings();
  repositoryVersions.set(1, "a");
  const reading = new Reading(repositoryVersions, { isLasting: false });
  await reading.now([1]);
  repositoryVersions.set(1, "b");
  expect((await reading.now([1])).get(1)?.revision).toBe("b");
  expect(reading.soFar().size).toBe(0);
});

test("what would push out all others is not kept, and nothing is where nothing may be", async () => {
  const repositoryVersions = openStandings();
  repositoryVersions.set(1, "a");
  for (const kept of [openKept(10_000), openKept(0)]) {
    const ask = (text: string) => answered(kept, new Reading(repositoryVersions), text, [1]);
    for (const time of [1, 2, 3]) expect(await ask("x".repeat(2_000) + time)).toBe("x".repeat(2_000) + time);
  }
});
