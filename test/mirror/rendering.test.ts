import { expect, test, vi } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { PEOPLE } from "../../db/revisions.ts";
import { sql } from "../../db/sql.ts";
import { type Fields, parseExactly } from "../../src/json.ts";
import { type SharedKey, sharedName } from "../../src/mirror/documents/documents.ts";
import { IssueLookups } from "../../src/mirror/read/issue-lookups.ts";
import { renderDocuments, renderList, type StoredDocument } from "../../src/mirror/render/rendering.ts";
import { SharedRows, ShownRows } from "../../src/mirror/render/shared-rows.ts";
import { Unfolding } from "../../src/mirror/render/unfolding.ts";
import { marksForConflicts } from "../../src/mirror/store/marks.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { type Observed, observe, type Sighting } from "../../src/mirror/store/observation.ts";
import { Reading, RepositoryVersionsReader } from "../../src/mirror/unchanged/unchanged.ts";
import { Pace } from "../../src/work/pace.ts";
import { openTestDatabase } from "../support/database.ts";

const API = "https://api.example.com";
const PAGE = "https://example.com/octo/demo";
const OURS = { api: "https://mirror.example" };

const at = (seconds: number, more: Partial<Sighting> = {}): Sighting => ({
  api: API,
  repository: { id: 7, fullName: "octo/demo", htmlUrl: PAGE },
  seenAt: new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)),
  read: true,
  ...more,
});
const user = (id: number, login: string): Fields => ({
  login,
  id,
  type: "User",
  followers_url: `${API}/users/${login}/followers`,
});
const label = (id: number, name: string): Fields => ({
  id,
  name,
  color: "ff0000",
  url: `${API}/repos/octo/demo/labels/${name}`,
});
const milestone = (title: string, creator: Fields): Fields => ({
  id: 31,
  number: 3,
  title,
  state: "open",
  labels_url: `${API}/repos/octo/demo/milestones/3/labels`,
  creator,
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
});
const repository = (fullName: string, owner: Fields, more: Fields = {}): Fields => ({
  id: 7,
  name: fullName.split("/")[1] as string,
  full_name: fullName,
  owner,
  private: false,
  html_url: `https://example.com/${fullName}`,
  issues_url: `${API}/repos/${fullName}/issues{/number}`,
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
  ...more,
});
const issue = (number: number, fields: Fields = {}): Fields => ({
  url: `${API}/repos/octo/demo/issues/${number}`,
  html_url: `${PAGE}/issues/${number}`,
  id: 100 + number,
  number,
  title: "a title",
  body: "text",
  state: "open",
  user: user(1, "mona"),
  labels: [label(21, "bug"), label(22, "docs")],
  assignees: [user(2, "hubot")],
  milestone: milestone("first", user(3, "lisa")),
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
  ...fields,
});

interface Shown {
  user: Fields;
  labels: Fields[];
  milestone: { title: string; creator: Fields };
}

/** Objects have null in the place of a deleted label, and their readers leave it out. */
function withoutDeletedLabels(fields: Fields): Fields {
  return { ...fields, labels: (fields.labels as Fields[]).filter((one) => one !== null) };
}

test.each([1.5, 1e300, -0.5, null])(
  "what is embedded with the id %s, which no key can be, stays where it stands",
  (id) => {
    const odd = issue(5, { user: { ...user(1, "mona"), id }, labels: [{ ...label(21, "bug"), id }] });
    const { seen } = observe("issue", odd, at(0));
    expect(seen.map(({ kind, key }) => `${kind} ${key}`)).toEqual(["user 2", "user 3", "milestone 31", "issue 5"]);
    expect(seen.at(-1)?.fields.user).toMatchObject({ login: "mona", id });
  },
);

test("a label without an id is known by its name, whether the id is absent or null", () => {
  const { id: _, ...absent } = label(21, "bug");
  const keys = [absent, { ...absent, id: null }].map((one) => observe("label", one, at(0)).seen.at(-1)?.key);
  expect(keys[0]).toBeLessThan(0);
  expect(keys[1]).toBe(keys[0]);
});

