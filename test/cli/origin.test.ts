import { expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { claimOrigin, findOrigin, OriginMismatchError, SIMULATOR } from "../../src/sync/following/origin.ts";
import { openTestDatabase } from "../support/database.ts";

const GITHUB = "https://api.github.com";

async function openMirror() {
  const resources = new AsyncDisposableStack();
  const database = resources.use(await openTestDatabase());
  const db = openDatabase(database.url);
  resources.defer(() => db.close());
  return {
    db,
    clock: { now: () => new Date() },
    /** A row in the tables that matter most: what upstream showed, what was wished, who may ask. */
    async fill() {
      await db.query(sql`
        insert into repositories (id, name, full_name, private, document, seen_at, seen_by_read)
          values (1, 'a', 'o/a', false, '{}', now(), true)`);
      await db.query(sql`insert into selections (pattern, added_at) values ('o/a', now())`);
      await db.query(sql`insert into api_tokens (hash, user_id, can_write, created_at) values ('h', 1, true, now())`);
    },
    async counts() {
      const rows = await db.query<Record<string, number>>(sql`
        select (select count(*)::int from repositories) as repositories, (select count(*)::int
          from selections) as selections, (select count(*)::int from api_tokens) as tokens`);
      return rows[0];
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

test("the first start says what the database mirrors, and later ones go on with it", async () => {
  await using mirror = await openMirror();
  expect(await findOrigin(mirror.db)).toBe(null);
  expect(await claimOrigin(mirror, GITHUB)).toBe("claimed");
  await mirror.fill();
  expect(await claimOrigin(mirror, GITHUB)).toBe("continued");
  expect(await mirror.counts()).toEqual({ repositories: 1, selections: 1, tokens: 1 });
});

test("a database of one upstream is refused to another and to the demonstration, by name and with what to set; nothing is lost", async () => {
  await using mirror = await openMirror();
  await claimOrigin(mirror, GITHUB);
  await mirror.fill();
  await expect(claimOrigin(mirror, "https://ghe.example/api/v3")).rejects.toThrow(
    new OriginMismatchError(
      "This database mirrors https://api.github.com, not https://ghe.example/api/v3: set UPSTREAM_URL to https://api.github.com, or use another database (DATABASE_URL; TAIN_HOME where it is the embedded one)",
    ),
  );
  await expect(claimOrigin(mirror, SIMULATOR)).rejects.toThrow(
    /mirrors https:\/\/api\.github\.com, and the demonstration would replace it: set UPSTREAM_URL and UPSTREAM_TOKEN/,
  );
  expect(await findOrigin(mirror.db)).toBe(GITHUB);
  expect(await mirror.counts()).toEqual({ repositories: 1, selections: 1, tokens: 1 });
});

test("a mirror that nobody has named is not the demonstration's to empty, but its upstream's to claim", async () => {
  await using mirror = await openMirror();
  await mirror.fill();
  await expect(claimOrigin(mirror, SIMULATOR)).rejects.toThrow(/This database holds a mirror already/);
  expect(await claimOrigin(mirror, GITHUB)).toBe("claimed");
  expect(await mirror.counts()).toEqual({ repositories: 1, selections: 1, tokens: 1 });
});

test("a demonstration's database is emptied at each start; its tokens outlive the next demonstration, not a real upstream", async () => {
  await using mirror = await openMirror();
  expect(await claimOrigin(mirror, SIMULATOR)).toBe("claimed");
  await mirror.fill();
  expect(await claimOrigin(mirror, SIMULATOR)).toBe("emptied");
  expect(await mirror.counts()).toEqual({ repositories: 0, selections: 0, tokens: 1 });
  expect(await claimOrigin(mirror, GITHUB)).toBe("emptied");
  expect(await mirror.counts()).toEqual({ repositories: 0, selections: 0, tokens: 0 });
  expect(await findOrigin(mirror.db)).toBe(GITHUB);
});

test("an address that never answered is corrected where the database is ours alone and holds nothing yet", async () => {
  await using mirror = await openMirror();
  const wrong = "https://api.githbu.com";
  expect(await claimOrigin(mirror, wrong)).toBe("claimed");
  await expect(claimOrigin(mirror, GITHUB)).rejects.toThrow(OriginMismatchError);
  expect(await claimOrigin(mirror, GITHUB, { isOurs: true })).toBe("claimed");
  expect(await findOrigin(mirror.db)).toBe(GITHUB);
  await mirror.fill();
  await expect(claimOrigin(mirror, wrong, { isOurs: true })).rejects.toThrow(OriginMismatchError);
  expect(await findOrigin(mirror.db)).toBe(GITHUB);
});

test("of two starts at once on a fresh database one is refused when they name two upstreams", async () => {
  await using mirror = await openMirror();
  const outcomes = await Promise.allSettled([
    claimOrigin(mirror, GITHUB),
    claimOrigin(mirror, "https://ghe.example/api/v3"),
  ]);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
});
