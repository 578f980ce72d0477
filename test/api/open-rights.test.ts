import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { askAt, rebased } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// What callers with upstream's tokens are told of their rights in public repositories: what upstream tells them, asked
// only where it is shown.

type Role = "pull" | "triage" | "push" | "maintain" | "admin";

const OPERATOR = "the-operators-token";
const TTL_MS = 60_000;
let world: ApiWorld;
let aheadMs = 0;
/** Public ones. */
let open: { id: number; fullName: string }[];
let first: { id: number; fullName: string };
let second: { id: number; fullName: string };

beforeAll(async () => {
  const clock = { now: () => new Date(Date.now() + aheadMs) };
  world = await openApiWorld({ repositories: 6, issues: 50, clock, env: { OPERATOR_TOKEN: OPERATOR } });
  open = world.repositories.filter((one) => !one.private);
  const [one, other] = open;
  if (!one || !other) throw new Error("The world needs two public repositories");
  [first, second] = [one, other];
});
afterAll(() => world?.[Symbol.asyncDispose]());

let made = 0;
/** A token of upstream's, of a new user with these roles. */
function person(roles: ReadonlyMap<number, Role> = new Map(), limit?: number): { token: string; userId: number } {
  made += 1;
  const token = `ghp_of_person_${made}`;
  const { userId } = world.upstream.tokens.create({ token, login: `person-${made}`, ...(limit && { limit }) });
  for (const [id, role] of roles) give(userId, id, role);
  return { token, userId };
}

function give(userId: number, repositoryId: number, role: Role): void {
  const repository = world.upstream.world.repositories.get(repositoryId);
  if (!repository) throw new Error(`There is no repository ${repositoryId}`);
  repository.collaborators.set(userId, role);
}

const ofUpstream = (token: string, path: string) => askAt(world.upstream.url, "GET", path, { token });

/** What upstream counted of a token's requests. */
function spent(token: string): { charged: number; points: number } {
  const buckets = world.upstream.meter.read().callers[token];
  return { charged: buckets?.core?.charged ?? 0, points: buckets?.graphql?.points ?? 0 };
}

/** How many requests were answered from pages that were kept. */
async function keptSoFar(): Promise<number> {
  const { text } = await world.get("/-/metrics", { token: OPERATOR });
  const counted = [...text.matchAll(/^tain_api_requests_total\{.*source="kept".*\} (\d+)$/gm)];
  return counted.reduce((sum, [, count]) => sum + Number(count), 0);
}

async function outage(): Promise<AsyncDisposable> {
  world.upstream.faults.set({ http: [{ kind: "status", status: 502 }] });
  return { [Symbol.asyncDispose]: async () => world.upstream.faults.set({}) };
}