/** A mirror that one process writes and another reads. */
async function openMirror() {
  const database = await openTestDatabase();
  const [writer, reader] = [openDatabase(database.url), openDatabase(database.url)];
  const repositoryVersions = new RepositoryVersionsReader({ databaseUrl: database.url, databaseDirectUrl: null });
  const shared = new SharedRows(reader, { maxBytes: 1_000_000 });
  const documents = async (): Promise<StoredDocument[]> => {
    const rows = await reader.query<{ document: string; body: string | null }>(sql`
      select document::text as document, body from issues order by number`);
    return rows.map((row) => ({ repositoryId: 7, ...row }));
  };
  return {
    writer,
    reader,
    repositoryVersions,
    shared,
    documents,
    merge: (observed: Observed) => writer.transaction((tx) => mergeObserved(tx, observed)),
    /** The resources in each way of reading, which must all show the same. */
    show: async (): Promise<Fields[]> => {
      const stored = await documents();
      const texts = await renderDocuments(new SharedRows(reader), stored, OURS);
      const shown = texts.map((text) => JSON.parse(text ?? ""));
      for (const reading of [
        undefined,
        new Reading(repositoryVersions),
        new Reading(repositoryVersions, { isLasting: false }),
      ]) {
        const audience = { ...OURS, reading };
        expect(await renderDocuments(shared, stored, audience)).toEqual(texts);
        expect((await renderList(shared, stored, audience))?.toString()).toBe(`[${texts.join(",")}]`);
        expect((await new Unfolding(shared, audience, new Pace(0)).unfold(stored)).map(withoutDeletedLabels)).toEqual(
          shown,
        );
      }
      return shown;
    },
    [Symbol.asyncDispose]: async () => {
      await repositoryVersions[Symbol.asyncDispose]();
      await Promise.all([writer.close(), reader.close()]);
      await database[Symbol.asyncDispose]();
    },
  };
}

test("whatever another process changes of what is embedded is shown by the next read", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("repository", repository("octo/demo", user(4, "octo")), at(0)));
  await mirror.merge(observe("issue", issue(1), at(0)));
  const shown = async () => (await mirror.show())[0] as unknown as Shown;
  for (let turn = 0; turn < 2; turn++) expect((await shown()).user.login).toBe("mona");

  await mirror.merge(observe("user", user(1, "renamed"), at(60)));
  expect((await shown()).user).toMatchObject({
    login: "renamed",
    followers_url: `${OURS.api}/users/renamed/followers`,
  });
  await mirror.merge(observe("user", user(3, "lisa-2"), at(60)));
  expect((await shown()).milestone.creator.login).toBe("lisa-2");
  await mirror.merge(observe("label", label(21, "defect"), at(60)));
  expect((await shown()).labels[0]).toMatchObject({ name: "defect", url: `${OURS.api}/repos/octo/demo/labels/defect` });
  await mirror.merge(
    observe("milestone", { ...milestone("second", user(3, "lisa-2")), updated_at: "2026-01-01T00:01:00Z" }, at(60)),
  );
  expect((await shown()).milestone.title).toBe("second");
  await mirror.merge(
    observe("repository", repository("octo/other", user(4, "octo"), { updated_at: "2026-01-01T00:01:00Z" }), at(60)),
  );
  expect(await shown()).toMatchObject({
    url: `${OURS.api}/repos/octo/other/issues/1`,
    html_url: "https://example.com/octo/other/issues/1",
    labels: [{ url: `${OURS.api}/repos/octo/other/labels/defect` }, {}],
  });
  await mirror.merge(observe("label", label(22, "docs"), at(90, { deleted: true })));
  expect((await shown()).labels.map(({ name }: Fields) => name)).toEqual(["defect"]);
});

test("a person is kept from the first time they are shown, and shown as they are now", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("repository", repository("octo/demo", user(4, "octo")), at(0)));
  const labels = Array.from({ length: 9 }, (_, index) => label(30 + index, `label ${index}`));
  await mirror.merge(observe("issue", issue(1, { labels }), at(0)));
  const shared = new SharedRows(mirror.reader, { maxBytes: 10_000 });
  const load = async (keys: SharedKey[]) => {
    const rows = new ShownRows(shared, { reading: new Reading(mirror.repositoryVersions) });
    await rows.load(keys.map((key) => ({ key, name: sharedName(key), shape: null, login: null })));
    return rows;
  };
  const mona = { kind: "u", repositoryId: 0, id: 1 } as const;
  const login = async () => JSON.parse((await load([mona])).row(sharedName(mona))?.document ?? "{}").login;
  const bugs = labels.map(({ id }) => ({ kind: "l", repositoryId: 7, id: Number(id) }) as const);
  await load(bugs);
  for (const bug of bugs.slice(-4)) expect(shared.recall(sharedName(bug))).toBeDefined();
  expect(await login()).toBe("mona");
  expect(shared.recall(sharedName(mona))).toBeDefined();
  await mirror.merge(observe("user", user(1, "renamed"), at(60)));
  expect(await login()).toBe("renamed");
});

