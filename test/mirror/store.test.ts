import { expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import type { Fields } from "../../src/json.ts";
import { marksForConflicts } from "../../src/mirror/store/marks.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { joinObserved, observe, type Sighting } from "../../src/mirror/store/observation.ts";
import { connectTo, openTestDatabase } from "../support/database.ts";
import { until } from "../support/patience.ts";

const API = "https://api.example.com";
const at = (seconds: number, read = true): Sighting => ({
  api: API,
  repository: { id: 7, fullName: "octo/demo", htmlUrl: "https://example.com/octo/demo" },
  seenAt: new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)),
  read,
});
const user = (id: number, login: string): Fields => ({
  login,
  id,
  type: "User",
  followers_url: `${API}/users/${login}/followers`,
  url: `${API}/users/${login}`,
});
const issue = (fields: Fields = {}): Fields => ({
  url: `${API}/repos/octo/demo/issues/1`,
  id: 11,
  number: 1,
  title: "a",
  body: "text",
  state: "open",
  user: user(1, "mona"),
  labels: [],
  assignees: [],
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
  ...fields,
});

async function openMirror() {
  const database = await openTestDatabase();
  const db = openDatabase(database.url);
  return {
    db,
    url: database.url,
    merge: (...parts: ReturnType<typeof observe>[]) => db.transaction((tx) => mergeObserved(tx, joinObserved(parts))),
    rows: (text: string) => db.query(sql.script(text)),
    [Symbol.asyncDispose]: async () => {
      await db.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

test("one user embedded in many resources is one row, and its new name is everybody's", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("issue", issue(), at(0)), observe("issue", issue({ number: 2, id: 12 }), at(0)));
  await mirror.merge(observe("user", user(1, "renamed"), at(60)));
  expect(await mirror.rows("select id, login from users")).toEqual([{ id: 1, login: "renamed" }]);
});

test("text that Postgres cannot hold is stored readable and kept exactly", async () => {
  await using mirror = await openMirror();
  const body = "nul \0 and a lone \ud83d surrogate";
  await mirror.merge(observe("issue", issue({ body, title: "\u0001marks\u0000" }), at(0)));
  const [row] = await mirror.rows("select title, body, document::text from issues");
  expect(row?.body).toBe("nul \uFFFD and a lone \uFFFD surrogate");
  expect(row?.title).toBe("\u0001marks\uFFFD");
  expect(JSON.parse(String(row?.document)).body).toBe(body);
});

test("a change is newer than a row dated in the future, which a lagging replica showed after it", async () => {
  await using mirror = await openMirror();
  const titled = (title: string, updated_at: string) => issue({ title, updated_at });
  await mirror.merge(observe("issue", titled("dated ahead", "2041-01-01T00:00:00Z"), at(8)));
  await mirror.merge(observe("issue", titled("changed", "2026-01-01T00:00:01Z"), at(60)));
  expect(await mirror.rows("select title, updated_at from issues")).toEqual([
    { title: "changed", updated_at: new Date("2026-01-01T00:00:01Z") },
  ]);
});

test("a push of a row dated in the future may be old, so it replaces nothing", async () => {
  await using mirror = await openMirror();
  const titled = (title: string, updated_at: string) => issue({ title, updated_at });
  await mirror.merge(observe("issue", titled("changed", "2026-01-01T00:00:01Z"), at(2)));
  await mirror.merge(observe("issue", titled("dated ahead", "2041-01-01T00:00:00Z"), at(600, false)));
  expect(await mirror.rows("select title, updated_at from issues")).toEqual([
    { title: "changed", updated_at: new Date("2026-01-01T00:00:01Z") },
  ]);
  await mirror.merge(observe("issue", titled("dated ahead", "2041-01-01T00:00:00Z"), at(660)));
  expect(await mirror.rows("select title from issues")).toEqual([{ title: "dated ahead" }]);
});

test.each([null, "no moment", 1_700_000_000])(
  "a push that is dated %o says nothing of its time, so it replaces nothing, and upstream is asked",
  async (updated_at) => {
    await using mirror = await openMirror();
    await mirror.merge(observe("issue", issue({ title: "read" }), at(0)));
    const pushed = issue({ title: "pushed", updated_at });
    const merged = await mirror.merge(observe("issue", pushed, at(600, false)));
    expect(marksForConflicts(merged, new Date()).map(({ kind }) => kind)).toEqual(["issue"]);
    expect(await mirror.rows("select title from issues")).toEqual([{ title: "read" }]);
  },
);

test("values that no column holds keep no row out, and stand in its document as they came", async () => {
  await using mirror = await openMirror();
  const odd = { comments: 3_000_000_000, closed_at: "2026-02-30T00:00:00Z" };
  await mirror.merge(observe("issue", issue(odd), at(0)));
  const [row] = await mirror.rows("select document::text from issues where number = 1");
  expect(JSON.parse(String(row?.document))).toMatchObject(odd);
});

test("labels and assignees that leave an issue leave its lists", async () => {
  await using mirror = await openMirror();
  const label = (id: number, name: string): Fields => ({
    id,
    name,
    color: "ff0000",
    url: `${API}/repos/octo/demo/labels/${name}`,
  });
  await mirror.merge(
    observe("issue", issue({ labels: [label(1, "bug"), label(2, "ui")], assignees: [user(5, "hubot")] }), at(0)),
  );
  await mirror.merge(
    observe("issue", issue({ labels: [label(2, "ui"), label(3, "new")], updated_at: "2026-01-01T00:00:09Z" }), at(60)),
  );
  expect(await mirror.rows("select label_id, number from issue_labels order by label_id")).toEqual([
    { label_id: 2, number: 1 },
    { label_id: 3, number: 1 },
  ]);
  expect(await mirror.rows("select user_id from issue_assignees")).toEqual([]);
});

test("a pull request seen as a pull request can be found as an issue's other side, and is not served as one yet", async () => {
  await using mirror = await openMirror();
  const pull = {
    ...issue({ id: 99 }),
    html_url: "https://example.com/octo/demo/pull/1",
    diff_url: "d",
    patch_url: "p",
    merged_at: null,
    head: { label: "octo:x", ref: "x", sha: "1", user: null, repo: null },
    base: { label: "octo:main", ref: "main", sha: "2" },
  };
  await mirror.merge(observe("pull_request", pull, at(0)));
  expect(await mirror.rows("select number, id, is_pull_request, title from issues")).toEqual([
    { number: 1, id: null, is_pull_request: true, title: "a" },
  ]);
  await mirror.merge(
    observe("issue", issue({ pull_request: { url: "u" }, updated_at: "2025-12-31T23:59:59Z" }), at(60)),
  );
  expect(await mirror.rows("select id, updated_at from issues")).toEqual([
    { id: 11, updated_at: new Date("2025-12-31T23:59:59Z") },
  ]);
  expect(await mirror.rows("select id, updated_at from pull_requests")).toEqual([
    { id: 99, updated_at: new Date("2026-01-01T00:00:00Z") },
  ]);
});

test("two workers that merge the same new rows at once both succeed, and the newer version stands", async () => {
  await using mirror = await openMirror();
  const page = (second: number) =>
    Array.from({ length: 50 }, (_, index) =>
      observe(
        "issue",
        issue({ id: 100 + index, number: index + 1, title: `v${second}`, updated_at: `2026-01-01T00:00:0${second}Z` }),
        at(second),
      ),
    );
  await Promise.all(
    [1, 2, 3, 4].map((second) => mirror.merge(...(second % 2 ? page(second) : page(second).reverse()))),
  );
  expect(await mirror.rows("select distinct title from issues")).toEqual([{ title: "v4" }]);
});

test("a repository's old name is remembered when it is renamed", async () => {
  await using mirror = await openMirror();
  const repository = (fullName: string, updatedAt: string): Fields => ({
    id: 7,
    name: fullName.split("/")[1] as string,
    full_name: fullName,
    private: false,
    owner: user(1, "octo"),
    url: `${API}/repos/${fullName}`,
    issues_url: `${API}/repos/${fullName}/issues{/number}`,
    html_url: `https://example.com/${fullName}`,
    updated_at: updatedAt,
  });
  await mirror.merge(observe("repository", repository("octo/Demo", "2026-01-01T00:00:00Z"), at(0)));
  await mirror.merge(observe("repository", repository("octo/better", "2026-01-01T00:00:05Z"), at(60)));
  expect(await mirror.rows("select * from former_names")).toEqual([{ full_name: "octo/demo", repository_id: 7 }]);
  const [row] = await mirror.rows("select document->>'url' as url, full_name from repositories");
  expect(row).toEqual({ url: "\u0001", full_name: "octo/better" });
});

test("what was said under an issue goes with it, also what is heard of only afterwards", async () => {
  await using mirror = await openMirror();
  const comment = (id: number): Fields => ({
    id,
    body: "text",
    issue_url: `${API}/repos/octo/demo/issues/1`,
    created_at: "2026-01-01T00:00:00Z",
    updated_at: "2026-01-01T00:00:00Z",
  });
  await mirror.merge(observe("issue", issue(), at(0)), observe("issue_comment", comment(1), at(0)));
  await mirror.merge(observe("issue", issue(), { ...at(1, false), deleted: true }));
  await mirror.merge(observe("issue_comment", comment(2), at(2, false)));
  expect(await mirror.rows("select id from issue_comments where deleted_at is not null order by id")).toEqual([
    { id: 1 },
    { id: 2 },
  ]);
  // The issue is deleted just after its comment was edited. One merge learns the edit and the comment's end.
  await mirror.merge(observe("issue", issue({ id: 12, number: 2 }), at(3)));
  const under = (body: string, second: number): Fields => ({
    ...comment(3),
    body,
    issue_url: `${API}/repos/octo/demo/issues/2`,
    updated_at: `2026-01-01T00:00:0${second}Z`,
  });
  await mirror.merge(observe("issue_comment", under("first", 3), at(3, false)));
  await mirror.merge(
    observe("issue_comment", under("edited", 4), at(4, false)),
    observe("issue", issue({ id: 12, number: 2 }), { ...at(5, false), deleted: true }),
  );
  expect(
    await mirror.rows("select body, deleted_at is not null as is_deleted from issue_comments where id = 3"),
  ).toEqual([{ body: "edited", is_deleted: true }]);
});

test("what another has changed since it was read is folded again before it is written", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("issue", issue(), at(0, false)));
  const written = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const first = mirror.db.transaction(async (tx) => {
    const newer = issue({ title: "newer", updated_at: "2026-01-01T00:00:05Z" });
    await mergeObserved(tx, observe("issue", newer, at(5, false)));
    written.resolve();
    await go.promise;
  });
  await written.promise;
  const older = issue({ title: "older", updated_at: "2026-01-01T00:00:03Z", state_reason: "reopened" });
  const second = mirror.merge(observe("issue", older, at(6, false)));
  await until("the second waits", async () => {
    const waiting = await mirror.rows(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return waiting.length > 0;
  });
  go.resolve();
  await Promise.all([first, second]);
  expect(await mirror.rows("select title, state_reason, updated_at from issues")).toEqual([
    { title: "newer", state_reason: "reopened", updated_at: new Date("2026-01-01T00:00:05Z") },
  ]);
});

