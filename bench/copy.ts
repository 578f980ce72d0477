import { type Database, openDatabase } from "../db/database.ts";
import { sql } from "../db/sql.ts";
import type { Fields } from "../src/json.ts";
import type { Kind } from "../src/kinds/contract/kind.ts";
import { mergeObserved } from "../src/mirror/store/merge.ts";
import { joinObserved, observe, type Sighting } from "../src/mirror/store/observation.ts";
import { generateWorld } from "../src/simulator/generate/generate.ts";
import { openSimulator } from "../src/simulator/simulator.ts";
import { openBenchDatabase } from "./databases.ts";
import { alternate, type Benchmark } from "./measure.ts";
import { copyRows, dumpRows, tablesWithRows } from "./reference/copy.ts";

const LARGE = process.env.TAIN_LARGE === "1";
const ISSUES = LARGE ? 20_000 : 1_500;

export const benchmark: Benchmark = {
  about: "rows per second of the mirror's write path, fed from memory page by page, against COPY of the same rows",
  async run() {
    const pages = await readPages();
    await using template = await openBenchDatabase();
    const filled = await tablesWithRows(template.url);
    const first = await store(pages, template.url);
    const dump = await dumpRows(template.url, { without: filled });
    const measured = await alternate(
      {
        subject: async () => {
          await using database = await openBenchDatabase();
          const { rows, seconds } = await store(pages, database.url);
          return rows / seconds;
        },
        reference: async () => {
          await using database = await openBenchDatabase();
          return first.rows / (await copyRows(database.url, dump));
        },
      },
      { unit: "rows/s", goal: { atLeast: 0.25 } },
    );
    return { ...measured, notes: { rows: first.rows, pages: pages.length } };
  },
};

interface Page {
  kind: Kind;
  rows: Fields[];
  at: Sighting;
}

/** The lists of one repository as upstream answers them, in the order of a backfill. */
async function readPages(): Promise<Page[]> {
  await using simulator = await openSimulator({
    seed: 1,
    worldOptions: { mergeableDelayMs: 0 },
    tokens: [{ token: "bench-token", login: "mirror-owner", repositories: "all", write: true }],
  });
  const { world, url: api } = simulator;
  for (const limit of Object.keys(simulator.quota.limits) as (keyof typeof simulator.quota.limits)[])
    simulator.quota.limits[limit] = 1_000_000_000;
  generateWorld(world, { seed: 1, repositories: 1, issues: ISSUES, pulls: ISSUES / 3 });
  const repository = [...world.repositories.values()].find(({ fork }) => !fork);
  if (!repository) throw new Error("The simulator made no repository");
  const get = async (path: string): Promise<Fields[]> => {
    const answer = await fetch(`${api}/repos/${world.fullName(repository)}${path}`, {
      headers: { authorization: "Bearer bench-token", "user-agent": "bench" },
    });
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Fields[];
  };
  const at: Sighting = {
    api,
    repository: { id: repository.id, fullName: world.fullName(repository), htmlUrl: null },
    seenAt: new Date(),
    read: true,
  };
  const lists = [
    ["label", "/labels?"],
    ["milestone", "/milestones?state=all&"],
    ["issue", "/issues?state=all&"],
    ["pull_request", "/pulls?state=all&"],
    ["issue_comment", "/issues/comments?"],
  ] as const;
  const pages: Page[] = [];
  for (const [kind, path] of lists) {
    for (let page = 1; ; page++) {
      const rows = await get(`${path}per_page=100&page=${page}`);
      if (rows.length > 0) pages.push({ kind, rows, at });
      if (rows.length < 100) break;
    }
  }
  return pages;
}

/** As a backfill stores what it has read: each page in a transaction. */
async function store(pages: Page[], databaseUrl: string): Promise<{ rows: number; seconds: number }> {
  const db = openDatabase(databaseUrl, { maxConnections: 1, applicationName: "bench copy" });
  try {
    await db.query(sql`select 1`);
    const startedAt = performance.now();
    for (const { kind, rows, at } of pages)
      await db.transaction((tx) => mergeObserved(tx, joinObserved(rows.map((row) => observe(kind, row, at)))));
    const seconds = (performance.now() - startedAt) / 1_000;
    return { rows: await countRows(db), seconds };
  } finally {
    await db.close();
  }
}

async function countRows(db: Database): Promise<number> {
  const rows = await db.query<{ rows: number }>(sql`
    select (select count(*) from users) + (select count(*) from labels) + (select count(*)
      from milestones) + (select count(*) from issues) + (select count(*) from pull_requests) + (select count(*)
      from issue_comments) + (select count(*) from issue_labels) + (select count(*) from issue_assignees) as rows`);
  return Number(rows[0]?.rows);
}
