import { test } from "vitest";
import { resolveSelections } from "../../src/sync/following/selection.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { killDuringBackfill, openKilledBackfill } from "../support/killed-backfill.ts";
import { startProgram } from "../support/program.ts";

test(
  "a worker that is killed three times in a backfill costs a page each time at most, and the copy is complete",
  async () => {
    await using backfill = await openKilledBackfill();
    await resolveSelections(backfill.ctx);
    await killDuringBackfill(backfill, "worker", () => startProgram("workers/main.ts", backfill.env), [
      { during: "issues", nth: 3, when: "storing" },
      { during: "issue comments", nth: 4, when: "waiting" },
      { during: "reviews", nth: 2, when: "waiting" },
    ]);
  },
  LONG_TEST_MS,
);
