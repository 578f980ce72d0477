/**
 * What somebody who has one secret can do to everybody else: every event of the service, with a lie in each field that
 * identifies something, signed by a repository's secret, an organization's and the App's. Nothing may change that its
 * signer does not own. HOLDERS=1 sends every delivery, HOLDERS=5 every fifth.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { type HolderCell, Holders, holderCells } from "./holders.ts";
import { type HoldersWorld, openHoldersWorld } from "./holders-world.ts";

/** A prime, so that no event and no kind of lie stays out. */
const PART = Number(process.env.HOLDERS ?? 1_999);
/** Whatever part is sent, several identities that lie together are sent of these events, one of which is followed. */
const ALWAYS = /, (issues|star)\.\w+, .*(the victim's|sent as)/;
const BATCH = PART < 10 ? 200 : 60;
/** So many batches with a fault are looked into, delivery by delivery. Each takes a world of its own, and minutes. */
const LOOKED_INTO = Number(process.env.HOLDERS_LOOK ?? 0);

let world: HoldersWorld;
beforeAll(async () => {
  world = await openHoldersWorld();
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** What each delivery of a batch does by itself, after those that went well before it. */
async function culprits(cells: readonly HolderCell[]): Promise<string[]> {
  await using apart = await openHoldersWorld();
  const holders = new Holders(apart);
  const names = new Set(cells.map(({ name }) => name));
  const faults: string[] = [];
  for (const cell of holderCells(apart)) {
    if (!names.delete(cell.name)) continue;
    for (const fault of await holders.play([cell])) faults.push(`${cell.name}: ${fault}`);
    if (names.size === 0) break;
  }
  return faults;
}

test(
  "no delivery of a holder changes, tells or hinders anything that its signer does not own",
  async () => {
    const holders = new Holders(world);
    const all = [...holderCells(world)];
    const some = all.filter(({ name }, at) => at % PART === 0 || ALWAYS.test(name));
    const ordered = some.toSorted((one, other) => Number(one.pauses) - Number(other.pauses));
    const faults: string[] = [];
    let looked = 0;
    for (let at = 0; at < ordered.length; at += BATCH) {
      const batch = ordered.slice(at, at + BATCH);
      const wrong = await holders.play(batch);
      if (wrong.length === 0) continue;
      looked++;
      faults.push(...(looked <= LOOKED_INTO ? await culprits(batch) : []), ...wrong);
    }
    printFigures("holders", {
      cells: some.length,
      all: all.length,
      events: new Set(some.map(({ event }) => event)).size,
      honest: holders.honest.size,
      outcomes: holders.outcomes,
      faults: faults.length,
    });
    expect(new Set(some.map(({ signer }) => signer)).size).toBe(world.signers.length);
    expect(faults).toEqual([]);
  },
  LONG_TEST_MS * (PART < 10 ? 6 : 1),
);
