import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let repo: { id: number; fullName: string };
let offsetMs = 0;
beforeEach(async () => {
  offsetMs = 0;
  world = await openApiWorld({
    repositories: 1,
    issues: 10,
    clock: { now: () => new Date(Date.now() + offsetMs) },
  });
  repo = world.repositories[0] as typeof repo;
  await confirm(new Date());
});
afterEach(() => world?.[Symbol.asyncDispose]());

const confirm = (at: Date | null) => world.ctx.db.query(sql`update repository_syncs set confirmed_at = ${at}`);

async function edit(op: Record<string, unknown>): Promise<void> {
  const answer = await fetch(`${world.upstream.url}/-/mutate`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ repository: repo.fullName, by: repo.fullName.split("/")[0], ...op }),
  });
  expect(answer.status, await answer.text()).toBe(200);
}

describe("every answer says when upstream confirmed it", () => {
  test("a repository's own moment; the oldest of all where it is about several", async () => {
    const at = new Date(Date.now() - 100_000);
    await confirm(at);
    for (const path of ["", "/issues", "/issues/1", "/labels", "/pulls?state=all"]) {
      const { headers } = await world.get(`/repos/${repo.fullName}${path}`);
      expect(headers.get("x-tain-confirmed-at"), path).toBe(at.toISOString());
      expect(headers.get("x-tain-not-confirmed"), path).toBe("accounts, comments, reactions");
      expect(Number(headers.get("age")), path).toBeGreaterThanOrEqual(100);
      expect(headers.get("warning"), path).toBeNull();
    }
    for (const path of ["/user/repos", "/issues?filter=all"])
      expect((await world.get(path)).headers.get("x-tain-confirmed-at"), path).toBe(at.toISOString());
    for (const path of ["/", "/versions", "/rate_limit", "/zen"])
      expect((await world.get(path)).headers.get("x-tain-confirmed-at"), path).toBeNull();
    const first = await world.get(`/repos/${repo.fullName}/issues/1`);
    const again = await world.get(`/repos/${repo.fullName}/issues/1`, {
      headers: { "if-none-match": first.headers.get("etag") ?? "" },
    });
    expect([again.status, again.headers.get("x-tain-confirmed-at")]).toEqual([304, at.toISOString()]);
  });

  test("and warns when that is long ago, or has not been yet", async () => {
    offsetMs = 16 * 60_000;
    const { headers } = await world.get(`/repos/${repo.fullName}/issues/1`);
    expect(headers.get("warning")).toBe('110 tain "Upstream has not confirmed this for a long time"');
    expect(Number(headers.get("age"))).toBeGreaterThanOrEqual(16 * 60);
    await confirm(null);
    const never = await world.get(`/repos/${repo.fullName}/issues/1`);
    expect(never.headers.get("x-tain-confirmed-at")).toBeNull();
    expect(never.headers.get("x-tain-not-confirmed")).toBeNull();
    expect(never.headers.get("warning")).toBe('110 tain "Upstream has not confirmed this yet"');
  });
});

describe("every answer names the parts that upstream does not show", () => {
  const miss = (parts: string | null, id = repo.id) =>
    world.ctx.db.query(sql`update repository_syncs set parts_missing = ${parts} where repository_id = ${id}`);
  const query = `{ repository(owner: "OWNER", name: "NAME") { issues(first: 3) { totalCount } } }`;
  const asked = () => {
    const [owner = "", name = ""] = repo.fullName.split("/");
    return world.query(query.replace("OWNER", owner).replace("NAME", name));
  };

  test("first, again, as a 304, of several repositories and by GraphQL; and no more once they are there", async () => {
    const paths = ["", "/issues", "/issues/1", "/pulls"].map((below) => `/repos/${repo.fullName}${below}`);
    for (const parts of [null, "pulls, review comments", "labels", null]) {
      await miss(parts);
      for (const path of [...paths, ...paths, "/user/repos"]) {
        const { headers } = await world.get(path);
        expect(headers.get("x-tain-missing"), path).toBe(parts);
        const again = await world.get(path, { headers: { "if-none-match": headers.get("etag") ?? "" } });
        expect([again.status, again.headers.get("x-tain-missing")], path).toEqual([304, parts]);
      }
      expect((await asked()).headers.get("x-tain-missing")).toBe(parts);
      expect((await asked()).headers.get("x-tain-missing")).toBe(parts);
    }
    expect((await world.get("/rate_limit")).headers.get("x-tain-missing")).toBeNull();
  });
});

describe("what is asked for fresh", () => {
  test.each([
    ["?fresh=true", {}],
    ["", { "cache-control": "max-age=0, no-cache" }],
  ])("by %s %o is what upstream says now, and conditional the next time", async (query, headers) => {
    const path = `/repos/${repo.fullName}/issues/1${query}`;
    await edit({ op: "editIssue", number: 1, title: "what upstream says now" });
    expect((await world.get(`/repos/${repo.fullName}/issues/1`)).body.title).not.toBe("what upstream says now");
    // This read is later than the copy's by more than upstream's replicas lag. So it wins over any stored value.
    offsetMs = 60_000;
    const fresh = await world.get(path, { headers });
    expect(fresh.body.title).toBe("what upstream says now");
    expect(fresh.headers.get("warning")).toBeNull();
    expect(Number(fresh.headers.get("age"))).toBeLessThan(5);
    expect((await world.get(`/repos/${repo.fullName}/issues/1`)).body.title).toBe("what upstream says now");
    world.upstream.meter.reset();
    const again = await world.get(path, { headers });
    expect(again.body).toEqual(fresh.body);
    expect(world.upstream.meter.read()).toMatchObject({ requests: 1, notModified: 1, charged: 0 });
  });

  test("lists too, without a word of it in Link", async () => {
    await edit({ op: "createIssue", title: "new to the mirror" });
    offsetMs = 60_000;
    const { body, headers } = await world.get(`/repos/${repo.fullName}/issues?fresh=true&per_page=2&state=all`);
    expect(body[0].title).toBe("new to the mirror");
    expect(headers.get("link")).not.toContain("fresh");
  });

  test("anonymous callers make nobody ask", async () => {
    world.upstream.meter.reset();
    const { status } = await world.get("/versions?fresh=true", { token: null });
    expect(status).toBe(200);
    await world.get(`/repos/${repo.fullName}/issues/1?fresh=true`, { token: null });
    expect(world.upstream.meter.read().requests).toBe(0);
  });

  test("where upstream cannot be reached, the mirror answers and says so", async () => {
    await using away = await openApiWorld({ repositories: 1, issues: 10, upstreamUrl: "http://127.0.0.1:9" });
    const { status, headers, body } = await away.get(`/repos/${away.repositories[0]?.fullName}/issues/1?fresh=true`);
    expect([status, body.number]).toEqual([200, 1]);
    expect(headers.get("warning")).toContain(
      '111 tain "Not refreshed: Upstream had to be asked for this, and it cannot be reached."',
    );
    const topics = await away.get(`/repos/${away.repositories[0]?.fullName}/topics?fresh=true`);
    expect(topics.headers.get("warning")).toContain(
      '111 tain "Not refreshed: this answer cannot be refreshed by itself"',
    );
    // Nobody knows more of this account than its name.
    const { body: issues } = await away.get(`/repos/${away.repositories[0]?.fullName}/issues?state=all`);
    const stranger = await away.get(`/users/${issues[0].user.login}`);
    expect(stranger.status).toBe(502);
    expect(stranger.body.message).toBe("Upstream had to be asked for this, and it cannot be reached.");
  });
});
