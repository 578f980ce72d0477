/** A failure that nobody looks at may be a mistake of ours. Each place that drops one says here why it may. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../docs/markdown.ts";

/** `catch` without a name for the error, or with one that it does not use. */
const DROPS = /\bcatch \{|\bcatch \(_\w*\)|\.catch\(\s*(?:async )?\((?:_\w*)?\)(?:: [^=]+)? =>/g;

const TOLD_LATER = "told where the same promise is awaited";

/** One reason for each place of a file, in their order. */
const allowed: Record<string, string[]> = {
  "db/database.ts": [TOLD_LATER],
  "db/own-connections.ts": [
    "those who asked for the connection have got its error",
    "the connection is dropped, and who asked by it has got an error",
  ],
  "db/replica.ts": ["the connection is closed because the replica is silent, and that is told"],
  "src/api/streams/announcements.ts": ["the listener that asked for the connection has got its error"],
  "src/cli/app/callback.ts": [TOLD_LATER],
  "src/cli/up/up.ts": [TOLD_LATER, TOLD_LATER],
  "src/config/secrets.ts": ["the reader's own words may show the key: what is thrown says what to do"],
  "src/events/post.ts": ["an answer that breaks off counts by its status, and what came of it is kept"],
  "src/events/target.ts": ["another key's: the next is tried, and the last refusal is thrown"],
  "src/inbox/inbox.ts": ["the database does not say whether it fits: the delivery waits, and is not lost"],
  "src/operations/redis.ts": ["hosted servers forbid CONFIG; null says that it is not known"],
  "src/operations/redis-refusal.ts": ["it answers nothing, or is away: its client says so in words of its own"],
  "src/operations/traces.ts": ["what could not be sent was logged where it was tried"],
  "src/operator/browser/api.js": ["fetch says no more than that it failed", "not JSON: the status is told"],
  "src/queues/commands.ts": ["another key's: null says when none is left"],
  "src/queues/queues.ts": ["its first words were cut off: another queue takes its place, and its errors are logged"],
  "src/stores.ts": [
    "Redis is closed whether it answers or not",
    "hosted servers forbid INFO; nothing is claimed of it",
  ],
  "src/upstream/client/answer.ts": ["not JSON: undefined says so, and each caller decides"],
  "src/upstream/client/graphql.ts": ["not JSON: null says so, and the status decides"],
};

test("no failure is dropped unseen but where a reason is written", () => {
  const found: Record<string, number> = {};
  for (const path of globSync("{db,src,workers}/**/*.{ts,js}", { cwd: projectRoot })) {
    if (path.startsWith("src/simulator/")) continue;
    const drops = readFileSync(join(projectRoot, path), "utf8").match(DROPS);
    if (drops) found[path] = drops.length;
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(allowed).map(([path, reasons]) => [path, reasons.length])));
});
