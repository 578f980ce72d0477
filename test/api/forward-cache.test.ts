import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { pushBranch } from "../../src/simulator/changes/pulls.ts";
import { renameRepository, setVisibility } from "../../src/simulator/changes/repositories.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { type Answered, type Asking, askAt } from "../support/asking.ts";
import { store } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// A forwarded answer is kept once for all callers. It is shown to those to whom upstream shows it.

const [ANN, BEN, OUT] = ["ghp_of-ann", "ghp_of-ben", "ghp_of-an-outsider"];
let world: ApiWorld;
/** Another web process. */
let other: string;
let repository: Repository;
let name: string;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 6, issues: 30, env: { UPSTREAM_READS_PER_CALLER: "1000" } });
  other = await world.openSibling();
  const hidden = world.repositories.find((row) => row.private);
  name = hidden?.fullName ?? "";
  repository = world.upstream.world.repositories.get(hidden?.id ?? 0) as Repository;
  for (const token of [ANN, BEN, OUT]) {
    const repositories = token === OUT ? [] : [name];
    world.upstream.tokens.create({ token, login: token.slice(7), repositories });
    for (const base of [world.url, other]) expect((await askAt(base, "GET", "/user", { token })).status).toBe(200);
  }
});
afterAll(() => world?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await kept();
  await world.ctx.db.query(sql`delete from forwarded_answers`);
  // Nobody has asked for this commit yet.
  pushBranch(world.upstream.world, repository.ownerId, repository, repository.defaultBranch);
  // What was proved before a test counts no longer.
  world.advance(61_000);
  for (const token of [ANN, BEN, OUT])
    for (const base of [world.url, other]) await askAt(base, "GET", "/user", { token });
  world.upstream.meter.reset();
});

/** Waits until what was forwarded lies in Postgres. */
async function kept(): Promise<number> {
  let last = -1;
  await expect
    .poll(async () => {
      const before = last;
      const [row] = await world.ctx.db.query<{ count: number }>(
        sql`select count(*)::integer as count from forwarded_answers`,
      );
      last = row?.count ?? 0;
      return last === before;
    })
    .toBe(true);
  return last;
}
const get = (path: string, token: string | null, more: Asking & { at?: string } = {}) =>
  askAt(more.at ?? world.url, "GET", `/repos/${name}${path}`, { token, ...more });
const theirs = (path: string, token: string | null, headers = {}) =>
  askAt(world.upstream.url, "GET", `/repos/${name}${path}`, {
    token,
    headers: { "accept-encoding": "identity", ...headers },
  });
const outcomes = (...answers: Answered[]) => answers.map(({ headers }) => headers.get("x-cache"));
const spent = () => {
  const { requests, charged } = world.upstream.meter.read();
  return { requests, charged };
};
const head = () => repository.branches.get(repository.defaultBranch) ?? "";
/** The mirror hears how the repository is now. */
async function tell(): Promise<void> {
  const { body } = await world.getUpstream(`/repositories/${repository.id}`);
  await store(world.ctx, world.upstream, "repository", body);
}

/** As upstream answers the same at this moment, but for its address. */
async function expectAsUpstream(answer: Answered, path: string, token: string | null, at = world.url): Promise<void> {
  const upstreams = await theirs(path, token);
  expect([answer.status, answer.text]).toEqual([upstreams.status, upstreams.text.replaceAll(world.upstream.url, at)]);
  for (const header of ["etag", "content-type", "last-modified", "link"])
    expect(answer.headers.get(header), header).toBe(
      upstreams.headers.get(header)?.replaceAll(world.upstream.url, at) ?? null,
    );
}

test("by a sha: each is shown it free once upstream has said so, and then without asking", async () => {
  const path = `/git/blobs/${head()}`;
  const ann = [await get(path, ANN), await get(path, ANN)];
  expect([...outcomes(...ann), spent()]).toEqual(["miss", "hit", { requests: 1, charged: 1 }]);
  const ben = [await get(path, BEN), await get(path, BEN)];
  expect([...outcomes(...ben), spent()]).toEqual(["revalidated", "hit", { requests: 2, charged: 1 }]);
  const out = [await get(path, OUT), await get(path, OUT), await get(path, null)];
  expect(out.map(({ status }) => status)).toEqual([404, 404, 403]);
  expect([...outcomes(...out), spent()]).toEqual(["miss", "miss", null, { requests: 4, charged: 3 }]);
  for (const answer of ann) await expectAsUpstream(answer, path, ANN);
  for (const answer of ben) await expectAsUpstream(answer, path, BEN);
  await expectAsUpstream(out[0] as Answered, path, OUT);
});