test("what is unchanged is not read again, and of what may have changed only what has is sent", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("repository", repository("octo/demo", user(4, "octo")), at(0)));
  await mirror.merge(observe("issue", issue(1), at(0)));
  await mirror.merge(observe("user", user(77, "somebody-else"), at(0)));
  const stored = await mirror.documents();
  const render = () =>
    renderDocuments(mirror.shared, stored, { ...OURS, reading: new Reading(mirror.repositoryVersions) });
  await render();
  const statements = vi.spyOn(mirror.reader, "prepared");
  const first = await render();
  expect(statements.mock.calls).toEqual([]);
  await mirror.merge(observe("user", user(77, "renamed"), at(60)));
  expect(await render()).toEqual(first);
  expect(await Promise.all(statements.mock.results.map(({ value }) => value as Promise<unknown[]>))).toEqual([[]]);
});

test("a repository is one object for all who read it until it, or its owner, changes", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("repository", repository("octo/demo", user(4, "octo")), at(0)));
  const read = () =>
    new Unfolding(mirror.shared, { ...OURS, reading: new Reading(mirror.repositoryVersions) }, new Pace(0)).repository(
      7,
    );
  const first = await read();
  expect(await read()).toBe(first);
  await mirror.merge(observe("user", user(4, "renamed"), at(60)));
  const renamed = await read();
  expect(renamed).toMatchObject({ full_name: "octo/demo", owner: { login: "renamed" } });
  expect(await read()).toBe(renamed);
  const moved = repository("octo/other", user(4, "renamed"), { updated_at: "2026-01-01T00:01:00Z" });
  await mirror.merge(observe("repository", moved, at(90)));
  expect(await read()).toMatchObject({ full_name: "octo/other", owner: { login: "renamed" } });
});

test("someone who was not stored when they were first asked for is shown once they are", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("issue", issue(1), at(0)));
  await mirror.writer.query(sql`delete from users where id = 1`);
  expect((await mirror.show())[0]?.user).toBeNull();
  await mirror.merge(observe("user", user(1, "mona"), at(60)));
  expect((await mirror.show())[0]?.user).toMatchObject({ login: "mona" });
});

test("a transaction shows what it has changed itself, and what it gives up is shown to nobody", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("issue", issue(1), at(0)));
  const [stored] = await mirror.documents();
  await mirror.show();
  const undone = mirror.reader.transaction(async (tx) => {
    await mergeObserved(tx, observe("user", user(1, "renamed"), at(60)));
    const [text] = await renderDocuments(new SharedRows(tx), [stored as StoredDocument], OURS);
    expect(JSON.parse(text as string).user.login).toBe("renamed");
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  expect((await mirror.show())[0]).toMatchObject({ user: { login: "mona" } });
});

test("letters of all sizes, broken ones and those that look like marks are the same as bytes and as text", async () => {
  await using mirror = await openMirror();
  const texts = [
    "é",
    "Zürich 大阪 🎉",
    "nul \0, a lone \ud83d",
    "\u0001/issues/1",
    '"\\u0005u1:abc"',
    "\u0006",
    "\u2028 \u0085",
  ];
  for (const [index, text] of texts.entries()) {
    const author = { ...user(50 + index, "mona"), name: text };
    await mirror.merge(
      observe(
        "issue",
        issue(index + 1, { title: text, body: text, user: author, labels: [label(60 + index, text)] }),
        at(0),
      ),
    );
  }
  const shown = await mirror.show();
  expect(shown.map(({ title, body, user: author, labels }) => [title, body, author, labels])).toMatchObject(
    texts.map((text) => [text, text, { name: text }, [{ name: text }]]),
  );
});

test("one address after another, each is shown its own", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("issue", issue(1), at(0)));
  const stored = await mirror.documents();
  for (const turn of [1, 2]) {
    for (let host = 0; host < 10; host++) {
      const api = `https://${host}.example/${turn}`;
      const [text] = await renderDocuments(mirror.shared, stored, {
        api,
        reading: new Reading(mirror.repositoryVersions),
      });
      expect(JSON.parse(text as string).user.followers_url).toBe(`${api}/users/mona/followers`);
    }
  }
});

test("a list in which a repository is embedded is not made of bytes, since not everybody is shown the same of it", async () => {
  await using mirror = await openMirror();
  const owner = user(4, "octo");
  await mirror.merge(observe("issue", issue(1, { repository: repository("octo/demo", owner) }), at(0)));
  expect(await renderList(mirror.shared, await mirror.documents(), OURS)).toBeNull();
});

test("many who ask for issues at once are each answered what is theirs", async () => {
  await using mirror = await openMirror();
  for (const number of [1, 2, 3]) await mirror.merge(observe("issue", issue(number), at(0)));
  await mirror.merge(observe("issue", issue(2), at(60, { deleted: true })));
  const issues = new IssueLookups(mirror.reader);
  const asked = Array.from({ length: 40 }, (_, index) => index % 4);
  const found = await Promise.all(asked.map((number) => issues.find(7, number)));
  const expected = [null, expect.objectContaining({ number: 1 }), "deleted", expect.objectContaining({ number: 3 })];
  expect(found.map((one) => one.issue)).toEqual(asked.map((number) => expected[number]));
});

