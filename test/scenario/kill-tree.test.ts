import { expect, test } from "vitest";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { killDuringBackfill, type Moment, openKilledBackfill } from "../support/killed-backfill.ts";
import { until } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";

test(
  "the whole tree, killed three times in a backfill, costs a page each time at most, and the copy is complete and told",
  async () => {
    await using backfill = await openKilledBackfill();
    const start = () => startProgram("src/cli/main.ts", backfill.env, ["up", "--json"]);
    const moments: Moment[] = [
      { during: "issues", nth: 2, when: "waiting" },
      // A page of details and, until it is known how accounts that are gone are shown, the list that is read beside it.
      { during: "reviews of one pull request", nth: 2, when: "waiting", costs: 2 },
      { during: "mergeability", nth: 1, when: "waiting" },
    ];
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