test("another process asks for nothing that was kept, and each token has its own tag", async () => {
  const path = `/git/trees/${head()}`;
  await get(path, ANN);
  await kept();
  world.upstream.meter.reset();
  const there = await get(path, BEN, { at: other });
  expect([...outcomes(there), spent()]).toEqual(["revalidated", { requests: 1, charged: 0 }]);
  await expectAsUpstream(there, path, BEN, other);
  const again = await get(path, BEN, { at: other, headers: { "if-none-match": there.headers.get("etag") ?? "" } });
  expect([again.status, again.text, ...outcomes(again)]).toEqual([304, "", "hit"]);
  // Ann was shown it elsewhere: here upstream says so again, for nothing.
  expect(outcomes(await get(path, ANN, { at: other }))).toEqual(["revalidated"]);
});

test("by a name: upstream says each time that it is still so, and a push is seen at once", async () => {
  const path = `/commits/${repository.defaultBranch}`;
  const before = [await get(path, ANN), await get(path, ANN), await get(path, BEN)];
  expect([...outcomes(...before), spent()]).toEqual([
    "miss",
    "revalidated",
    "revalidated",
    { requests: 3, charged: 1 },
  ]);
  pushBranch(world.upstream.world, repository.ownerId, repository, repository.defaultBranch);
  const after = [await get(path, BEN), await get(path, ANN)];
  expect([...outcomes(...after), spent()]).toEqual(["miss", "revalidated", { requests: 5, charged: 2 }]);
  expect(after[0]?.body.sha).toBe(head());
  for (const [at, token] of [BEN, ANN].entries()) await expectAsUpstream(after[at] as Answered, path, token);
});

test("what is not there is asked for again, and seen as soon as it is there", async () => {
  const path = "/commits/to-come";
  expect(outcomes(await get(path, ANN), await get(path, ANN))).toEqual(["miss", "miss"]);
  pushBranch(world.upstream.world, repository.ownerId, repository, "to-come");
  const answer = await get(path, ANN);
  expect(answer.status).toBe(200);
  await expectAsUpstream(answer, path, ANN);
});

test("a validator of the caller's own is answered as upstream answers it", async () => {
  const path = `/compare/${repository.defaultBranch}...${repository.defaultBranch}`;
  const first = await get(path, ANN);
  const etag = first.headers.get("etag") ?? "";
  const asked = { headers: { "if-none-match": etag } };
  const same = await get(path, ANN, asked);
  expect([same.status, same.text, same.headers.get("etag")]).toEqual([304, "", etag]);
  const older = await get(path, ANN, { headers: { "if-none-match": '"older"' } });
  expect([older.status, older.text]).toEqual([200, first.text]);
  const any = await get(path, OUT, { headers: { "if-none-match": "*" } });
  expect(any.status).toBe(404);
  const bare = await askAt(world.url, "HEAD", `/repos/${name}${path}`, { token: BEN });
  expect([bare.status, bare.text, ...outcomes(bare)]).toEqual([200, "", "revalidated"]);
});

test("each media type and version is another answer, and spellings of one type are the same", async () => {
  const path = `/commits/${head()}`;
  const as = (accept: string, version = "2022-11-28") =>
    get(path, ANN, { headers: { accept, "x-github-api-version": version } });
  const json = await as("application/vnd.github+json");
  expect(outcomes(await as("application/vnd.github.v3+json"))).toEqual(["hit"]);
  expect(outcomes(await as("application/vnd.github+json", "2026-03-10"))).toEqual(["miss"]);
  const sha = [await as("application/vnd.github.sha"), await as("application/vnd.github.sha")];
  expect([...outcomes(...sha), ...sha.map(({ text }) => text)]).toEqual(["miss", "hit", head(), head()]);
  expect(json.body.sha).toBe(head());
});

test("an answer whose tag is made in another way is kept for its token alone, and one with a key for nobody", async () => {
  const [raw, json] = ["application/vnd.github.raw", "application/json"];
  const path = "/contents/README.md";
  const as = (accept: string, token: string) => get(path, token, { headers: { accept } });
  expect(outcomes(await as(raw, ANN), await as(raw, ANN), await as(raw, BEN))).toEqual(["miss", "revalidated", "miss"]);
  // GitHub's tag of a file is the same for both types: neither is answered with the other.
  const both = [await as(json, ANN), await as(json, ANN)];
  expect(outcomes(...both)).toEqual(["miss", "miss"]);
  expect(both[0]?.body.download_url).toContain("?token=");
  expect((await as(json, BEN)).body.download_url).not.toBe(both[0]?.body.download_url);
});