test("what another has inserted meanwhile is locked in the same order as all else", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("user", user(1, "mona"), at(0)));
  const untilWaitingFor = (pid: number) =>
    until("it waits", async () => {
      const waiting = await mirror.rows(
        `select from pg_stat_activity where datname = current_database() and ${pid} = any(pg_blocking_pids(pid))`,
      );
      return waiting.length === 1;
    });
  const inserted = Promise.withResolvers<number>();
  const commit = Promise.withResolvers<void>();
  const first = mirror.db.transaction(async (tx) => {
    await mergeObserved(tx, observe("issue", issue({ user: null }), at(0, false)));
    const [row] = await tx.query<{ pid: number }>(sql`select pg_backend_pid() as pid`);
    inserted.resolve(row?.pid as number);
    await commit.promise;
  });
  const inserter = await inserted.promise;
  const newer = issue({ title: "newer", updated_at: "2026-01-01T00:00:05Z", user: user(1, "renamed") });
  const second = mirror.merge(observe("issue", newer, at(60)));
  await untilWaitingFor(inserter);
  const holder = await connectTo(mirror.url);
  try {
    await holder.query("begin");
    const { rows } = await holder.query("select pg_backend_pid() as pid from users where id = 1 for update");
    commit.resolve();
    await first;
    await untilWaitingFor(rows[0].pid);
    // A transaction that held the issue's lock now, and waited for the user's, could cause a deadlock.
    await expect(mirror.rows("select from issues where number = 1 for update nowait")).rejects.toThrow(
      "could not obtain lock",
    );
  } finally {
    await holder.end();
    await second;
  }
  expect(await mirror.rows("select title from issues")).toEqual([{ title: "newer" }]);
  expect(await mirror.rows("select login from users")).toEqual([{ login: "renamed" }]);
});

