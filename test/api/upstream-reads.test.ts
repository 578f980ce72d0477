import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { testRedis } from "../support/database.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// What callers have upstream read, and whose quota there that costs.

const [PER_CALLER, ALL] = [3, 5];
const TIMES = 20;

let world: ApiWorld;
let open: ApiWorld["repositories"][number];
let repo: string;
/** A web process of a new day: nobody has spent anything there. */
let url: string;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 3, issues: 30 });
  open = world.repositories.find((one) => !one.private) as typeof open;
  repo = `/repos/${open.fullName}`;
  await world.ctx.db.query(sql`update repository_syncs set confirmed_at = ${new Date()}`);
});
afterAll(() => world?.[Symbol.asyncDispose]());
beforeEach(async () => {
  url = await world.openSibling({
    UPSTREAM_READS: `${ALL}`,
    UPSTREAM_READS_PER_CALLER: `${PER_CALLER}`,
    RATE_LIMIT_USER: "4321",
    REDIS_PREFIX: testRedis().prefix,
  });
  size += 1;
  world.upstream.meter.reset();
});

const charged = (token = UPSTREAM_TOKEN) => world.upstream.meter.read().callers[token]?.core?.charged ?? 0;
/** A token of Tain's with a quota of its own. */
const another = () => createApiToken(world.ctx, { userId: world.userId, canWrite: false, hourlyLimit: 1_000 });
let made = 0;
function upstreams(): string {
  const token = `ghp_of_reader_${++made}`;
  world.upstream.tokens.create({ token, login: `reader-${made}` });
  return token;
}
/** Each page is new to the mirror, so upstream charges for it. */
let size = 0;
const fresh = (token: string | null, page: number) =>
  askAt(url, "GET", `${repo}/issues?state=all&per_page=${size}&page=${page}&fresh=true`, { token });

async function pages(token: string | null, times = TIMES) {
  const answers = [];
  for (let page = 1; page <= times; page++) answers.push(await fresh(token, page));
  return answers;
}

describe("fresh reads by tokens of Tain's", () => {
  test("cost the mirror's quota what each caller may, and all together may, to the request", async () => {
    const other = await another();
    const answers = await pages(await another());
    expect(charged()).toBe(PER_CALLER);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const told = answers.map(({ headers }) => headers.get("warning"));
    expect(told.slice(0, PER_CALLER)).toEqual([null, null, null]);
    for (const warning of told.slice(PER_CALLER))
      expect(warning).toMatch(
        /^111 tain "Not refreshed: .*your reads of upstream \(3 an hour\) are spent until \d{4}-/,
      );
    const others = await Promise.all(
      Array.from({ length: TIMES }, async () =>
        askAt(url, "GET", `${repo}/labels?per_page=${++size}&fresh=true`, { token: other }),
      ),
    );
    expect(charged()).toBe(ALL);
    expect(others.map(({ headers }) => headers.get("warning")).join()).toMatch(
      /all callers' reads of upstream \(5 an hour\) are spent until/,
    );
  });

  test("leave alone what refreshes and writes need, whatever is left of the share", async () => {
    const setRemaining = (remaining: number) =>
      fetch(`${world.upstream.url}/-/quota`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ token: UPSTREAM_TOKEN, remaining }),
      });
    await setRemaining(400);
    const token = await another();
    // The first one learns how little is left.
    const answers = await pages(token, PER_CALLER);
    expect(charged()).toBe(1);
    expect(answers[1]?.headers.get("warning")).toContain("and the mirror's quota there is spent.");
    const written = await askAt(url, "POST", `${repo}/labels`, {
      token: world.token,
      body: '{"name":"written","color":"ff0000"}',
    });
    expect(written.status).toBe(201);
    await setRemaining(5_000);
  });
});

describe("accounts of which the mirror knows little", () => {
  test("are asked for out of the same share; then the service's own refusal says when to come back", async () => {
    const token = await another();
    const logins = await world.ctx.db.query<{ login: string }>(
      sql`select login from users where document ->> 'bio' is null and type = 'User' order by id limit 12`,
    );
    const answers = [];
    for (const { login } of logins) answers.push(await askAt(url, "GET", `/users/${login}`, { token }));
    const refused = answers.filter(({ status }) => status === 403);
    expect(charged()).toBe(PER_CALLER);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]?.body.message).toMatch(
      /^You have exceeded a secondary rate limit\. .*your reads of upstream \(3 an hour\) are spent until/,
    );
    expect(refused[0]?.body.documentation_url).toMatch(/#about-secondary-rate-limits$/);
    const seconds = Number(refused[0]?.headers.get("retry-after"));
    expect(seconds).toBeGreaterThan(3_500);
    expect(seconds).toBeLessThanOrEqual(3_601);
    // Anonymous callers have one share together, wherever they come from.
    const unknown = logins.slice(-6).map(({ login }) => login);
    for (const login of unknown) await askAt(url, "GET", `/users/${login}`, { token: null });
    expect(charged()).toBe(ALL);
  });
});

