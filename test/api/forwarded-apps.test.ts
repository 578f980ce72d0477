import { generateKeyPairSync, sign } from "node:crypto";
import { App, Octokit } from "octokit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { askAt } from "../support/asking.ts";
import { testRedis } from "../support/database.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// What Apps ask about themselves is upstream's to answer: the mirror knows no App, and nobody is asked who it is.

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const PEM = privateKey.export({ type: "pkcs1", format: "pem" }).toString();
const ISSUED = Math.floor(Date.now() / 1_000) - 30;

let world: ApiWorld;
let on: string;
let owner: string;
let repo: string;
let app: { id: number };
beforeAll(async () => {
  world = await openApiWorld({ repositories: 3, issues: 30, env: { PASS_THROUGH: "off" } });
  const { fullName } = world.repositories.find((row) => row.private) ?? { fullName: "" };
  [owner = "", repo = ""] = fullName.split("/");
  const permissions = { metadata: "read", issues: "write", pull_requests: "write" } as const;
  const installations = [{ account: owner, repositories: [fullName] }];
  ({ app } = world.upstream.apps.create({ slug: "helper", keys: [PEM], permissions, installations }));
  on = await world.openSibling({ PASS_THROUGH: "on" });
});
afterAll(() => world?.[Symbol.asyncDispose]());