const bot = (login: string, more: Fields = {}): Fields => ({
  ...user(9, encodeURIComponent(login)),
  login,
  type: "Bot",
  html_url: "https://example.com/apps/helper-bot",
  ...more,
});
const accountShown = (login: string) => ({
  login,
  followers_url: `${OURS.api}/users/${encodeURIComponent(login)}/followers`,
});

test("a bot keeps in each place the login that upstream shows there, and its account the App's", async () => {
  await using mirror = await openMirror();
  await mirror.merge(observe("repository", repository("octo/demo", user(4, "octo")), at(0)));
  for (const turn of [0, 60]) {
    const merged = [
      await mirror.merge(
        observe("issue", issue(1, { user: bot("helper-bot[bot]"), assignees: [bot("Helper")] }), at(turn)),
      ),
      await mirror.merge(
        observe("issue", issue(2, { user: bot("Helper"), assignees: [bot("helper-bot[bot]")] }), at(turn + 20)),
      ),
      await mirror.merge(observe("user", bot("Helper"), at(turn + 40))),
    ];
    // Nothing contradicts anything, so upstream is asked about nothing.
    expect(marksForConflicts(merged.flat(), new Date())).toEqual([]);
    expect(await mirror.show()).toMatchObject([
      { user: accountShown("helper-bot[bot]"), assignees: [accountShown("Helper")] },
      { user: accountShown("Helper"), assignees: [accountShown("helper-bot[bot]")] },
    ]);
    expect(await mirror.reader.query(sql`select login from users where id = 9`)).toEqual([
      { login: "helper-bot[bot]" },
    ]);
  }
  // Nothing has changed, so no kept page is dropped.
  const revision = sql`select revision from revisions where repository_id = ${PEOPLE}`;
  const before = await mirror.reader.query(revision);
  await mirror.merge(observe("issue", issue(1, { user: bot("helper-bot[bot]"), assignees: [bot("Helper")] }), at(200)));
  await mirror.merge(observe("user", bot("helper-bot[bot]"), at(220)));
  expect(await mirror.reader.query(revision)).toEqual(before);
});

test("a bot whose page names no App is known by the login with [bot], wherever it was met first", async () => {
  const elsewhere = { html_url: "https://example.com/Helper" };
  for (const logins of [
    ["Helper", "helper-bot[bot]"],
    ["helper-bot[bot]", "Helper"],
  ] as const) {
    await using mirror = await openMirror();
    await mirror.merge(observe("repository", repository("octo/demo", user(4, "octo")), at(0)));
    for (const [at_, login] of logins.entries())
      await mirror.merge(observe("issue", issue(at_ + 1, { user: bot(login, elsewhere) }), at(30 * at_)));
    expect((await mirror.show()).map(({ user: shown }) => (shown as Fields).login)).toEqual(logins);
    expect(await mirror.reader.query(sql`select login from users where id = 9`)).toEqual([
      { login: "helper-bot[bot]" },
    ]);
  }
});

test("a review that a webhook tells shows its bot as reads do", () => {
  const review = { id: 5, state: "commented", user: bot("Helper"), pull_request_url: `${API}/repos/octo/demo/pulls/1` };
  const userOf = ({ seen }: Observed) => String(seen.find(({ kind }) => kind === "review")?.fields.user);
  expect(userOf(observe("review", review, at(0, { read: false })))).not.toContain("Helper");
  expect(userOf(observe("review", review, at(0)))).toContain(":Helper");
});

test.each(["9007199254740993", "-0.12345678901234567891"])(
  "%s is shown as it came, by a read and by a webhook alike",
  async (digits) => {
    await using mirror = await openMirror();
    await mirror.merge(observe("repository", repository("octo/demo", user(4, "octo")), at(0)));
    const text = JSON.stringify(issue(1, { issue_field_values: [{ value: "BIG", note: "\u00075 bells" }] })).replace(
      '"BIG"',
      digits,
    );
    for (const read of [true, false]) {
      const merged = await mirror.merge(observe("issue", parseExactly(text), at(read ? 0 : 60, { read })));
      expect(marksForConflicts(merged, new Date())).toEqual([]);
      const [shown] = await renderDocuments(new SharedRows(mirror.reader), await mirror.documents(), OURS);
      expect(shown).toContain(`"issue_field_values":[{"value":${digits},"note":"\\u00075 bells"}]`);
      const [unfolded] = await new Unfolding(mirror.shared, OURS, new Pace(0)).unfold(await mirror.documents());
      expect(unfolded?.issue_field_values).toEqual([{ value: Number(digits), note: "\u00075 bells" }]);
    }
  },
);
