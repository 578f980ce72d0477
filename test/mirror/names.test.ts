import { expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { migrate } from "../../db/migrate.ts";
import { sql } from "../../db/sql.ts";
import type { Fields } from "../../src/json.ts";
import { findIssues, issueSource } from "../../src/mirror/read/issues.ts";
import { findLabel } from "../../src/mirror/read/labels.ts";
import { isNamed } from "../../src/mirror/read/names.ts";
import { findLabelsByName, findUsersByLogin } from "../../src/mirror/read/nodes.ts";
import { countPages } from "../../src/mirror/read/pages.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { joinObserved, observe, type Sighting } from "../../src/mirror/store/observation.ts";
import { openTestDatabase } from "../support/database.ts";
import { EMPTY_TEMPLATE } from "../support/template.ts";

const API = "https://api.example.com";
const REPOSITORY = 7;
const SIGHTING: Sighting = {
  api: API,
  repository: { id: REPOSITORY, fullName: "octo/demo", htmlUrl: "https://example.com/octo/demo" },
  seenAt: new Date(Date.UTC(2026, 0, 1)),
  read: true,
};
/** Names whose letters JavaScript and Postgres turn into lower case differently, or one locale unlike another. */
const NAMES = ["ΟΔΟΣ", "İZMİR", "ОШИБКА", "Straße", "naïve", "ISSUE"];

const label = (name: string, at: number): Fields => ({
  id: at + 1,
  name,
  color: "ff0000",
  url: `${API}/repos/octo/demo/labels/${encodeURIComponent(name)}`,
});

/** As `create database` takes them, after `template`. */
const LOCALES = [
  ["the embedded Postgres's own locale", EMPTY_TEMPLATE],
  ["C", "template0 locale_provider libc locale 'C'"],
  ["Turkish", "template0 locale_provider icu icu_locale 'tr' locale 'C'"],
] as const;

test.each(LOCALES)("a name is found by itself in a database with %s", async (_, template) => {
  await using database = await openTestDatabase(template);
  if (template !== EMPTY_TEMPLATE) await migrate(database.url);
  const db = openDatabase(database.url);
  try {
    const login = { login: "ILSE", id: 9, node_id: "U_9", type: "User", url: `${API}/users/ILSE` };
    const observed = NAMES.map((name, at) =>
      observe(
        "issue",
        {
          id: 100 + at,
          number: at + 1,
          state: "open",
          title: name,
          body: null,
          user: login,
          labels: [label(name, at)],
          created_at: "2026-01-01T00:00:00Z",
          updated_at: "2026-01-01T00:00:00Z",
          url: `${API}/repos/octo/demo/issues/${at + 1}`,
        },
        SIGHTING,
      ),
    );
    await db.transaction((tx) => mergeObserved(tx, joinObserved([observe("user", login, SIGHTING), ...observed])));
    for (const [at, name] of NAMES.entries()) {
      const order = { sort: "created", direction: "asc" } as const;
      const page = { position: { offset: 0 }, limit: 10 };
      for (const labels of [[name], [name, name]])
        expect(
          (await findIssues(db, REPOSITORY, { state: "open", labels }, order, page)).map(({ number }) => number),
        ).toEqual([at + 1]);
      const parent = { r: REPOSITORY, n: 0 };
      for (const asked of [{ labels: [name] }, { filterBy: { labels: [name, name] } }])
        expect((await countPages(db, issueSource(asked), [parent]))[0]?.count).toBe(1);
      expect((await findLabel(db, REPOSITORY, name))?.id).toBe(at + 1);
      const key = `${REPOSITORY}/${name}`;
      expect(await findLabelsByName(db, [{ repositoryId: REPOSITORY, name }])).toMatchObject([{ key }]);
    }
    expect(await findUsersByLogin(db, ["ilse"])).toMatchObject([{ key: "ilse" }]);
    const both = sql`select ${isNamed(sql`${"ошибка"}::text`, ["ОШИБКА"])} as "inCyrillic"`;
    expect(await db.query(both)).toEqual([{ inCyrillic: true }]);
  } finally {
    await db.close();
  }
});
