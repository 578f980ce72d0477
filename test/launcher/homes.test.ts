import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../docs/markdown.ts";

/** In SQL, and as drizzle builds it. */
function changes(table: string): RegExp {
  const built = table.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  return new RegExp(
    `(insert into|merge into|update|delete from) ${table}\\b|\\.(insert|update|delete)\\((schema\\.)?${built}\\)`,
  );
}

/** What is written in these places alone. Code elsewhere has to call the functions that stand there. */
const homes: [what: string, text: RegExp, places: string[]][] = [
  ["changes of deliveries", changes("deliveries"), ["src/inbox/"]],
  ["changes of events", changes("events"), ["src/events/", "src/inbox/prune.ts"]],
  ["changes of targets", changes("(targets|target_cursors|target_asks)"), ["src/events/"]],
  ["changes of problems", changes("problems"), ["src/sync/problems/problems.ts"]],
  ["changes of marks", changes("refresh_marks"), ["src/mirror/store/marks.ts", "src/sync/marks/", "src/sync/refresh/"]],
  ["changes of selections", changes("selections"), ["src/sync/following/"]],
  ["changes of the record of writes", changes("writes"), ["src/api/record/"]],
  ["changes of who may read some repositories only", changes("reader_repositories"), ["db/readers.ts"]],
  ["changes of the audit log", changes("audit_log"), ["src/work/audit-log.ts"]],
  ["changes of what processes count", changes("activity"), ["src/operations/activity-table.ts"]],
  ["changes of validators", changes("validators"), ["src/upstream/conditional/validators.ts"]],
  ["changes of sweeps", changes("sweeps"), ["src/sync/catch-up/"]],
  [
    "changes of a backfill's progress",
    changes("backfill_phases"),
    ["src/sync/backfill/", "src/sync/following/backfill-progress.ts"],
  ],
  ["changes of commits with checks", changes("checked_commits"), ["src/sync/checks/", "src/sync/following/parts.ts"]],
  ["versions of lists", /insert into mirrored_lists\b|insert\(mirroredLists\)/, ["src/mirror/store/lists.ts"]],
  [
    "changes of lists",
    changes("mirrored_lists"),
    ["src/mirror/store/lists.ts", "src/sync/lists/", "src/sync/following/parts.ts"],
  ],
  ["changes of branches and tags", changes("refs"), ["src/mirror/store/refs.ts"]],
  [
    "changes of lists of branches and tags",
    changes("ref_lists"),
    ["src/mirror/store/refs.ts", "src/sync/refs/read.ts", "src/sync/following/parts.ts"],
  ],
  ["changes of commits", changes("commits"), ["src/mirror/store/history.ts", "src/sync/history/"]],
  ["changes of histories", changes("commit_lists"), ["src/sync/history/", "src/sync/following/parts.ts"]],
  [
    "changes of lists of people",
    changes("(listed_people|people_lists)"),
    ["src/mirror/store/people.ts", "src/sync/following/parts.ts"],
  ],
  ["changes of lists of releases", changes("release_lists"), ["src/sync/resource-lists/"]],
  [
    "changes of lists of resources",
    /(insert into|update|delete from) \$\{[\w.]*list\.table\}/,
    ["src/sync/resource-lists/", "src/sync/following/parts.ts"],
  ],
  // Each part of the sync notes in its own transaction how far it has come.
  [
    "changes of how far a repository is followed",
    changes("repository_syncs"),
    [
      "src/sync/following/",
      "src/sync/catch-up/sweep-lists.ts",
      "src/sync/catch-up/sweep-told.ts",
      "src/sync/backfill/backfill.ts",
      "src/sync/catch-up/catch-up.ts",
      "src/sync/catch-up/followed-lists.ts",
      "src/sync/checks/confirm.ts",
      "src/sync/lists/",
    ],
  ],
  [
    "moves of a repository",
    /update repository_syncs set state\b|\(repositorySyncs\)\s*\.set\(\{[^}]*\bstate\b/,
    ["src/sync/following/state.ts"],
  ],
  [
    "which repositories are mirrored",
    /<> 'gone'|ne\(.*\.state, "gone"\)/,
    ["db/schema/states.ts", "db/schema/mirrored.ts"],
  ],
  ["turns of transactions", changes("turns"), ["db/turns.ts"]],
  ["who hears what is announced", changes("listeners"), ["db/announcement.ts"]],
  // Every login of Postgres may take each of them, and hold it for good.
  ["advisory locks", /advisory_(xact_)?(un)?lock/, []],
  ["how secrets are compared", /timingSafeEqual/, ["src/config/same-secret.ts"]],
  ["which era the server follows", /\bfrom eras e\b|pg_walfile_name/, ["db/revisions.ts"]],
  ["the address of the pages about REST", /"https:\/\/docs\.github\.com\/rest"/, ["src/api/dialect/fault.ts"]],
  ["the repository that a path names", /\(\?:repos\\\//, ["src/api/dialect/protocol.ts"]],
  ["requests to Redis for many jobs", /\.addBulk\(/, ["src/queues/queues.ts"]],
  ["why something failed", /function (reasonOf|codeOf)\b/, ["src/failure.ts"]],
  [
    "figures of trying again",
    /\b(first|longest)\w*Ms: *[\d(A-Z]|\battempts: [1-9]|: Backoff = |\b[A-Z_]*(BACKOFF|RETRY|TRIES|ATTEMPTS|REPEATS|RECONNECT|AGAIN|LOOK)(_MS)? = [\d{]/,
    ["src/waits/retries.ts"],
  ],
  // Redis computes one such wait by itself.
  [
    "waits that grow",
    /\b2 (\*\*|\^) \(|\bmin\(2 \* [#.\w]*_?ms\b|\bms \*= 2\b|ms = 2 \* |\bmin\([^)]*\b(tried|tries|attempts?|failures)\b/i,
    ["src/waits/backoff.ts", "src/upstream/quota/scripts.ts"],
  ],
  // The second waits for an exit, and not for another attempt.
  [
    "waits that are awaited",
    /"(node:)?timers\/promises"|\bsetTimeout\(resolve\b|\bpromisify\(setTimeout\)/,
    ["src/waits/repeated.ts", "src/cli/up/up.ts"],
  ],
];

const sources = globSync("{db,src,workers}/**/*.ts", { cwd: projectRoot })
  .filter((path) => !path.startsWith("src/simulator/"))
  .map((path) => ({ path, text: readFileSync(join(projectRoot, path), "utf8") }));

test.each(homes)("%s have one home", (_, text, places) => {
  const found = sources.filter((source) => text.test(source.text)).map(({ path }) => path);
  expect(found.filter((path) => !places.some((place) => path.startsWith(place)))).toEqual([]);
  expect(places.filter((place) => !found.some((path) => path.startsWith(place)))).toEqual([]);
});

/** The files of each name that stands in more than one. */
function sharedNames(declared: RegExp): [name: string, paths: string[]][] {
  const homesOf = new Map<string, string[]>();
  for (const { path, text } of sources)
    for (const [, name = ""] of text.matchAll(declared)) homesOf.getOrInsert(name, []).push(path);
  return [...homesOf].filter(([, paths]) => paths.length > 1);
}

test("no two exported types have the same name", () => {
  expect(sharedNames(/^(?:export )?(?:type|interface|class) (\w+)/gm)).toEqual([]);
});

const FUNCTIONS =
  /^export (?:(?:async )?function\*? |const (?=\w+(?:: [^=\n]+)? = (?:async )?(?:<.*>)?(?:\(|\w+ =>)))(\w+)/gm;

// A command of the CLI is run by the function that has the command's last word: `tain hooks list` by `runList`.
const COMMANDS = /^run(Add|Check|Create|List|Remove)$/;

test("no two exported functions have the same name, except those that run commands", () => {
  const shared = sharedNames(FUNCTIONS);
  expect(shared.filter(([name]) => !COMMANDS.test(name))).toEqual([]);
  expect(shared.flatMap(([, paths]) => paths).filter((path) => !path.startsWith("src/cli/"))).toEqual([]);
});

test("no two exported constants have the same name", () => {
  expect(sharedNames(/^export const ([A-Z][A-Z\d_]*)\b/gm)).toEqual([]);
});
