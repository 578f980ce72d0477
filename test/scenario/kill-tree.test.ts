import { expect, test } from "vitest";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { killDuringBackfill, type Moment, openKilledBackfill } from "../support/killed-backfill.ts";
import { until } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";

const MOMENTS: Moment[] = [
  { during: "issues", nth: 2, when: "waiting" },
  // The kill costs a page of details. Until Tain knows how accounts that are gone are shown, it also costs the list
  // that is read beside that page.
  { during: "reviews of one pull request", nth: 2, when: "waiting", costs: 2 },
  { during: "mergeability", nth: 1, when: "waiting" },
];
/** The proof plays all three moments. `npm test` plays only those at which kill-worker.test.ts kills no worker. */
const moments = process.env.KILLS ? MOMENTS : MOMENTS.filter(({ during }) => during !== "issues");

test(
  `the whole tree, killed in a backfill ${moments.length} times, costs a page each time at most, and the copy is complete and told`,
  async () => {
    await using backfill = await openKilledBackfill();
    const start = () => startProgram("src/cli/main.ts", backfill.env, ["up", "--json"]);
    await killDuringBackfill(backfill, "tree", start, moments, async ({ lines }) => {
      const events = () => lines.flatMap(({ event }) => (event === undefined ? [] : [event]));
      await until("it says that all is copied", () => events().includes("up"));
      expect(events()).toEqual([
        "serving",
        ...events()
          .slice(1, -1)
          .map(() => "progress"),
        "up",
      ]);
      const said = JSON.stringify(lines);
      for (const secret of [backfill.env.UPSTREAM_TOKEN, backfill.env.WEBHOOK_SECRET])
        expect(said).not.toContain(secret);
    });
  },
  LONG_TEST_MS,
);
