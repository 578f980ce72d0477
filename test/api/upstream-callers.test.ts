import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { MIRROR_OPERATIONS } from "../../src/api/operations.ts";
import { askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let clock: { now: () => Date; advance: (ms: number) => void };
let hidden: string;
let open: string;
beforeAll(async () => {
  let ahead = 0;
  clock = {
    now: () => new Date(Date.now() + ahead),
    advance: (ms) => {
      ahead += ms;
    },
  };
  world = await openApiWorld({ repositories: 3, issues: 30, clock });
  hidden = world.repositories.find((one) => one.private)?.fullName ?? "";
  open = world.repositories.find((one) => !one.private)?.fullName ?? "";
});
afterAll(() => world?.[Symbol.asyncDispose]());

let made = 0;
/** A token of upstream's, of a new user. */
function upstreamToken(options: { repositories?: string[]; login?: string } = {}): { token: string; login: string } {
  made += 1;
  const login = options.login ?? `person-${made}`;
  const token = `ghp_of_person_${made}`;
  world.upstream.tokens.create({ token, login, repositories: options.repositories ?? [hidden] });
  return { token, login };
}

const as = (token: string, path: string, options: { method?: string; body?: string; url?: string } = {}) =>
  askAt(options.url ?? world.url, options.method ?? "GET", path, {
    token,
    ...(options.body === undefined ? {} : { body: options.body }),
  });

/** What upstream counted of a token's requests. */
function spent(token: string): { charged: number; free: number; points: number } {
  const buckets = world.upstream.meter.read().callers[token];
  const { charged = 0, requests = 0 } = buckets?.core ?? {};
  return { charged, free: requests - charged, points: buckets?.graphql?.points ?? 0 };
}

describe("a caller with a token of upstream's", () => {
  test("is answered as themselves, by REST and GraphQL", async () => {
    const { token, login } = upstreamToken();
    const theirs = await askAt(world.upstream.url, "GET", "/user", { token });
    const ours = await as(token, "/user");
    expect(ours.body).toEqual(JSON.parse(theirs.text.replaceAll(world.upstream.url, world.url)));
    expect(ours.body).toHaveProperty("plan");
    const { body } = await as(token, "/graphql", { method: "POST", body: '{"query":"{ viewer { login isViewer } }"}' });
    expect(body.data.viewer).toEqual({ login, isViewer: true });
  });

  test("leaves nothing in the mirror that upstream shows to them alone", async () => {
    const { token } = upstreamToken();
    const { body } = await as(token, "/user");
    const [row] = await world.ctx.db.query(sql`select document::text from users where id = ${body.id}`);
    expect(row?.document).not.toMatch(/"plan"|private_gists|disk_usage|two_factor/);
  });

  test("is shown what they may do in a repository, and not what the mirror may", async () => {
    const { token } = upstreamToken();
    for (const name of [hidden, open]) {
      const theirs = await askAt(world.upstream.url, "GET", `/repos/${name}`, { token });
      expect((await as(token, `/repos/${name}`)).body.permissions, name).toEqual(theirs.body.permissions);
    }
  });

  test("is shown of a repository what upstream shows to those alone who administer it, if they do", async () => {
    const { world: records } = world.upstream;
    const repository = records.repositories.get(world.repositories.find((one) => one.private)?.id ?? 0);
    for (const role of ["push", "maintain", "admin"] as const) {
      made += 1;
      const token = `ghp_of_person_${made}`;
      const { userId } = world.upstream.tokens.create({ token, login: `person-${made}` });
      repository?.collaborators.set(userId, role);
      const theirs = await askAt(world.upstream.url, "GET", `/repos/${hidden}`, { token });
      expect("security_and_analysis" in theirs.body).toBe(role === "admin");
      expect((await as(token, `/repos/${hidden}`)).body).toEqual(
        JSON.parse(theirs.text.replaceAll(`${world.upstream.url}/`, `${world.url}/`)),
      );
    }
  });

  test("writes as themselves, and only where upstream lets them", async () => {
    const { token, login } = upstreamToken();
    const body = '{"title":"As myself"}';
    const written = await as(token, `/repos/${open}/issues`, { method: "POST", body });
    expect(written.status).toBe(201);
    expect(written.body.user.login).toBe(login);
    expect((await as(token, `/repos/${open}/issues/${written.body.number}`)).body.user.login).toBe(login);
  });

  test("is told the scopes of their token, and what a route takes, as upstream tells them", async () => {
    const { token } = upstreamToken();
    const fine = "github_pat_of_a_person";
    world.upstream.tokens.create({ token: fine, kind: "fine-grained", login: "fine", repositories: [hidden] });
    const [org = ""] = open.split("/");
    const reads = MIRROR_OPERATIONS.filter(({ route }) => route.method === "GET" && !route.isFree).map(
      ({ path, route }) => (route.run.of === "repository" ? `/repos/${open}${path === "/" ? "" : path}` : path),
    );
    const paths = reads.map((path) =>
      path
        .replace(":login", org)
        .replace(/:(id|number)/, "1")
        .replace(/:\w+/, "none"),
    );
    const scopesOf = ({ headers }: { headers: Headers }) =>
      ["x-oauth-scopes", "x-accepted-oauth-scopes"].map((name) => headers.get(name));
    const permissionsOf = ({ headers }: { headers: Headers }) => headers.get("x-accepted-github-permissions");
    for (const path of paths) {
      const theirs = await askAt(world.upstream.url, "GET", path, { token });
      // The simulator does not serve this route, so it knows no scopes for it.
      if (theirs.status === 404 && theirs.headers.get("x-accepted-oauth-scopes") === "") continue;
      expect(scopesOf(await as(token, path)), path).toEqual(scopesOf(theirs));
      expect(permissionsOf(await as(token, path)), path).toBeNull();
      if (!path.startsWith("/repos/")) continue;
      const permissions = permissionsOf(await askAt(world.upstream.url, "GET", path, { token: fine }));
      for (const other of [fine, world.token]) expect(permissionsOf(await as(other, path)), path).toBe(permissions);
    }
    expect(scopesOf(await as(token, `/repos/${hidden}/issues`))).toEqual(["repo, user", "repo"]);
    for (const path of ["/user", `/repos/${hidden}/issues`, `/repos/${hidden}/issues/99999`])
      for (const other of [fine, world.token]) expect(scopesOf(await as(other, path)), path).toEqual([null, null]);
    expect(scopesOf(await as("ghp_nobodys", "/user"))).toEqual([null, null]);
  });

  test("is told new scopes once upstream tells of them, also with an answer that is kept", async () => {
    const { token, login } = upstreamToken();
    const ask = async () => (await as(token, `/repos/${open}/labels`)).headers.get("x-oauth-scopes");
    for (let time = 0; time < 3; time++) expect(await ask()).toBe("repo, user");
    world.upstream.tokens.delete(token);
    world.upstream.tokens.create({ token, login, repositories: [hidden], scopes: ["repo", "read:org"] });
    clock.advance(61_000);
    expect(await ask()).toBe("repo, read:org");
  });

  test("is asked about once while upstream's word is fresh, and again for nothing while nothing has changed", async () => {
    const { token } = upstreamToken();
    await Promise.all(Array.from({ length: 10 }, () => as(token, "/user")));
    expect(spent(token)).toEqual({ charged: 1, free: 0, points: 1 });
    clock.advance(61_000);
    await as(token, `/repos/${hidden}`);
    expect(spent(token)).toEqual({ charged: 1, free: 1, points: 2 });
  });

  test("is refused within UPSTREAM_CALLER_TTL of their token's revocation", async () => {
    const { token } = upstreamToken();
    expect((await as(token, `/repos/${hidden}`)).status).toBe(200);
    world.upstream.tokens.delete(token);
    clock.advance(61_000);
    const answer = await as(token, `/repos/${hidden}`);
    expect([answer.status, answer.body.message]).toEqual([401, "Bad credentials"]);
  });

  test("loses access to a repository that upstream shows them no more", async () => {
    const { token, login } = upstreamToken();
    expect((await as(token, `/repos/${hidden}`)).status).toBe(200);
    world.upstream.tokens.delete(token);
    world.upstream.tokens.create({ token, login, repositories: [] });
    clock.advance(61_000);
    expect((await as(token, `/repos/${hidden}`)).status).toBe(404);
  });

  test("loses access to issues once upstream takes them from the token, also of a page that is kept", async () => {
    const token = "github_pat_of_a_reader";
    const permissions = { issues: "read", pull_requests: "read" } as const;
    world.upstream.tokens.create({
      token,
      login: "reader",
      kind: "fine-grained",
      repositories: [hidden],
      permissions,
    });
    const statuses = async () => {
      const answers = await Promise.all(["issues", "pulls"].map((kind) => as(token, `/repos/${hidden}/${kind}`)));
      return answers.map(({ status }) => status);
    };
    for (let turn = 0; turn < 3; turn++) expect(await statuses()).toEqual([200, 200]);
    world.upstream.tokens.permit(token, { pull_requests: "read" });
    clock.advance(61_000);
    expect(await statuses()).toEqual([403, 200]);
    world.upstream.tokens.permit(token, permissions);
    clock.advance(61_000);
    expect(await statuses()).toEqual([200, 200]);
  });

  test("and their token is kept nowhere", async () => {
    const { token } = upstreamToken();
    await as(token, `/repos/${hidden}`);
    const rows = await world.ctx.db.query<{ dump: string }>(sql`
      select query_to_xml('select * from api_tokens', true, true, '')::text || query_to_xml('select *
        from validators', true, true, '')::text || query_to_xml('select * from users', true, true, '')::text as dump`);
    expect(rows[0]?.dump).not.toContain(token);
    for (const key of await world.ctx.redis.keys("*")) expect(key).not.toContain(token);
  });
});

describe("when upstream cannot be asked", () => {
  test("who was known lately goes on for ten minutes, and who was not is told to come back", async () => {
    const [known, unknown] = [upstreamToken().token, upstreamToken().token];
    expect((await as(known, `/repos/${hidden}`)).status).toBe(200);
    await using outage = fail(502);
    clock.advance(61_000);
    expect((await as(known, `/repos/${hidden}`)).status).toBe(200);
    const refused = await as(unknown, `/repos/${hidden}`);
    expect([refused.status, refused.body.message]).toEqual([
      503,
      "Upstream cannot be asked whose token this is. Try again soon.",
    ]);
    expect(refused.headers.get("retry-after")).toBe("5");
    clock.advance(10 * 60_000);
    expect((await as(known, `/repos/${hidden}`)).status).toBe(503);
    await outage[Symbol.asyncDispose]();
    expect((await as(known, `/repos/${hidden}`)).status).toBe(200);
  });
});

describe("when upstream limits the caller's own token", () => {
  /** A caller who is known here, loses the repository at upstream, and has spent what they have there. */
  async function spender(bucket: "core" | "graphql"): Promise<{ token: string; login: string }> {
    const { token, login } = upstreamToken();
    expect((await as(token, `/repos/${hidden}`)).status).toBe(200);
    world.upstream.tokens.delete(token);
    world.upstream.tokens.create({ token, login, repositories: [], limit: 3 });
    for (let spent = 0; spent < 5; spent++)
      await (bucket === "core"
        ? askAt(world.upstream.url, "GET", "/user/repos", { token })
        : askAt(world.upstream.url, "POST", "/graphql", { token, body: '{"query":"{ viewer { login } }"}' }));
    return { token, login };
  }

  test.each(["core", "graphql"] as const)(
    "rights that are lost end after UPSTREAM_CALLER_TTL, though %s is spent: they are told to wait, and not believed",
    async (bucket) => {
      const { token } = await spender(bucket);
      clock.advance(61_000);
      for (const path of [`/repos/${hidden}`, `/repos/${hidden}/issues`, `/repos/${open}`]) {
        const limited = await as(token, path);
        expect([limited.status, limited.body.message], path).toEqual([403, expect.stringMatching(/API rate limit/)]);
        expect(Number(limited.headers.get("retry-after")), path).toBeGreaterThan(60);
        expect(limited.headers.get("x-ratelimit-remaining"), path).toBe("0");
      }
      const { body } = await as(token, "/graphql", { method: "POST", body: '{"query":"{ viewer { login } }"}' });
      expect(body).toMatchObject({ message: expect.stringMatching(/API rate limit/) });
    },
  );

  test.each([
    [429, "Too Many Requests"],
    [403, "You have exceeded a secondary rate limit"],
  ])("a %i of theirs has the service's form, and ends with it", async (status, message) => {
    const { token } = upstreamToken();
    expect((await as(token, `/repos/${hidden}`)).status).toBe(200);
    world.upstream.faults.set({
      http: [status === 429 ? { kind: "status", status, retryAfter: 40 } : { kind: "secondary-limit", retryAfter: 40 }],
    });
    clock.advance(61_000);
    const limited = await as(token, `/repos/${hidden}`);
    expect([limited.status, limited.body.message]).toEqual([status, expect.stringContaining(message)]);
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThanOrEqual(39);
    world.upstream.faults.set({});
    clock.advance(41_000);
    expect((await as(token, `/repos/${hidden}`)).status).toBe(200);
  });

  test("rights in public repositories end as well, while what else is known is still fresh", async () => {
    const { token } = upstreamToken();
    const permissions = async () => (await as(token, `/repos/${open}`)).body.permissions;
    await as(token, "/user");
    clock.advance(31_000);
    const before = await permissions();
    clock.advance(31_000);
    await as(token, "/user");
    world.upstream.faults.set({ http: [{ kind: "secondary-limit", retryAfter: 3_600, match: "POST /graphql" }] });
    clock.advance(31_000);
    const after = await permissions();
    world.upstream.faults.set({});
    expect([before, after]).toEqual([expect.any(Object), undefined]);
  });

  test("a token that upstream refuses between two questions is not believed either", async () => {
    const { token } = upstreamToken();
    expect((await as(token, `/repos/${hidden}`)).status).toBe(200);
    world.upstream.faults.set({ http: [{ kind: "status", status: 401, match: "POST /graphql" }] });
    clock.advance(61_000);
    expect((await as(token, `/repos/${hidden}`)).status).toBe(401);
    world.upstream.faults.set({});
  });
});

/** Makes every request to upstream fail until it is disposed of. */
function fail(status: number): AsyncDisposable {
  world.upstream.faults.set({ http: [{ kind: "status", status }] });
  return { [Symbol.asyncDispose]: async () => world.upstream.faults.set({}) };
}

describe("AUTH_MODE", () => {
  test.each([
    ["tokens", 200, 401],
    ["upstream", 401, 200],
    ["both", 200, 200],
  ])("%s: ours %i, upstream's %i", async (mode, ours, theirs) => {
    const url = await world.openSibling({ AUTH_MODE: mode });
    const { token } = upstreamToken();
    expect((await as(world.token, "/user", { url })).status).toBe(ours);
    expect((await as(token, "/user", { url })).status).toBe(theirs);
  });
});
