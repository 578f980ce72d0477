import { expect, test } from "vitest";
import { loadHistory } from "../../src/simulator/generate/histories.ts";
import { compare } from "../support/comparison.ts";
import { findRecording } from "../support/recording.ts";
import { openWorld } from "../support/world.ts";

const archive = findRecording("tls13-spec-history.json.gz");

test.skipIf(!archive.exists)(
  `the whole history of a real repository is mirrored without a difference ${archive.reason}`,
  async () => {
    await using world = await openWorld({
      fill: async ({ world: upstream }) => void (await loadHistory(upstream, archive.path)),
    });
    await world.mirror("tlswg/tls13-spec");
    await world.settle();
    const { counts, differences } = await compare(world.ctx, world.simulator, "tlswg/tls13-spec");
    expect(differences).toEqual([]);
    // 446 issues and 998 pull requests: these counts are in the archive's own README.
    expect(counts).toMatchObject({
      labels: 21,
      issues: 1_444,
      pulls: 998,
      comments: 2_363,
      reviews: 979,
      review_comments: 1_306,
    });
  },
);
