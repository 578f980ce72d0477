import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { type Fields, isObject, type Json } from "../../src/json.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { joinObserved, observe } from "../../src/mirror/store/observation.ts";
import { askAt } from "../support/asking.ts";
import { openMirror } from "../support/mirror.ts";
import { findRecording } from "../support/recording.ts";
import { bodyDifferences, type Difference } from "./differences.ts";
import { GITHUB, plainRepository } from "./exchanges.ts";

const recording = findRecording("quicwg-rest-snapshots.json.gz");

interface Change {
  upsert: Fields[];
  remove?: number[];
}

interface Snapshots {
  repo: string;
  base: { issues: Fields[] };
  steps: { issues?: Change; pulls?: Change; repos?: Fields[] }[];
}

function readSnapshots(): Snapshots {
  return JSON.parse(gunzipSync(readFileSync(recording.path)).toString("utf8")) as Snapshots;
}

function newestFirst(one: Fields, other: Fields): number {
  return Number(other.number) - Number(one.number);
}

/** What the service listed after so many recorded changes. Rows are in the order in which they were made, newest first. */
function listedAfter(steps: number): { issues: Fields[]; pulls: Fields[] } {
  const { base, steps: all } = readSnapshots();
  const issues = new Map(base.issues.map((row) => [Number(row.number), row]));
  const pulls = new Map<number, Fields>();
  const repositories = new Map<number, Fields>();
  for (const step of all.slice(0, steps)) {
    for (const row of step.repos ?? []) repositories.set(Number(row.id), row);
    for (const [rows, change] of [
      [issues, step.issues],
      [pulls, step.pulls],
    ] as const) {
      for (const row of change?.upsert ?? []) rows.set(Number(row.number), row);
      for (const number of change?.remove ?? []) rows.delete(number);
    }
  }
  const whole = (row: Fields) => withRepositories(row, repositories) as Fields;
  return { issues: [...issues.values()].sort(newestFirst), pulls: [...pulls.values()].map(whole).sort(newestFirst) };
}

/** The recording names repositories by their ids. */
function withRepositories(value: Json, repositories: ReadonlyMap<number, Fields>): Json {
  if (Array.isArray(value)) return value.map((one) => withRepositories(one, repositories));
  if (!isObject(value)) return value;
  if (value.$repo !== undefined) return repositories.get(Number(value.$repo)) as Json;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withRepositories(one, repositories)]));
}

/** Keys that the service shows since 2017, and the mirror knows from the other side of a pull request. */
const SHOWN_SINCE: Readonly<Record<string, string>> = { issues: "[].pull_request.merged_at", pulls: "[].labels" };

describe(`listings of quicwg/base-drafts ${recording.reason}`, () => {
  test.skipIf(!recording.exists)("were recorded newest first, as the mirror lists by default", () => {
    const { base, steps } = readSnapshots();
    const first = steps.find(({ pulls }) => pulls)?.pulls?.upsert;
    for (const rows of [base.issues, first ?? []]) expect(rows).toEqual(rows.toSorted(newestFirst));
  });

  test.skipIf(!recording.exists).each([
    { changes: 0, issues: 149, open: 149, pulls: 0, closed: 0 },
    { changes: 217, issues: 393, open: 102, pulls: 169, closed: 161 },
    { changes: 307, issues: 479, open: 133, pulls: 217, closed: 193 },
  ])("after $changes changes all pages are what was recorded", async ({ changes, ...sizes }) => {
    const { issues, pulls } = listedAfter(changes);
    await using mirror = await openMirror();
    const home = { id: 73_779_599, fullName: "quicwg/base-drafts", htmlUrl: "https://github.com/quicwg/base-drafts" };
    const at = { api: GITHUB, repository: home, seenAt: mirror.ctx.clock.now(), read: true };
    const see = (kind: Kind, rows: readonly Fields[]) =>
      mirror.ctx.db.transaction((tx) => mergeObserved(tx, joinObserved(rows.map((row) => observe(kind, row, at)))));
    await see("repository", [plainRepository(home, GITHUB)]);
    await see("issue", issues);
    await see("pull_request", pulls);
    await mirror.ctx.db.query(sql`
      insert into repository_syncs (repository_id, state, added_at, backfilled_at)
        values (${home.id}, 'live', now(), now())`);
    const lists: [keyof typeof SHOWN_SINCE, string, Fields[], number][] = [
      ["issues", "state=all&per_page=100", issues, sizes.issues],
      ["issues", "per_page=7", issues.filter(({ state }) => state === "open"), sizes.open],
      ["pulls", "state=all&per_page=100", pulls, sizes.pulls],
      ["pulls", "per_page=7&state=closed", pulls.filter(({ state }) => state === "closed"), sizes.closed],
    ];
    for (const [list, query, rows, size] of lists) {
      expect(rows.length, query).toBe(size);
      const shown = await readAll(mirror.url, `/repos/${home.fullName}/${list}?${query}`);
      const since = (difference: Difference) => difference.in === "added" && difference.at === SHOWN_SINCE[list];
      const differences = bodyDifferences(rows, shown).filter((difference) => !since(difference));
      expect(differences, `${list}?${query}`).toEqual([]);
    }
  });
});

/** All rows of a list, by its links. */
async function readAll(url: string, path: string): Promise<Fields[]> {
  const rows: Fields[] = [];
  for (let next: string | undefined = url + path; next !== undefined; ) {
    const { body, headers } = await askAt("", "GET", next);
    rows.push(...(JSON.parse(JSON.stringify(body).replaceAll(url, GITHUB)) as Fields[]));
    next = /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
  }
  return rows;
}