test("without recomputed tags nobody is answered with what another was shown", async () => {
  const url = await world.openSibling({ ETAG_PAGES_SIZE: "0" });
  const path = `/git/commits/${head()}`;
  const answers = [
    await get(path, ANN, { at: url }),
    await get(path, BEN, { at: url }),
    await get(path, ANN, { at: url }),
  ];
  expect(outcomes(...answers)).toEqual(["miss", "miss", "hit"]);
});

test("a repository that is made private is closed at once to those who had been shown what is below it", async () => {
  setVisibility(world.upstream.world, repository.ownerId, repository, "public");
  await tell();
  const path = `/git/blobs/${head()}`;
  expect(outcomes(await get(path, OUT), await get(path, OUT))).toEqual(["miss", "hit"]);
  expect(outcomes(await get(path, world.token), await get(path, null))).toEqual(["miss", "hit"]);
  setVisibility(world.upstream.world, repository.ownerId, repository, "private");
  await tell();
  const refused = await get(path, OUT);
  expect([refused.status, ...outcomes(refused)]).toEqual([404, "miss"]);
  await expectAsUpstream(refused, path, OUT);
  expect((await get(path, null)).status).toBe(403);
  // The mirror does not know yet whether the others may see a private repository, so it asks upstream.
  expect(outcomes(await get(path, ANN))).toEqual(["miss"]);
});

test("what is kept by a sha shows the name that its repository has", async () => {
  const path = `/repositories/${repository.id}/git/blobs/${head()}`;
  const askers = [ANN, world.token] as const;
  const ask = (token: string) => askAt(world.url, "GET", path, { token });
  for (const token of askers) expect((await ask(token)).text).toContain(`/repos/${name}/`);
  const [owner = "", before = ""] = name.split("/");
  const rename = async (to: string) => {
    renameRepository(world.upstream.world, repository.ownerId, repository, to);
    await tell();
  };
  await rename("called-otherwise");
  try {
    for (const token of askers) expect((await ask(token)).text).toContain(`/repos/${owner}/called-otherwise/`);
  } finally {
    await rename(before);
  }
});

test("a file's document from before its repository was private, without the reader's key, is shown no more", async () => {
  setVisibility(world.upstream.world, repository.ownerId, repository, "public");
  await tell();
  const paths = [`/contents/README.md?ref=${head()}`, "/contents/README.md"];
  for (const path of paths) expect((await get(path, ANN)).text).not.toContain("?token=");
  setVisibility(world.upstream.world, repository.ownerId, repository, "private");
  await tell();
  for (const path of paths) await expectAsUpstream(await get(path, ANN), path, ANN);
});

test("a token that loses the repository, or is revoked, is shown nothing after as long as it is believed", async () => {
  const token = "ghp_of-one-who-leaves";
  world.upstream.tokens.create({ token, login: "leaving", repositories: [name] });
  const path = `/git/blobs/${head()}`;
  expect(outcomes(await get(path, token), await get(path, token))).toEqual(["miss", "hit"]);
  world.upstream.tokens.delete(token);
  world.upstream.tokens.create({ token, login: "leaving", repositories: [] });
  world.advance(60_001);
  expect([(await get(path, token)).status, ...outcomes(await get(path, token))]).toEqual([404, "miss"]);
  world.upstream.tokens.delete(token);
  world.advance(60_001);
  expect((await get(path, token)).status).toBe(401);
});

test("for Tain's own tokens it is kept by what the mirror's credential was shown, within what they see", async () => {
  const path = `/git/blobs/${head()}`;
  const own = [
    await get(path, world.token),
    await get(path, world.readToken),
    await get(path, world.token, { at: other }),
  ];
  expect(outcomes(...own).slice(0, 2)).toEqual(["miss", "hit"]);
  await kept();
  expect(outcomes(await get(path, world.readToken, { at: other }))).toEqual(["hit"]);
  const refused = await get(path, null);
  expect([refused.status, ...outcomes(refused)]).toEqual([403, null]);
  for (const answer of own) {
    expect(answer.headers.get("cache-control")).toBe("private, no-cache");
    expect(answer.headers.get("x-oauth-scopes")).toBeNull();
  }
  const moving = `/commits/${repository.defaultBranch}`;
  expect(outcomes(await get(moving, world.token), await get(moving, world.readToken))).toEqual(["miss", "revalidated"]);
});