test("many workers that merge what others merge at the same moment end with the newest of everything", async () => {
  await using mirror = await openMirror();
  const label = (second: number): Fields => ({ id: 5, name: `v${second}`, color: "fff", default: false });
  const comment = (id: number, second: number): Fields => ({
    id,
    body: `v${second}`,
    issue_url: `${API}/repos/octo/demo/issues/${id}`,
    created_at: "2026-01-01T00:00:00Z",
    updated_at: `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`,
  });
  const batch = (second: number) => {
    const updated_at = `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`;
    return [1, 2, 3, 4, 5, 6].flatMap((number) => [
      observe(
        "issue",
        issue({ id: 100 + number, number, title: `v${second}`, updated_at, labels: [label(second)] }),
        at(second),
      ),
      observe("issue_comment", comment(number, second), at(second)),
    ]);
  };
  const seconds = Array.from({ length: 24 }, (_, index) => ((index * 7) % 24) + 1);
  await Promise.all(seconds.map((second) => mirror.merge(...(second % 2 ? batch(second) : batch(second).reverse()))));
  expect(await mirror.rows("select distinct title from issues")).toEqual([{ title: "v24" }]);
  expect(await mirror.rows("select distinct body from issue_comments")).toEqual([{ body: "v24" }]);
  expect(await mirror.rows("select name from labels")).toEqual([{ name: "v24" }]);
  expect(await mirror.rows("select count(*)::int as count from issue_labels")).toEqual([{ count: 6 }]);
});

test("a key that upstream shows no more to a request for the resource alone is gone", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("issue", issue({ active_lock_reason: "spam" }), at(0)));
  await mirror.merge(observe("issue", issue(), at(60)));
  expect(await mirror.rows("select active_lock_reason from issues")).toEqual([{ active_lock_reason: "spam" }]);
  await mirror.merge(observe("issue", issue(), { ...at(120), isSingle: true }));
  expect(await mirror.rows("select active_lock_reason from issues")).toEqual([{ active_lock_reason: null }]);
});

test("a resource without what it is known by is refused, and says what is missing", () => {
  expect(() => observe("issue", { id: 1, title: "a" }, at(0))).toThrow("This issue came without number");
  expect(() => observe("issue", "text", at(0))).toThrow("This issue is not an object");
  const comment = { id: 1, created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-01T00:00:00Z" };
  expect(() =>
    observe("review_comment", { ...comment, pull_request_url: "https://api.test/pulls/none" }, at(0)),
  ).toThrow("This review_comment came without pull_request_url");
});