describe("by REST", () => {
  test.each(["none", "triage", "push", "admin"] as const)(
    "a repository is shown as upstream shows it: %s",
    async (role) => {
      const { token } = person(role === "none" ? new Map() : new Map([[first.id, role]]));
      const [ours, theirs] = [
        await world.get(`/repos/${first.fullName}`, { token }),
        await ofUpstream(token, `/repos/${first.fullName}`),
      ];
      expect(theirs.body.permissions.push).toBe(role === "push" || role === "admin");
      expect(ours.body.permissions).toEqual(theirs.body.permissions);
      // The mirror's own account may be a deputy of the owner: what upstream shows to those alone is shown to no other.
      expect(ours.body).toEqual(rebased(theirs.text, world.upstream.url, world.url));
      const byId = await world.get(`/repositories/${first.id}`, { token });
      expect(byId.body).toEqual(ours.body);
    },
  );

  test("lists show them, for a point a page", async () => {
    const roles = new Map<number, Role>(open.slice(0, 2).map(({ id }, at) => [id, at === 0 ? "push" : "admin"]));
    const { token } = person(roles);
    const [owner = ""] = first.fullName.split("/");
    await world.get("/user", { token });
    const before = spent(token).points;
    const ours = await world.get(`/users/${owner}/repos?per_page=100`, { token });
    // Upstream answers what it alone lists whole, and says the rights itself.
    expect(spent(token).points).toBe(before);
    const { body: theirs } = await ofUpstream(token, `/users/${owner}/repos?per_page=100`);
    const rightsIn = (all: { id: number; permissions: object }[]) =>
      Object.fromEntries(all.map(({ id, permissions }) => [id, permissions]));
    expect(rightsIn(ours.body)).toEqual(rightsIn(theirs));
    for (const path of [`/search/repositories?q=user:${owner}`, `/repos/${first.fullName}`]) {
      const { body } = await world.get(path, { token });
      for (const one of body.items ?? [body]) expect(one.permissions, path).toEqual(rightsIn(theirs)[one.id]);
    }
    expect(spent(token).points).toBe(before + 1);
  });

  test("are asked of upstream only where they are shown, once for all who ask at once", async () => {
    const { token } = person();
    for (const path of ["/issues", "/pulls", "/labels", ""])
      await world.get(`/repos/${second.fullName}${path}`, { token });
    const [known, other] = [person().token, person().token];
    await world.get(`/repos/${second.fullName}/issues`, { token: known });
    const before = spent(known);
    await Promise.all(
      Array.from({ length: 12 }, (_, at) => world.get(`/repos/${(open[at % 3] ?? first).fullName}`, { token: known })),
    );
    // Each of the three is asked for once: one may be under way before the others come.
    expect(spent(known).points - before.points).toBeLessThanOrEqual(3);
    expect(spent(known).charged).toBe(before.charged);
    expect(spent(other)).toEqual({ charged: 0, points: 0 });
  });

  test("are renewed together, in one question, as often as who the caller is", async () => {
    const { token, userId } = person();
    const ask = async ({ fullName }: { fullName: string }) =>
      (await world.get(`/repos/${fullName}`, { token })).body.permissions.push;
    for (let time = 0; time < 4; time++) for (const one of open) expect(await ask(one)).toBe(false);
    give(userId, first.id, "push");
    expect(await ask(first)).toBe(false);
    const before = spent(token);
    aheadMs += TTL_MS + 1_000;
    // The mirror knows again who the caller is, and not yet what they may do.
    await world.get(`/repos/${first.fullName}/labels`, { token });
    expect(await ask(first)).toBe(true);
    for (const one of open.slice(1)) expect(await ask(one)).toBe(false);
    // One point is for the private repositories, and one for all the public ones.
    expect(spent(token)).toEqual({ charged: before.charged, points: before.points + 2 });
  });

  test("pages that show none are shared by all, and the repository's own by those of the same rights", async () => {
    const { fullName, id } = second;
    const [reader, reading, pushing] = [person().token, person().token, person(new Map([[id, "push"]])).token];
    const ask = (token: string, path: string) => world.get(`/repos/${fullName}${path}`, { token });
    for (const token of [reader, reading, pushing]) await ask(token, "/assignees");
    for (const path of ["/labels", "/milestones", ""]) for (let time = 0; time < 3; time++) await ask(reader, path);
    const before = await keptSoFar();
    for (const path of ["/labels", "/milestones", ""]) await ask(reading, path);
    for (const path of ["/labels", "/milestones"]) await ask(pushing, path);
    expect((await keptSoFar()) - before).toBe(5);
    for (let time = 0; time < 3; time++) {
      expect((await ask(pushing, "")).body.permissions.push).toBe(true);
      expect((await ask(reading, "")).body.permissions.push).toBe(false);
    }
    const { headers } = await ask(reading, "");
    const again = await world.get(`/repos/${fullName}`, {
      token: reading,
      headers: { "if-none-match": headers.get("etag") ?? "" },
    });
    expect(again.status).toBe(304);
  });

  test("while upstream cannot be asked they are believed for ten minutes, and then left out", async () => {
    const { token } = person(new Map([[first.id, "push"]]));
    const stranger = person().token;
    expect((await world.get(`/repos/${first.fullName}`, { token })).body.permissions.push).toBe(true);
    await world.get("/user", { token: stranger });
    await using _away = await outage();
    const unknown = await world.get(`/repos/${first.fullName}`, { token: stranger });
    expect([unknown.status, "permissions" in unknown.body]).toEqual([200, false]);
    aheadMs += TTL_MS + 1_000;
    expect((await world.get(`/repos/${first.fullName}`, { token })).body.permissions.push).toBe(true);
    await world.upstream.faults.set({});
    aheadMs += 6_000;
    expect((await world.get(`/repos/${first.fullName}`, { token: stranger })).body.permissions.push).toBe(false);
  });

  test("a caller whose points at upstream are spent is answered without them", async () => {
    const { token } = person(new Map(), 2);
    await world.get("/user", { token });
    while (spent(token).points < 2)
      await askAt(world.upstream.url, "POST", "/graphql", { token, body: '{"query":"{ viewer { login } }"}' });
    const { status, body } = await world.get(`/repos/${first.fullName}`, { token });
    expect([status, "permissions" in body]).toEqual([200, false]);
  });

  test("one of our own tokens, and nobody, ask upstream nothing", async () => {
    world.upstream.meter.reset();
    for (const token of [world.token, world.readToken, null]) await world.get(`/repos/${first.fullName}`, { token });
    const { callers } = world.upstream.meter.read();
    expect(Object.values(callers).reduce((sum, { graphql }) => sum + (graphql?.requests ?? 0), 0)).toBe(0);
  });

  test("nothing of them is stored", async () => {
    const { token } = person(new Map([[first.id, "maintain"]]));
    const document = async () =>
      await world.ctx.db.query(sql`select document::text, detail::text from repositories where id = ${first.id}`);
    const before = await document();
    await world.get(`/repos/${first.fullName}`, { token });
    expect(await document()).toEqual(before);
  });
});