describe("a caller with a token of upstream's", () => {
  test("has fresh reads by it: it pays, and is shown what upstream shows it", async () => {
    const token = upstreams();
    await askAt(url, "GET", "/user", { token });
    const before = charged(token);
    const answers = await pages(token);
    expect([charged(), charged(token) - before]).toEqual([0, TIMES]);
    const [first] = answers;
    const theirs = await askAt(world.upstream.url, "GET", `${repo}/issues?state=all&per_page=${size}`, { token });
    expect(first?.body).toEqual(JSON.parse(theirs.text.replaceAll(world.upstream.url, url)));
    expect(Number(first?.headers.get("age"))).toBeLessThan(60);
    expect(first?.headers.get("warning")).toBeNull();
    // The header tells of the mirror's own quota. Upstream's numbers would tell some clients to stop.
    expect(first?.headers.get("x-ratelimit-limit")).toBe("4321");
  });

  test("changes nothing of the mirror by what upstream shows them alone", async () => {
    const token = upstreams();
    const shown = () => askAt(url, "GET", repo, { token: world.token });
    const before = await shown();
    const rows = () => world.ctx.db.query(sql`select path from validators order by path`);
    const validators = await rows();
    const { body } = await askAt(url, "GET", `${repo}?fresh=true`, { token });
    expect(body.permissions).not.toEqual(before.body.permissions);
    expect((await shown()).body).toEqual(before.body);
    expect(await rows()).toEqual(validators);
  });

  test("whom upstream refuses is shown what is mirrored, and told so", async () => {
    const token = upstreams();
    await askAt(url, "GET", "/user", { token });
    world.upstream.tokens.delete(token);
    const { status, headers } = await fresh(token, 1);
    expect(status).toBe(200);
    expect(headers.get("warning")).toBe('111 tain "Not refreshed: upstream answers 401"');
  });

  test("writes, and has read what the write changed, at no cost to the mirror", async () => {
    const token = "ghp_of_a_writer";
    world.upstream.tokens.create({ token, login: "writer", repositories: [open.fullName] });
    const { body: pulls } = await askAt(url, "GET", `${repo}/pulls?state=all&per_page=1`, { token });
    const at = `${repo}/issues/${pulls[0].number}`;
    const spent = charged(token);
    const body = '{"labels":[]}';
    expect((await askAt(url, "PUT", `${at}/labels`, { token, body })).status).toBe(200);
    // Three requests: the write, and a read of each side of the pull request.
    expect([charged(), charged(token) - spent]).toEqual([0, 3]);
    expect((await askAt(url, "GET", at, { token })).body.labels).toEqual([]);
  });

  test("who is refused writes has the mirror ask for no more than their share", async () => {
    const token = upstreams();
    await world.ctx.db.query(sql`delete from refresh_marks`);
    const { body: issues } = await askAt(url, "GET", `${repo}/issues?state=all&per_page=10`, { token: world.token });
    for (const { number } of issues)
      await fetch(`${world.upstream.url}/-/mutate`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ repository: open.fullName, by: open.fullName.split("/")[0], op: "deleteIssue", number }),
      });
    const statuses = [];
    for (const { number } of issues)
      statuses.push(
        (await askAt(url, "PATCH", `${repo}/issues/${number}`, { token, body: '{"title":"Mine"}' })).status,
      );
    expect(statuses.filter((status) => status === 410).length).toBeGreaterThan(PER_CALLER);
    const [marks] = await world.ctx.db.query<{ count: number }>(sql`select count(*)::int from refresh_marks`);
    expect(marks?.count).toBe(PER_CALLER);
  });
});

describe("a mutation that names a fork", () => {
  const query = `mutation($id: ID!, $fork: ID!) { createPullRequest(input: {repositoryId: $id, title: "t", baseRefName: "main",
    headRefName: "x", headRepositoryId: $fork}) { pullRequest { number } } }`;
  const ask = async (token: string, at: number) => {
    const { body } = await askAt(url, "GET", repo, { token });
    // The id of a repository that is nowhere: MessagePack of [0, id].
    const bytes = Buffer.from([0x92, 0x00, 0xce, 0x3b, 0x9a, 0xca, at]);
    const variables = { id: body.node_id, fork: `R_${bytes.toString("base64url")}` };
    return askAt(url, "POST", "/graphql", { token, body: JSON.stringify({ query, variables }) });
  };

  test("has it looked for out of the caller's share, then by no one", async () => {
    const token = await createApiToken(world.ctx, { userId: world.userId, canWrite: true, hourlyLimit: 1_000 });
    const answers = [];
    for (let at = 0; at < TIMES; at++) answers.push((await ask(token, at)).body.errors[0]);
    expect(charged()).toBe(PER_CALLER);
    expect(answers[0].type).toBe("NOT_FOUND");
    expect(answers.at(-1).type).toBe("RATE_LIMITED");
    expect(answers.at(-1).message).toMatch(/your reads of upstream \(3 an hour\) are spent until/);
  });

  test("costs a caller with a token of upstream's their own quota", async () => {
    const token = upstreams();
    for (let at = 0; at < TIMES; at++) await ask(token, at);
    expect(charged()).toBe(0);
    expect(charged(token)).toBeGreaterThanOrEqual(TIMES);
  });
});
