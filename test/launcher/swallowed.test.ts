/** A failure that nobody looks at may be a mistake of ours. Each place that drops one says here why it may. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../docs/markdown.ts";

/** A function without a name for the error, or with one that it does not use. */
const UNSEEING = String.raw`\s*(?:async )?\((?:_\w*)?\)(?:: [^=]+)? =>`;
const DROPS = new RegExp(
  String.raw`\bcatch \{|\bcatch \(_\w*\)|\.catch\(${UNSEEING}|\.(?:on|once)\(\s*"error",${UNSEEING}`,
  "g",
);
/** The same as the second argument of `then`, perhaps below a comment. */
const SECOND_DROPS = new RegExp(String.raw`^(?:\s*//.*)*${UNSEEING}`);

/** How many failures a file's text drops. */
function dropsIn(text: string): number {
  const ofThen = [...text.matchAll(/\.then\(/g)].filter(({ index }) =>
    SECOND_DROPS.test(secondArgument(text, index + ".then(".length)),
  );
  return (text.match(DROPS)?.length ?? 0) + ofThen.length;
}

/** The text from the second argument on, of arguments that begin at a place. Empty: there is one argument. */
function secondArgument(text: string, begin: number): string {
  let depth = 0;
  for (let at = begin; at < text.length && depth >= 0; at++) {
    const char = text.charAt(at);
    if ("([{".includes(char)) depth += 1;
    if (")]}".includes(char)) depth -= 1;
    if (char === "," && depth === 0) return text.slice(at + 1);
  }
  return "";
}

test.each([
  ["run().catch(() => {});", 1],
  ["try { run(); } catch { return; }", 1],
  ["run().then(ok, () => {});", 1],
  ["run().then(\n  ({ a, b }) => use(a, [b, c]),\n  // Nobody asks.\n  () => false,\n);", 1],
  ["run().then(undefined, (_error) => null);", 1],
  ['pool.on("error", () => {});', 1],
  ['redis.once("error", async () => end());', 1],
  ["run().then(({ a }) => use(a, () => {}));", 0],
  ["run().then(() => {}, (error) => log(error));", 0],
  ["run().then(() => {}).finally(() => {});", 0],
  ['pool.on("error", (error) => log(error)).on("end", () => {});', 0],
])("what drops a failure is known: %s", (text, count) => {
  expect(dropsIn(text)).toBe(count);
});

const TOLD_LATER = "told where the same promise is awaited";

/** One reason for each place of a file, in their order. */
const allowed: Record<string, string[]> = {
  "db/database.ts": ["what made the rollback necessary is thrown, and the connection is closed", TOLD_LATER],
  "db/lending.ts": [
    "an idle connection: the pool drops it, and a Postgres that is still away fails the next statement",
    "the next statement of the connection fails and tells it",
    "not cancelled: false says so, and the connection is closed",
  ],
  "db/replica.ts": ["the connection is closed because the replica is silent, and that is told"],
  "src/api/graphql/run/execution.ts": ["another failure decides already, or the same promise is awaited later"],
  "src/api/streams/announcements.ts": ["the listener that asked for the connection has got its error"],
  "src/cli/app/callback.ts": [TOLD_LATER],
  "src/cli/up/up.ts": [TOLD_LATER, TOLD_LATER],
  "src/config/sealing.ts": ["another key sealed it: the next one is tried, and null says that none is left"],
  "src/cli/sql/reading.ts": ["the query that runs fails by it, and that is told"],
  "src/cli/main.ts": ["the command failed, and its own error is told"],
  "src/work/thread.ts": ["a running task hears of it by itself, and the next one starts another thread"],
  "src/config/secrets.ts": ["the reader's own words may show the key: what is thrown says what to do"],
  "src/events/log-end.ts": ["who asked for that look has got its error, and this is the next look"],
  "src/events/post.ts": ["an answer that breaks off counts by its status, and what came of it is kept"],
  "src/http/body.ts": ["the body has arrived whole, or its reader has got an error already"],
  "src/inbox/inbox.ts": ["the database does not say whether it fits: the delivery waits, and is not lost"],
  "src/operations/redis.ts": ["hosted servers forbid CONFIG; null says that it is not known"],
  "src/operations/redis-refusal.ts": ["it answers nothing, or is away: its client says so in words of its own"],
  "src/operations/traces.ts": ["what could not be sent was logged where it was tried"],
  "src/operator/browser/api.js": ["fetch says no more than that it failed", "not JSON: the status is told"],
  "src/queues/queues.ts": ["its first words were cut off: another queue takes its place, and its errors are logged"],
  "src/stores.ts": [
    "Redis is closed whether it answers or not",
    "hosted servers forbid INFO; nothing is claimed of it",
  ],
  "src/upstream/protocol/answer.ts": ["not JSON: undefined says so, and each caller decides"],
  "src/upstream/protocol/graphql.ts": ["not JSON: null says so, and the status decides"],
  "src/upstream/protocol/transport.ts": [
    "the body's reader gets the same error",
    "the body's reader gets the same error",
  ],
};

test("no failure is dropped unseen but where a reason is written", () => {
  const found: Record<string, number> = {};
  for (const path of globSync("{db,src,workers}/**/*.{ts,js}", { cwd: projectRoot })) {
    if (path.startsWith("src/simulator/")) continue;
    const drops = dropsIn(readFileSync(join(projectRoot, path), "utf8"));
    if (drops > 0) found[path] = drops;
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(allowed).map(([path, reasons]) => [path, reasons.length])));
});
