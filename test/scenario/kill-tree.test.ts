import { test } from "vitest";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { killDuringBackfill, openKilledBackfill } from "../support/killed-backfill.ts";
import { startProgram } from "../support/program.ts";

test(
  "the whole tree, killed three times in a backfill, costs a page each time at most, and the copy is complete",
  async () => {
    await using backfill = await openKilledBackfill();
    await killDuringBackfill(backfill, "tree", () => startProgram("src/cli/main.ts", backfill.env, ["up"]), [
      { during: "issues", nth: 2, when: "waiting" },
      // A page of details and, until it is known how accounts that are gone are shown, the list that is read beside it.
      { during: "reviews of one pull request", nth: 2, when: "waiting", costs: 2 },
      { during: "mergeability", nth: 1, when: "waiting" },
    ]);
  },
  LONG_TEST_MS,
);
