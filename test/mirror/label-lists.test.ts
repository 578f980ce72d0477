import fc from "fast-check";
import { expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import type { Fields } from "../../src/json.ts";
import {
  findIssues,
  type IssueFilter,
  type IssuePosition,
  type IssuesArguments,
  issueSource,
} from "../../src/mirror/read/issues.ts";
import { countPages, findPages } from "../../src/mirror/read/pages.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { joinObserved, observe, type Sighting } from "../../src/mirror/store/observation.ts";
import { openTestDatabase } from "../support/database.ts";

/** `SEEDS=200 npm test -- test/mirror/label-lists` tries more histories. */
const numRuns = Number(process.env.SEEDS ?? 3);

const API = "https://api.example.com";
const REPOSITORY = 7;
const LABELS = ["bug", "Docs", "question"];
const ISSUES = 9;

const at = (seconds: number): Sighting => ({
  api: API,
  repository: { id: REPOSITORY, fullName: "octo/demo", htmlUrl: "https://example.com/octo/demo" },
  seenAt: new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)),
  read: true,
});
const label = (index: number): Fields => ({
  id: index + 1,
  name: LABELS[index] as string,
  color: "ff0000",
  url: `${API}/repos/octo/demo/labels/${LABELS[index]}`,
});

/** What an issue is observed as. `day` is the day of its creation, which several issues share. */
const step = fc.record({
  number: fc.integer({ min: 1, max: ISSUES }),
  isOpen: fc.boolean(),
  isPull: fc.boolean(),
  isGone: fc.nat({ max: 9 }).map((die) => die === 0),
  isPullAlone: fc.nat({ max: 5 }).map((die) => die === 0),
  day: fc.integer({ min: 1, max: 4 }),
  labels: fc.subarray([0, 1, 2]),
});

test("what stands beside a label is what stands in the issue, and lists by label are what a filter leaves", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (history) => {
      await using database = await openTestDatabase();
      const db = openDatabase(database.url, { maxConnections: 2 });
      try {
        for (const [index, { number, isOpen, isPull, isGone, isPullAlone, day, labels }] of history.entries()) {
          const fields: Fields = {
            url: `${API}/repos/octo/demo/issues/${number}`,
            id: 100 + number,
            number,
            title: "a",
            body: null,
            state: isOpen ? "open" : "closed",
            user: null,
            labels: labels.map(label),
            assignees: [],
            comments: 0,
            created_at: `2025-01-0${day}T00:00:00Z`,
            updated_at: new Date(Date.UTC(2025, 5, 1, 0, 0, index)).toISOString().replace(".000", ""),
          };
          const sighting = at(index);
          const seen = isPullAlone
            ? observe(
                "pull_request",
                { ...fields, head: { ref: "x", sha: "1", user: null, repo: null }, base: { ref: "main", sha: "2" } },
                sighting,
              )
            : observe("issue", isPull ? { ...fields, pull_request: { url: "u" } } : fields, {
                ...sighting,
                ...(isGone ? { deleted: true } : {}),
              });
          await db.transaction((tx) => mergeObserved(tx, joinObserved([seen])));
        }
        const query = <Row>(text: string) => db.query<Row>(sql.script(text));
        expect(
          await query(`select l.* from issue_labels l left join issues i using (repository_id, number)
            where (l.state, l.is_pull_request, l.is_shown, l.created_at)
              is distinct from (i.state, i.is_pull_request, i.id is not null and i.deleted_at is null, i.created_at)`),
        ).toEqual([]);

        interface Known {
          number: number;
          state: "open" | "closed";
          is_pull_request: boolean;
          created: number;
          labels: string[];
        }
        const issues = await query<Known>(
          `select i.number, i.state, i.is_pull_request, extract(epoch from i.created_at)::float8 * 1000 as created,
              array(select l.name from labels l join issue_labels c using (repository_id) where c.label_id = l.id and c.number = i.number) as labels
            from issues i where i.id is not null and i.deleted_at is null order by i.created_at, i.number`,
        );
        for (const state of ["open", "closed", "all"] as const) {
          for (const names of [["bug"], ["DOCS", "bug"], ["none"]]) {
            const ofState = issues.filter((one) => state === "all" || one.state === state);
            const carries = ({ labels: carried }: Known, name: string) =>
              carried.some((one) => one.toLowerCase() === name.toLowerCase());
            const all = ofState.filter((one) => names.every((name) => carries(one, name))).map(({ number }) => number);
            expect(await byCursor(db, { state, labels: names }, "asc")).toEqual(all);
            expect(await byCursor(db, { state, labels: names }, "desc")).toEqual(all.toReversed());
            expect(await byOffset(db, { state, labels: names })).toEqual(all.toReversed());

            const plain = ofState.filter(({ is_pull_request }) => !is_pull_request);
            const any = plain.filter((one) => names.some((name) => carries(one, name))).map(({ number }) => number);
            const every = plain.filter((one) => names.every((name) => carries(one, name))).map(({ number }) => number);
            const states = state === "all" ? null : [state.toUpperCase() as "OPEN" | "CLOSED"];
            expect(await connected(db, { labels: names, states })).toEqual(any);
            expect(await connected(db, { filterBy: { labels: names, states } })).toEqual(every);
          }
        }
      } finally {
        await db.close();
      }
    }),
    { numRuns },
  );
});

type Db = ReturnType<typeof openDatabase>;

async function byCursor(db: Db, filter: IssueFilter, direction: "asc" | "desc"): Promise<number[]> {
  const found: number[] = [];
  let position: IssuePosition = { offset: 0 };
  for (;;) {
    const page = await findIssues(db, REPOSITORY, filter, { sort: "created", direction }, { position, limit: 2 });
    found.push(...page.map(({ number }) => number));
    const last = page.at(-1);
    if (!last || page.length < 2) return found;
    position = { side: "after", key: last.key, number: last.number };
  }
}

async function byOffset(db: Db, filter: IssueFilter): Promise<number[]> {
  const found: number[] = [];
  for (let offset = 0; ; offset += 2) {
    const order = { sort: "created", direction: "desc" } as const;
    const page = await findIssues(db, REPOSITORY, filter, order, { position: { offset }, limit: 2 });
    found.push(...page.map(({ number }) => number));
    if (page.length < 2) return found;
  }
}

/** Reads the pages from either end. Both ways must meet the same issues, and as many as are counted. */
async function connected(db: Db, args: IssuesArguments): Promise<number[]> {
  const source = issueSource(args);
  const parent = { r: REPOSITORY, n: 0 };
  const met = { forward: [] as number[], backward: [] as number[] };
  for (const [way, fromEnd] of [
    ["forward", false],
    ["backward", true],
  ] as const) {
    let position = null;
    for (;;) {
      const request = { after: fromEnd ? null : position, before: fromEnd ? position : null, fromEnd, limit: 2 };
      const [found = []] = await findPages(db, source, [parent], { ...request, withBody: false });
      const page = fromEnd ? found.slice(-2).reverse() : found.slice(0, 2);
      met[way].push(...page.map(({ rowId }) => rowId));
      position = page.at(-1) ?? null;
      if (found.length <= 2) break;
    }
  }
  expect(met.backward.toReversed()).toEqual(met.forward);
  expect(await countPages(db, source, [parent])).toEqual([{ count: met.forward.length, sum: 0 }]);
  return met.forward;
}