describe("by GraphQL", () => {
  const query = `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { viewerPermission viewerCanAdminister } }`;
  const named = (fullName: string) => {
    const [owner = "", name = ""] = fullName.split("/");
    return { owner, name };
  };
  const both = async (token: string, document: string, variables: object = {}) => {
    const theirs = await askAt(world.upstream.url, "POST", "/graphql", {
      token,
      body: JSON.stringify({ query: document, variables }),
    });
    const ours = await world.query(document, variables, { token });
    expect(ours.body).toEqual(theirs.body);
    return ours;
  };

  test.each(["none", "triage", "push", "maintain", "admin"] as const)(
    "are upstream's, answered here: %s",
    async (role) => {
      const { token } = person(role === "none" ? new Map() : new Map([[first.id, role]]));
      for (let time = 0; time < 2; time++) {
        const { headers } = await both(token, query, named(first.fullName));
        expect(headers.get("x-tain-passed-through")).toBeNull();
      }
    },
  );

  test("of several they take a point in all, also when they are asked again", async () => {
    const { token } = person(new Map([[second.id, "push"]]));
    const each = open.map(({ fullName }, at) => {
      const { owner, name } = named(fullName);
      return `r${at}: repository(owner: "${owner}", name: "${name}") { viewerPermission viewerCanAdminister }`;
    });
    const document = `{ ${each.join(" ")} }`;
    await world.get("/user", { token });
    const before = spent(token).points;
    for (let time = 0; time < 3; time++) await world.query(document, {}, { token });
    expect(spent(token).points).toBe(before + 1);
    await both(token, document);
  });

  test("change as upstream says", async () => {
    const { token, userId } = person();
    const ask = async () =>
      (await world.query(query, named(first.fullName), { token })).body.data.repository.viewerPermission;
    for (let time = 0; time < 3; time++) expect(await ask()).toBe("READ");
    give(userId, first.id, "maintain");
    aheadMs += TTL_MS + 1_000;
    expect(await ask()).toBe("MAINTAIN");
  });

  test("what upstream does not say now is upstream's to answer", async () => {
    const { token } = person();
    await world.get("/user", { token });
    await using _away = await outage();
    const { status, text } = await world.query(query, named(first.fullName), { token });
    expect([status, text]).not.toEqual([200, expect.stringContaining("viewerPermission")]);
  });
});
