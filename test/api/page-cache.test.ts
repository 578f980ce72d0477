import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Fields, Json } from "../../src/json.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";
import { removeSelection } from "../../src/sync/following/removal.ts";
import { openLink } from "../receiver/breakable-link.ts";
import { type Answered, type Asking, askAt } from "../support/asking.ts";
import { store } from "../support/mirrored.ts";
import { until } from "../support/patience.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";
import { readPaths } from "./read-paths.ts";

// A kept answer equals a new one: it is never older, never shown to other callers, and has the same headers.

/** `PAGE_CACHE_STEPS=1000 npm test -- test/api/page-cache` makes as many changes, and reads after each. */
const STEPS = Number(process.env.PAGE_CACHE_STEPS ?? 15);
const WRITES = Number(process.env.PAGE_CACHE_WRITES ?? 100);

let world: ApiWorld;
/** The addresses of two more web processes: one keeps pages, and one keeps none. */
let keeping: string;
let plain: string;
/** The world's time moves only where a test moves it: `Last-Modified` is not shown within the second of a change. */
const beganAt = Date.now();
let aheadMs = 0;

beforeAll(async () => {
  world = await openApiWorld({
    repositories: 3,
    issues: 30,
    clock: { now: () => new Date(beganAt + aheadMs) },
    env: { RATE_LIMIT_USER: "1000000", RATE_LIMIT_ANONYMOUS: "1000000", UPSTREAM_CALLER_TTL: "1m" },
  });
  keeping = await world.openSibling();
  plain = await world.openSibling({ PAGE_CACHE_BYTES: "0" });
  world.upstream.tokens.create({ token: "ghp_outsider", login: "outsider" });
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Asks three times: once to learn what the page shows, once to keep it, once to remember the request. */
async function warm(path: string, asking: Asking): Promise<void> {
  for (let time = 0; time < 3; time++) await askAt(keeping, "GET", path, asking);
}

/** An answer without the values that differ between any two requests or servers. */
function shape({ status, headers, text }: Answered, url: string): unknown {
  // A page that is compressed beforehand has a length; one that is compressed while it is sent has none.
  const own = /^(date|x-github-request-id|x-ratelimit-(remaining|used|reset)|age|content-length|transfer-encoding)$/;
  const kept = [...headers]
    .filter(([name]) => !own.test(name))
    .map(([name, value]) => [name, value.replaceAll(url, "URL")]);
  return {
    status,
    headers: Object.fromEntries(kept.filter(([name]) => name !== "etag")),
    text: text.replaceAll(url, "URL"),
  };
}

const busiest = () => world.repositories[0] as ApiWorld["repositories"][number];

describe("the same from memory as anew", () => {
  const askers: [string, () => Asking][] = [
    ["nobody", () => ({ token: null })],
    ["our token", () => ({ token: world.token })],
    ["our token that reads", () => ({ token: world.readToken })],
    ["upstream's token", () => ({ token: "ghp_outsider" })],
    ["the newer version", () => ({ token: world.token, headers: { "x-github-api-version": "2026-03-10" } })],
    ["HTML", () => ({ token: world.token, headers: { accept: "application/vnd.github.html+json" } })],
    ["gzip", () => ({ token: world.token, headers: { "accept-encoding": "gzip" } })],
    ["no compression", () => ({ token: world.token, headers: { "accept-encoding": "identity" } })],
    ["a person", () => ({ token: world.token, headers: { "user-agent": "curl/8" } })],
    ["an enterprise client", () => ({ token: world.token })],
  ];
  // Our token asks for every path, each other asker for every third. PAGE_CACHE_STEPS has all of them ask for all.
  const asksAll = process.env.PAGE_CACHE_STEPS !== undefined;
  test.each(askers.map(([name, asking], turn) => [name, asking, turn] as const))("%s", async (name, asking, turn) => {
    const public_ = world.repositories.find(({ private: isPrivate }) => !isPrivate);
    if (!public_) throw new Error("The world needs a public repository");
    const prefix = name === "an enterprise client" ? "/api/v3" : "";
    for (const [place, path] of (await readPaths(world, public_.fullName)).entries()) {
      if (!asksAll && name !== "our token" && place % 3 !== turn % 3) continue;
      for (const more of name === "our token" ? ["", "?per_page=3&page=2"] : [""]) {
        const at = `${prefix}${path}${more}`;
        const wanted = await askAt(plain, "GET", at, asking());
        await warm(at, asking());
        const again = await askAt(keeping, "GET", at, asking());
        expect(shape(again, keeping), at).toEqual(shape(wanted, plain));
        const etag = again.headers.get("etag");
        if (!etag) continue;
        const { headers, ...rest } = asking();
        const known = { ...rest, headers: { ...headers, "if-none-match": etag } };
        const unchanged = await askAt(keeping, "GET", at, known);
        expect(unchanged.status, at).toBe(304);
        const tag = wanted.headers.get("etag") ?? "";
        const anew = await askAt(plain, "GET", at, { ...known, headers: { ...known.headers, "if-none-match": tag } });
        expect(shape(unchanged, keeping), at).toEqual(shape(anew, plain));
      }
    }
  });

  test("what is kept is answered without a look at the rows, and no longer than until they change", async () => {
    const { id, fullName } = busiest();
    const path = `/repos/${fullName}/labels?per_page=100`;
    const asking = { token: world.token };
    await warm(path, asking);
    const before = await askAt(keeping, "GET", path, asking);
    // This statement changes the row without raising a revision, so the kept page does not notice.
    const changed = before.body[0].description === "x" ? "y" : "x";
    await world.ctx.db.query(sql`
      update labels set document = (document::jsonb || jsonb_build_object('description', ${changed}::text))::json
        where id = ${before.body[0].id}`);
    expect((await askAt(plain, "GET", path, asking)).body[0].description).toBe(changed);
    expect((await askAt(keeping, "GET", path, asking)).text).toBe(before.text);
    await touchRepository(id);
    expect((await askAt(keeping, "GET", path, asking)).body[0].description).toBe(changed);
  });

  test.each(["by the repository's name", "by its number"])("a single issue is kept, %s", async (how) => {
    const { id, fullName } = busiest();
    const path = `${how === "by its number" ? `/repositories/${id}` : `/repos/${fullName}`}/issues/1`;
    const asking = { token: world.token };
    await warm(path, asking);
    const before = await askAt(keeping, "GET", path, asking);
    expect(before.status).toBe(200);
    // This statement changes the row without raising a revision, so the kept page does not notice.
    const changed = before.body.title === "x" ? "y" : "x";
    await world.ctx.db.query(sql`
      update issues set document = (document::jsonb || jsonb_build_object('title', ${changed}::text))::json
        where id = ${before.body.id}`);
    expect((await askAt(plain, "GET", path, asking)).body.title).toBe(changed);
    expect((await askAt(keeping, "GET", path, asking)).text).toBe(before.text);
    await touchRepository(id);
    expect((await askAt(keeping, "GET", path, asking)).body.title).toBe(changed);
  });

  test("a request that comes again takes the short way", async () => {
    const path = `/repos/${busiest().fullName}/labels?page=1`;
    // The requests carry no token. A token is checked in Postgres every ten seconds, and that request takes the usual
    // way.
    const asking = { token: null };
    const isShort = async () => isShortHead((await rawNames(keeping + path)).join("\n"));
    for (let time = 0; time < 2; time++) expect(await isShort()).toBe(false);
    expect(await isShort()).toBe(true);
    await touchRepository(busiest().id);
    expect(await isShort()).toBe(false);
    expect((await askAt(keeping, "GET", path, asking)).status).toBe(200);
  });

  test("requests that come one behind the other over a connection are answered in their order", async () => {
    const path = `/repos/${busiest().fullName}/labels?per_page=1`;
    const asking = { token: null };
    await warm(path, asking);
    const { hostname, port } = new URL(keeping);
    const lines = (at: string, more = "") =>
      `GET ${at} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nUser-Agent: test\r\nAccept: application/vnd.github+json\r\n${more}\r\n`;
    const texts = async (sent: string) => {
      const socket = connect(Number(port), hostname);
      socket.write(sent);
      let text = "";
      for await (const part of socket.setEncoding("utf8")) text += part;
      return text;
    };
    for (let time = 0; time < 3; time++) await texts(lines(path, "Connection: close\r\n"));
    const [short, usual] = [lines(path), lines(`${path}&page=2`)];
    const closing = lines(path, "Connection: close\r\n");
    const text = await texts(short + usual + short + lines("/zen") + closing);
    expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(Array.from({ length: 5 }, () => "HTTP/1.1 200"));
    const order = text.split("HTTP/1.1 200").slice(1).map(isShortHead);
    expect(order).toEqual([true, false, true, false, true]);
    // A caller that leaves before the answer delays no other.
    for (let time = 0; time < 20; time++) {
      const socket = connect(Number(port), hostname);
      socket.write(short, () => socket.destroy());
      await once(socket, "close");
    }
    expect((await askAt(keeping, "GET", path, asking)).status).toBe(200);
  });

  test("each answer costs what it costs anew, and a 304 nothing", async () => {
    const path = `/repos/${busiest().fullName}/labels`;
    const asking = { token: world.token };
    await warm(path, asking);
    const used = async (headers: Record<string, string> = {}) => {
      const answer = await askAt(keeping, "GET", path, { ...asking, headers });
      return { used: Number(answer.headers.get("x-ratelimit-used")), etag: answer.headers.get("etag") ?? "" };
    };
    const first = await used();
    const second = await used();
    expect(second.used).toBe(first.used + 1);
    expect((await used({ "if-none-match": first.etag })).used).toBe(second.used);
    expect((await used()).used).toBe(second.used + 1);
  });
});

/** The short way has lines ready, and writes what is new in each answer behind them. */
function isShortHead(head: string): boolean {
  return head.search(/^X-GitHub-Request-Id/m) > head.search(/^ETag/m);
}

/** The names of an answer's headers as they were sent: the usual way sends them in lower case. */
async function rawNames(url: string): Promise<string[]> {
  const asking = request(url, { headers: { "user-agent": "test" } });
  asking.end();
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  answer.resume();
  await once(answer, "end");
  return answer.rawHeaders.filter((_, at) => at % 2 === 0);
}

async function touchRepository(id: number): Promise<void> {
  await world.ctx.db.transaction(async (tx) => tx.touch([id]));
}

/** Stores a resource in the mirror as upstream has it now, with a change. */
async function changed(path: string, kind: Kind, change: (was: Fields) => Fields, deleted = false): Promise<void> {
  const was = (await world.getUpstream(path)).body as Fields;
  const at = /^\/repos\/([^/]+\/[^/]+)/.exec(path)?.[1] ?? "";
  const home = world.repositories.find(({ fullName }) => fullName === at);
  const page = `${world.upstream.url}/${at}`;
  aheadMs += 60_000;
  await store(
    world.ctx,
    world.upstream,
    kind,
    { ...was, ...change(was), ...(was.updated_at ? { updated_at: world.ctx.clock.now().toISOString() } : {}) } as Json,
    home && { id: home.id, fullName: at, htmlUrl: page },
    { deleted },
  );
}

test(`${WRITES} writes, each shown by every read that begins after it, while others read all the time`, async () => {
  const { id, fullName } = busiest();
  const path = `/repos/${fullName}/labels?per_page=100`;
  const asking = { token: world.token };
  const [label] = (await askAt(keeping, "GET", path, asking)).body as Fields[];
  const numbered = (await world.getUpstream(`/repos/${fullName}/labels/${encodeURIComponent(String(label?.name))}`))
    .body as Fields;
  const at = { id, fullName, htmlUrl: `${world.upstream.url}/${fullName}` };
  let written = 0;
  let isOver = false;
  const stale: string[] = [];
  const read = async () => {
    while (!isOver) {
      const least = written;
      const { body } = await askAt(keeping, "GET", path, asking);
      const found = (body as Fields[]).find((one) => one.id === label?.id)?.description;
      if (Number(found) < least) stale.push(`${found} after ${least}`);
    }
  };
  const begin = async (description: number) => {
    aheadMs += 60_000;
    await store(world.ctx, world.upstream, "label", { ...numbered, description: String(description) }, at);
  };
  await begin(0);
  const readers = Array.from({ length: 4 }, read);
  for (let number = 1; number <= WRITES; number++) {
    await begin(number);
    written = number;
  }
  isOver = true;
  await Promise.all(readers);
  expect(stale).toEqual([]);
});

describe("who may see it", () => {
  test("whose right upstream takes back is not answered from memory", async () => {
    const hidden = world.repositories.find(({ private: isPrivate }) => isPrivate) ?? busiest();
    await changed(`/repos/${hidden.fullName}`, "repository", () => ({ private: true, full_name: hidden.fullName }));
    world.upstream.tokens.create({ token: "ghp_leaver", login: "leaver", repositories: [hidden.fullName] });
    const ask = () => world.get(`/repos/${hidden.fullName}/labels`, { token: "ghp_leaver" });
    for (let time = 0; time < 5; time++) expect((await ask()).status).toBe(200);
    world.upstream.tokens.delete("ghp_leaver");
    world.upstream.tokens.create({ token: "ghp_leaver", login: "leaver", repositories: [] });
    aheadMs += 61_000;
    expect((await ask()).status).toBe(404);
  });

  test("one caller's page is not another's", async () => {
    const { fullName } = busiest();
    const path = `/repos/${fullName}`;
    await changed(path, "repository", () => ({ private: false }));
    await warm(path, { token: world.token });
    const [mine, theirs] = [
      await askAt(keeping, "GET", path, { token: world.token }),
      await askAt(keeping, "GET", path, { token: null }),
    ];
    expect(mine.body.permissions).toBeDefined();
    expect(theirs.body.permissions).toBeUndefined();
    expect(theirs.headers.get("cache-control")).toMatch(/^public/);
  });
});

test("with Postgres away nothing is answered from memory, and again once it is back", async () => {
  await using link = await openLink(world.ctx.config.databaseUrl);
  const url = await world.openSibling({ DATABASE_URL: link.url });
  const ask = () => askAt(url, "GET", `/repos/${busiest().fullName}/labels`, { token: world.token });
  for (let time = 0; time < 4; time++) expect((await ask()).status).toBe(200);
  await link.cut();
  expect((await ask()).status).toBe(503);
  await link.mend();
  await until("the process has Postgres again", async () => (await ask()).status === 200);
});

test(`${STEPS} changes of every kind, each shown by the next read of a process that kept what was before`, async () => {
  const { id, fullName } = busiest();
  const at = `/repos/${fullName}`;
  const { login } = (await world.getUpstream(at)).body.owner;
  const lists = async (path: string) => (await world.getUpstream(`${at}${path}`)).body as Fields[];
  const issues = await lists("/issues?state=all&per_page=5");
  const labels = await lists("/labels");
  const pulls = await lists("/pulls?state=all&per_page=100");
  const forked = pulls.find((one) => (one.head as Fields | null)?.repo && ((one.head as Fields).repo as Fields).fork);
  const author = (issues[0] as { user: Fields } | undefined)?.user.login;
  const label = encodeURIComponent(String(labels[0]?.name));
  const word = (step: number) => `changed ${step}`;
  const kinds: [string, (step: number) => Promise<void>][] = [
    ["a title", (step) => changed(`${at}/issues/${issues[0]?.number}`, "issue", () => ({ title: word(step) }))],
    ["a label", (step) => changed(`${at}/labels/${label}`, "label", () => ({ description: word(step) }))],
    ["a person's name", (step) => changed(`/users/${author}`, "user", () => ({ login: `${author}-${step}` }))],
    ["the repository", (step) => changed(at, "repository", () => ({ description: word(step) }))],
    [
      "its name",
      (step) => changed(at, "repository", () => ({ full_name: `${login}/renamed-${step}`, name: `renamed-${step}` })),
    ],
    ["its name back", () => changed(at, "repository", () => ({}))],
    ["who may see it", (step) => changed(at, "repository", () => ({ private: step % 2 === 0 }))],
    ["that it is followed", () => removeSelection(world.ctx, fullName, { purge: false }).then(() => {})],
    [
      "that it is followed again",
      async () => {
        await world.ctx.db.query(sql`
          update repository_syncs set state = 'backfilling', added_at = now() where repository_id = ${id}`);
      },
    ],
    [
      "when it was confirmed",
      async () => {
        await world.ctx.db.query(sql`update repository_syncs set confirmed_at = now() where repository_id = ${id}`);
      },
    ],
    [
      "a milestone or none",
      async (step) => {
        const [milestone] = await lists("/milestones?state=all");
        if (milestone)
          await changed(`${at}/milestones/${milestone.number}`, "milestone", () => ({ title: word(step) }));
      },
    ],
    [
      "a label's deletion",
      async () => {
        const last = labels.at(-1);
        await changed(`${at}/labels/${encodeURIComponent(String(last?.name))}`, "label", () => ({}), true);
      },
    ],
    [
      "a fork",
      async (step) => {
        const fork = forked && ((forked.head as Fields).repo as Fields);
        if (fork) await changed(`/repos/${fork.full_name}`, "repository", () => ({ description: word(step) }));
      },
    ],
    [
      "the same name elsewhere",
      async () => {
        const other = world.repositories[1]?.fullName;
        await changed(`/repos/${other}`, "repository", () => ({
          full_name: fullName,
          name: fullName.split("/")[1] as string,
        }));
      },
    ],
    ["its own name again", async () => changed(`/repos/${world.repositories[1]?.fullName}`, "repository", () => ({}))],
  ];
  const paths = [
    at,
    `${at}/issues?state=all&creator=${author}`,
    `${at}/issues/${issues[0]?.number}`,
    `${at}/labels?per_page=100`,
    `${at}/milestones?state=all`,
    `${at}/pulls/${forked?.number ?? pulls[0]?.number}`,
    `/repositories/${id}/pulls?state=all&per_page=100`,
  ];
  const askers = [{ token: null }, { token: world.token }];
  let random = Number(process.env.PAGE_CACHE_SEED ?? 1);
  const draw = (below: number) => {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((random / 2 ** 32) * below);
  };
  for (const path of paths) for (const asking of askers) await warm(path, asking);
  for (let step = 0; step < STEPS; step++) {
    // Each kind of change comes once, in order. The later ones are drawn at random.
    const [name, change] = kinds[step < kinds.length ? step : draw(kinds.length)] as (typeof kinds)[number];
    await change(step);
    for (const path of paths) {
      for (const asking of askers) {
        const shown = await askAt(keeping, "GET", path, asking);
        const wanted = await askAt(plain, "GET", path, asking);
        expect(shape(shown, keeping), `after ${name} (${step}), ${path}`).toEqual(shape(wanted, plain));
        for (let time = 0; time < 2; time++) await askAt(keeping, "GET", path, asking);
      }
    }
  }
});