function jwt(issuer: number = app.id): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "RS256", typ: "JWT" })}.${part({ iss: issuer, iat: ISSUED, exp: ISSUED + 540 })}`;
  return `${text}.${sign("RSA-SHA256", Buffer.from(text), privateKey).toString("base64url")}`;
}

test.each(["", "/api/v3"])("octokit's App works through %s/ as it is", async (prefix) => {
  const base = on + prefix;
  const made = new App({ appId: app.id, privateKey: PEM, Octokit: Octokit.defaults({ baseUrl: base }) });
  const { data: self } = await made.octokit.request("GET /app");
  expect(self?.slug).toBe("helper");
  const { data: installation } = await made.octokit.request("GET /repos/{owner}/{repo}/installation", { owner, repo });
  expect(installation.access_tokens_url).toBe(`${base}/app/installations/${installation.id}/access_tokens`);
  const octokit = await made.getInstallationOctokit(installation.id);
  const { data: seen } = await octokit.request("GET /installation/repositories");
  expect(seen.repositories.map((one) => one.full_name)).toEqual([`${owner}/${repo}`]);
  const issues = await octokit.rest.issues.listForRepo({ owner, repo, state: "all" });
  expect(issues.headers["x-tain-passed-through"]).toBeUndefined();
  const [first] = issues.data;
  const at = { owner, repo, issue_number: first?.number ?? 0 };
  const { data: comment } = await octokit.rest.issues.createComment({ ...at, body: `by ${base}` });
  const { data: comments } = await octokit.rest.issues.listComments({ ...at, per_page: 100 });
  expect(comments.find(({ id }) => id === comment.id)?.user?.login).toBe("helper[bot]");
});

test("its answers are upstream's, it is asked of nobody, and it takes none of the quota of those without a token", async () => {
  const token = jwt();
  for (const path of ["/app", `/users/${owner}/installation`, `/orgs/${owner}/installation`, "/app/installations"]) {
    world.upstream.meter.reset();
    const ours = await askAt(on, "GET", path, { token });
    expect(Object.keys(world.upstream.meter.read().routes)).toHaveLength(1);
    const theirs = await askAt(world.upstream.url, "GET", path, { token });
    expect([ours.status, ours.text]).toEqual([theirs.status, theirs.text.replaceAll(world.upstream.url, on)]);
    expect(ours.headers.get("x-ratelimit-limit")).toBeNull();
    expect(ours.headers.get("x-tain-passed-through")).toBe("upstream");
  }
});

test("upstream's words on a bad signature reach its client, and its clock does", async () => {
  const ours = await askAt(on, "GET", "/app", { token: `${jwt().slice(0, -9)}AAAAAAAAA` });
  expect([ours.status, ours.body.message]).toEqual([401, "A JSON web token could not be decoded"]);
  // These would be the mirror's own at upstream. go-github stops by itself where they say that nothing is left.
  expect([...ours.headers.keys()].filter((name) => name.startsWith("x-ratelimit"))).toEqual([]);
  expect(Date.parse(ours.headers.get("date") ?? "")).not.toBeNaN();
});

test("nothing is forwarded as an App's where requests are not forwarded, or by a token of ours", async () => {
  world.upstream.meter.reset();
  expect((await askAt(world.url, "GET", "/app", { token: world.token })).status).not.toBe(200);
  expect((await askAt(on, "GET", "/installation/repositories", { token: world.token })).status).not.toBe(200);
  const only = await world.openSibling({ PASS_THROUGH: "on", AUTH_MODE: "tokens" });
  expect((await askAt(only, "GET", "/app", { token: jwt() })).status).toBe(401);
  expect(world.upstream.meter.read().requests).toBe(0);
});

test("a storm of invented signatures ends at the door, and does not keep a good one of another address out", async () => {
  const url = await world.openSibling({
    ...{ PASS_THROUGH: "on", FAILED_LOGINS_PER_ADDRESS: "5", FAILED_LOGINS: "12", TRUSTED_PROXIES: "loopback" },
    REDIS_PREFIX: testRedis().prefix,
  });
  const ask = (token: string, path: string, address: string) =>
    askAt(url, "GET", path, { token, headers: { "x-forwarded-for": address } });
  world.upstream.meter.reset();
  // What upstream does not know as an App it calls "not found", on any route.
  const paths = ["/app", "/app/installations/1", `/repos/${owner}/${repo}/installation`];
  const all = await Promise.all(
    Array.from({ length: 30 }, (_, at) => ask(jwt(900_000 + at), paths[at % 3] ?? "", "192.0.2.7")),
  );
  const refused = all.filter(({ status }) => status === 403);
  expect(refused).toHaveLength(25);
  expect(refused[0]?.body.message).toBe("Maximum number of login attempts exceeded. Please try again later.");
  expect(world.upstream.meter.read().requests).toBe(5);
  expect((await ask(jwt(), "/app", "192.0.8.8")).status).toBe(200);
  // A 404 for a missing thing does not count as a caller's failure.
  for (let at = 0; at < 8; at++)
    expect((await ask(jwt(), `/app/installations/${99_000 + at}`, "192.0.9.9")).status).toBe(404);
});

test("each question is charged to its network, and no address beside it asks for more", async () => {
  const url = await world.openSibling({
    ...{ PASS_THROUGH: "on", RATE_LIMIT_USER: "5", TRUSTED_PROXIES: "loopback" },
    REDIS_PREFIX: testRedis().prefix,
  });
  const ask = (address: string) => askAt(url, "GET", "/app", { token: jwt(), headers: { "x-forwarded-for": address } });
  world.upstream.meter.reset();
  for (let at = 0; at < 5; at++) expect((await ask(`192.0.2.${at}`)).status).toBe(200);
  const spent = await ask("192.0.2.99");
  expect([spent.status, spent.body.message]).toEqual([403, expect.stringContaining("API rate limit exceeded")]);
  expect(Number(spent.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(world.upstream.meter.read().requests).toBe(5);
  expect((await ask("192.0.3.1")).status).toBe(200);
});

test("slow questions of Apps take no place of a caller's login", async () => {
  const url = await world.openSibling({ PASS_THROUGH: "on", REDIS_PREFIX: testRedis().prefix });
  const { value: token } = world.upstream.tokens.create({ token: "ghp_newcomer", login: "newcomer" });
  world.upstream.faults.set({ http: [{ kind: "slow", delayMs: 1_500, match: "GET /app" }] });
  let answered = 0;
  const slow = Array.from({ length: 12 }, async () => {
    const { status } = await askAt(url, "GET", "/app", { token: jwt() });
    answered += 1;
    return status;
  });
  expect((await askAt(url, "GET", "/versions", { token })).status).toBe(200);
  expect(answered).toBe(0);
  expect(new Set(await Promise.all(slow))).toEqual(new Set([200]));
  world.upstream.faults.set({});
});

test.each([{ PASS_THROUGH_APPS: "off" }, { ALLOWED_USERS: "helper[bot]" }, { ALLOWED_ORGANIZATIONS: "a-team" }])(
  "with %o a signature is refused, and upstream is not asked",
  async (env) => {
    const url = await world.openSibling({ PASS_THROUGH: "on", ...env, REDIS_PREFIX: testRedis().prefix });
    world.upstream.meter.reset();
    for (const path of ["/app", "/app/installations", `/repos/${owner}/${repo}/installation`]) {
      const { status, body } = await askAt(url, "GET", path, { token: jwt() });
      expect([status, body.message]).toEqual([403, expect.stringContaining("PASS_THROUGH_APPS=on")]);
    }
    expect(world.upstream.meter.read().requests).toBe(0);
  },
);

test("where accounts are listed, an installation's token asks about itself only if its App is among them", async () => {
  const { token } = (
    await new App({
      appId: app.id,
      privateKey: PEM,
      Octokit: Octokit.defaults({ baseUrl: on }),
    }).octokit.request("POST /app/installations/{installation_id}/access_tokens", {
      installation_id: (await askAt(on, "GET", "/app/installations", { token: jwt() })).body[0].id,
    })
  ).data;
  for (const [listed, status] of [
    ["helper[bot]", 200],
    ["somebody-else", 403],
  ] as const) {
    const url = await world.openSibling({
      PASS_THROUGH: "on",
      ALLOWED_USERS: listed,
      REDIS_PREFIX: testRedis().prefix,
    });
    expect((await askAt(url, "GET", "/installation/repositories", { token })).status, listed).toBe(status);
  }
});
