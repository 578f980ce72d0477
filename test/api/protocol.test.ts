import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Json } from "../../src/json.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { store } from "../support/mirrored.ts";
import { until } from "../support/patience.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let repo: string;
let repoId: number;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 3, issues: 30 });
  const [first] = world.repositories;
  if (!first) throw new Error("The generated world has no repository");
  ({ fullName: repo, id: repoId } = first);
});
afterAll(() => world?.[Symbol.asyncDispose]());

describe("headers", () => {
  test("of an authenticated answer", async () => {
    const { headers } = await world.get(`/repos/${repo}/issues/1`);
    const expected = {
      "content-type": "application/json; charset=utf-8",
      "cache-control": "private, max-age=60, s-maxage=60",
      vary: "Accept, Authorization, Cookie, X-GitHub-OTP, Accept-Encoding, Accept, X-Requested-With",
      "x-github-media-type": "github.v3; format=json",
      "x-github-api-version-selected": "2022-11-28",
      "access-control-allow-origin": "*",
      "x-frame-options": "deny",
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'",
      "x-ratelimit-limit": "5000",
      "x-ratelimit-resource": "core",
    };
    for (const [name, value] of Object.entries(expected)) expect(headers.get(name), name).toBe(value);
    expect(headers.get("etag")).toMatch(/^W\/"[0-9a-f]{64}"$/);
    expect(headers.get("x-github-request-id")).toMatch(/^[0-9A-F:]{30,}$/);
    expect(headers.get("access-control-expose-headers")).toContain("X-RateLimit-Remaining");
    const used = Number(headers.get("x-ratelimit-used"));
    expect(Number(headers.get("x-ratelimit-remaining"))).toBe(5_000 - used);
    expect(Number(headers.get("x-ratelimit-reset"))).toBeGreaterThan(Date.now() / 1_000);
  });

  test("of an anonymous answer, and of a fault", async () => {
    const anonymous = await world.get("/versions", { token: null });
    expect(anonymous.headers.get("cache-control")).toBe("public, max-age=60, s-maxage=60");
    expect(anonymous.headers.get("vary")).toBe("Accept, Accept-Encoding, Accept, X-Requested-With");
    expect(anonymous.headers.get("x-ratelimit-limit")).toBe("60");
    const missing = await world.get("/repos/no/body");
    expect(missing.headers.get("etag")).toBeNull();
    expect(missing.headers.get("cache-control")).toBeNull();
    expect(missing.headers.get("vary")).toBe("Accept-Encoding, Accept, X-Requested-With");
    expect(missing.headers.get("x-ratelimit-remaining")).not.toBeNull();
  });

  test("Last-Modified is there for single resources that have a date, and for no list", async () => {
    for (const path of ["", "/issues/1", "/milestones/1"]) {
      const { headers, body } = await world.get(`/repos/${repo}${path}`);
      expect(Date.parse(headers.get("last-modified") ?? ""), path).toBe(Date.parse(body.updated_at));
    }
    for (const path of ["/issues", "/pulls", "/labels", "/milestones", "/issues/comments"]) {
      const { headers } = await world.get(`/repos/${repo}${path}`);
      expect(headers.get("last-modified"), path).toBeNull();
      expect(headers.get("etag"), path).not.toBeNull();
    }
  });

  test("agents that people read with get indented JSON under the same ETag", async () => {
    const path = `/repos/${repo}/labels`;
    const plain = await world.get(path);
    for (const agent of ["curl/8.5.0", "Mozilla/5.0 (X11; rv:130.0) Gecko/20100101 Firefox/130.0"]) {
      const read = await world.get(path, { headers: { "user-agent": agent } });
      expect(read.text).toBe(`${JSON.stringify(plain.body, null, 2)}\n`);
      expect(read.headers.get("etag")).toBe(plain.headers.get("etag"));
      expect((await world.get("/repos/no/body", { headers: { "user-agent": agent } })).text).toMatch(
        /^\{\n {2}"message": "Not Found"/,
      );
    }
  });

  test("a HEAD is a GET without its body; OPTIONS answers the browser", async () => {
    const path = `/repos/${repo}/issues?per_page=2`;
    const identity = { headers: { "accept-encoding": "identity" } };
    const [head, get] = [await world.send("HEAD", path, identity), await world.get(path, identity)];
    expect(head.status).toBe(200);
    expect(head.text).toBe("");
    for (const name of ["etag", "link", "content-type", "content-length"])
      expect(head.headers.get(name), name).toBe(get.headers.get(name));
    const user = await world.send("HEAD", "/user");
    expect(user.headers.get("x-ratelimit-remaining")).toMatch(/^\d+$/);
    const options = await world.send("OPTIONS", path, { token: null, headers: { "user-agent": "" } });
    expect(options.status).toBe(204);
    expect(options.headers.get("access-control-allow-methods")).toBe("GET, POST, PATCH, PUT, DELETE");
    expect(options.headers.get("access-control-max-age")).toBe("86400");
  });
});

describe("conditional requests", () => {
  const remaining = (answer: Answered) => Number(answer.headers.get("x-ratelimit-remaining"));

  test("an ETag that still holds is answered 304 without a body, free for the authorised", async () => {
    for (const path of [`/repos/${repo}/issues/1`, `/repos/${repo}/issues?state=all`, "/user", `/repos/${repo}`]) {
      const first = await world.get(path);
      const etag = first.headers.get("etag") ?? "";
      const strong = etag.replace(/^W\//, "");
      for (const tag of [etag, strong, `W/${strong}`, `"other", ${etag}`, "*"]) {
        const again = await world.get(path, { headers: { "if-none-match": tag } });
        expect(again.status, `${path} ${tag}`).toBe(304);
        expect(again.text).toBe("");
        expect(again.headers.get("etag")).toBe(etag);
        expect(remaining(again)).toBe(remaining(first));
      }
      const other = await world.get(path, { headers: { "if-none-match": '"other"' } });
      expect(other.status).toBe(200);
      expect(remaining(other)).toBe(remaining(first) - 1);
    }
  });

  test("an anonymous 304 costs", async () => {
    const first = await world.get("/versions", { token: null });
    const again = await world.get("/versions", {
      token: null,
      headers: { "if-none-match": first.headers.get("etag") ?? "" },
    });
    expect(again.status).toBe(304);
    expect(remaining(again)).toBe(remaining(first) - 1);
  });

  test("If-Modified-Since counts where there is a date and no ETag was sent", async () => {
    const path = `/repos/${repo}/issues/1`;
    const { headers } = await world.get(path);
    const date = headers.get("last-modified") ?? "";
    expect((await world.get(path, { headers: { "if-modified-since": date } })).status).toBe(304);
    expect(
      (await world.get(path, { headers: { "if-modified-since": new Date(Date.parse(date) - 1_000).toUTCString() } }))
        .status,
    ).toBe(200);
    expect((await world.get(path, { headers: { "if-modified-since": date, "if-none-match": '"other"' } })).status).toBe(
      200,
    );
    expect((await world.get(path, { headers: { "if-modified-since": "yesterday" } })).status).toBe(200);
    expect(
      (await world.get(`/repos/${repo}/issues`, { headers: { "if-modified-since": new Date().toUTCString() } })).status,
    ).toBe(200);
  });

  test("a date is that of the latest change of anything that is shown", async () => {
    const [home] = world.repositories;
    const { body: issues } = await world.get(`/repos/${repo}/issues?state=all&per_page=100`);
    const number = issues.find(
      ({ labels, milestone }: { labels: unknown[]; milestone: unknown }) => labels[0] && milestone,
    ).number;
    const path = `/repos/${repo}/issues/${number}`;
    // Within the second of the change there is none.
    const dateOf = async (): Promise<string> => {
      let date: string | null = null;
      await until("there is a date", async () => {
        date = (await world.get(path)).headers.get("last-modified");
        return date !== null;
      });
      return String(date);
    };
    const asked = async (date: string) => (await world.get(path, { headers: { "if-modified-since": date } })).status;
    const { body: shown } = await world.get(path);
    const label = shown.labels[0];
    const changes = [
      ["label", { ...label, color: "abcdef" }],
      ["label", { ...label, color: "fedcba" }],
      ["milestone", { ...shown.milestone, title: "another title" }],
      ["user", { ...shown.user, avatar_url: "https://avatars.example/u/1?v=5" }],
      ["issue", { ...shown, comments: shown.comments + 1 }],
    ] as const;
    const moves = async (kind: Kind, changed: Json, options: { deleted?: boolean } = {}) => {
      const before = await dateOf();
      expect(await asked(before), kind).toBe(304);
      const at = { id: home?.id ?? 0, fullName: repo, htmlUrl: null };
      // What the mirror shows has its own addresses.
      const text = JSON.stringify(changed).replaceAll(world.url, world.upstream.url);
      await store(world.ctx, world.upstream, kind, JSON.parse(text), kind === "user" ? undefined : at, options);
      expect(await asked(before), kind).toBe(200);
      const after = await dateOf();
      expect(Date.parse(after), kind).toBeGreaterThan(Date.parse(before));
      expect(await asked(after), kind).toBe(304);
    };
    for (const [kind, changed] of changes) await moves(kind, changed);
    const single = `/repos/${repo}/labels/${encodeURIComponent(label.name)}`;
    const date = (await world.get(single)).headers.get("last-modified") ?? "";
    expect(Date.now() - Date.parse(date)).toBeLessThan(60_000);
    expect((await world.get(single, { headers: { "if-modified-since": date } })).status).toBe(304);
    await moves("milestone", shown.milestone, { deleted: true });
    await moves("label", label, { deleted: true });
  });

  test("what upstream shows in addition moves no date", async () => {
    const path = `/repos/${repo}/issues/2`;
    const { body: shown, headers } = await world.get(path);
    const text = JSON.stringify({ ...shown, shown_since: 1 }).replaceAll(world.url, world.upstream.url);
    const home = { id: repoId, fullName: repo, htmlUrl: (await world.get(`/repos/${repo}`)).body.html_url };
    await store(world.ctx, world.upstream, "issue", JSON.parse(text), home);
    const again = await world.get(path);
    expect(again.body.shown_since).toBe(1);
    expect(again.headers.get("last-modified")).toBe(headers.get("last-modified"));
  });

  test("the ETag belongs to the caller and to the body", async () => {
    const path = `/repos/${repo}/labels`;
    const mine = await world.get(path);
    const others = await world.get(path, { token: world.readToken });
    expect(mine.text).toBe(others.text);
    expect(mine.headers.get("etag")).not.toBe(others.headers.get("etag"));
    const [label] = mine.body;
    await store(
      world.ctx,
      world.upstream,
      "label",
      { ...label, url: label.url.replace(world.url, world.upstream.url), description: "changed" },
      { id: repoId, fullName: repo, htmlUrl: null },
    );
    const changed = await world.get(path, { headers: { "if-none-match": mine.headers.get("etag") ?? "" } });
    expect(changed.status).toBe(200);
    expect(changed.body[0].description).toBe("changed");
  });
});

describe("addresses", () => {
  test("both forms of the address, all forms of credential, any case of the name, and the numeric id", async () => {
    const [owner, name] = repo.split("/") as [string, string];
    const plain = await world.get(`/repos/${repo}/issues/1`);
    const basic = Buffer.from(`anyone:${world.token}`).toString("base64");
    for (const authorization of [
      `token ${world.token}`,
      `bearer ${world.token}`,
      `Bearer ${world.token}`,
      `Basic ${basic}`,
    ]) {
      const answer = await world.get(`/repos/${owner.toUpperCase()}/${name.toUpperCase()}/issues/1`, {
        token: null,
        headers: { authorization },
      });
      expect(answer.body).toEqual(plain.body);
    }
    expect((await world.get(`/repositories/${repoId}/issues/1`)).body).toEqual(plain.body);
    const enterprise = await world.get(`/api/v3/repositories/${repoId}/issues?per_page=1`);
    expect(enterprise.body[0].url).toMatch(`${world.url}/api/v3/repos/${repo}/issues/`);
    expect(enterprise.headers.get("link")).toContain(
      `<${world.url}/api/v3/repositories/${repoId}/issues?per_page=1&after=`,
    );
    expect(enterprise.body[0].html_url).toMatch(/^https:\/\/github\.com\//);
  });

  test("below /api/v3 and /api/graphql it names the version of an enterprise server, and elsewhere none", async () => {
    const url = await world.openSibling({ ENTERPRISE_VERSION: "3.21.4" });
    const versionAt = async (path: string, method = "GET", body?: string) => {
      const { headers } = await askAt(url, method, path, { token: world.token, ...(body && { body }) });
      return headers.get("x-github-enterprise-version");
    };
    for (const path of ["/", "/meta", `/repos/${repo}/issues`, "/repos/no/body", "/gists"]) {
      for (let time = 0; time < 3; time++) expect(await versionAt(`/api/v3${path}`), path).toBe("3.21.4");
      expect(await versionAt(path), path).toBeNull();
    }
    expect(await versionAt("/api/graphql", "POST", '{"query":"{ viewer { login } }"}')).toBe("3.21.4");
    expect(await versionAt("/graphql", "POST", '{"query":"{ viewer { login } }"}')).toBeNull();
    const meta = async (at: string) => (await askAt(url, "GET", at, { token: world.token })).body.installed_version;
    expect([await meta("/api/v3/meta"), await meta("/meta")]).toEqual(["3.21.4", undefined]);
  });

  test("PUBLIC_URL stands in bodies and Link when it is set", async () => {
    const url = await world.openSibling({ PUBLIC_URL: "https://tain.example.com/mirror" });
    const answer = await fetch(`${url}/repos/${repo}/issues?per_page=1`, {
      headers: { authorization: `Bearer ${world.token}` },
    });
    const [issue] = (await answer.json()) as { url: string }[];
    expect(issue?.url).toMatch(/^https:\/\/tain\.example\.com\/mirror\/repos\//);
    expect(answer.headers.get("link")).toMatch(/^<https:\/\/tain\.example\.com\/mirror\/repositories\//);
  });

  test("a renamed repository redirects to its id: 301 for reads, 307 for writes, with path and query", async () => {
    const shown = JSON.parse((await world.getUpstream(`/repos/${world.repositories[1]?.fullName}`)).text);
    const [owner] = shown.full_name.split("/");
    const renamed = JSON.parse(
      JSON.stringify(shown).replaceAll(
        `${world.upstream.url}/repos/${shown.full_name}`,
        `${world.upstream.url}/repos/${owner}/renamed`,
      ),
    );
    await store(world.ctx, world.upstream, "repository", {
      ...renamed,
      name: "renamed",
      full_name: `${owner}/renamed`,
      updated_at: new Date().toISOString().replace(/\.\d+/, ""),
    });
    const read = await world.get(`/repos/${shown.full_name}/issues?state=all`);
    expect(read.status).toBe(301);
    expect(read.headers.get("location")).toBe(`${world.url}/repositories/${shown.id}/issues?state=all`);
    expect(read.headers.get("etag")).toBeNull();
    expect(read.body).toMatchObject({ message: "Moved Permanently", url: read.headers.get("location") });
    const write = await world.send("POST", `/repos/${shown.full_name}/issues`, { body: '{"title":"t"}' });
    expect(write.status).toBe(307);
    expect(write.headers.get("location")).toBe(`${world.url}/repositories/${shown.id}/issues`);
    expect(write.body.message).toBe("Moved Permanently");
    expect((await world.get(`/repos/${owner}/renamed`)).body.full_name).toBe(`${owner}/renamed`);
  });
});

describe("the form of ids", () => {
  const form = "x-github-next-global-id";
  // Licences have no newer form.
  const idsIn = (text: string) => [...text.matchAll(/"node_id":"(?!MDc6TGljZW5zZ)([^"]+)"/g)].map(([, id = ""]) => id);

  test.each([
    "",
    "/issues?state=all&per_page=100",
    "/issues/1",
    "/pulls?state=all",
    "/issues/comments",
    "/pulls/comments",
    "/milestones?state=all",
    "/assignees",
  ])("is chosen by a header in %s too, and what was kept in one form is not shown in the other", async (path) => {
    const at = `/repos/${repo}${path}`;
    const [plain, next, zero, again] = [
      await world.get(at),
      await world.get(at, { headers: { [form]: "1" } }),
      await world.get(at, { headers: { [form]: "0" } }),
      await world.get(at, { headers: { [form]: "1" } }),
    ];
    const older = idsIn(plain.text).filter((id) => !id.includes("_"));
    expect(older.length).toBeGreaterThan(0);
    expect(idsIn(next.text).filter((id) => !/^[A-Z]+_/.test(id))).toEqual([]);
    const theirs = new Set(idsIn((await world.getUpstream(at, { headers: { [form]: "1" } })).text));
    expect(theirs.intersection(new Set(idsIn(next.text))).size).toBeGreaterThan(idsIn(next.text).length === 1 ? 0 : 1);
    expect(zero.text).toBe(plain.text);
    expect(again.text).toBe(next.text);
    expect(next.headers.get("etag")).not.toBe(plain.headers.get("etag"));
  });

  test("is chosen for accounts, searches and one's own page", async () => {
    const [owner = ""] = repo.split("/");
    for (const path of [`/users/${owner}`, `/search/issues?q=repo:${repo}`, "/user/repos", "/issues?filter=all"]) {
      const { text } = await world.get(path, { headers: { [form]: "1" } });
      expect(idsIn(text).length, path).toBeGreaterThan(0);
      expect(
        idsIn(text).filter((id) => !id.includes("_")),
        path,
      ).toEqual([]);
    }
  });
});

describe("the newer version of the dialect", () => {
  const headers = { "x-github-api-version": "2026-03-10" };
  test.each(["", "/issues", "/issues/1", "/pulls", "/issues/comments"])(
    "leaves out of %s what it dropped",
    async (path) => {
      const [ours, theirs] = [
        await world.get(`/repos/${repo}${path}?state=all`, { headers }),
        await world.getUpstream(`/repos/${repo}${path}?state=all`, { headers }),
      ];
      expect(ours.headers.get("x-github-api-version-selected")).toBe("2026-03-10");
      const keys = (body: object | object[]) => [body].flat().map((row) => Object.keys(row).sort());
      if (path !== "/issues") expect(keys(ours.body)).toEqual(keys(theirs.body));
      expect(ours.text).not.toMatch(/"(assignee|has_downloads|merge_commit_sha|master_branch)":/);
      expect((await world.get(`/repos/${repo}/issues/1`)).text).toContain('"assignee":');
    },
  );

  test("and of /rate_limit and the root", async () => {
    expect((await world.get("/rate_limit", { headers })).body).not.toHaveProperty("rate");
    expect((await world.get("/", { headers })).body).not.toHaveProperty("hub_url");
    expect((await world.get("/versions")).body).toEqual(["2026-03-10", "2022-11-28"]);
  });
});

describe("who sees what", () => {
  test("private, unknown and not mirrored repositories look the same to those who may not see them", async () => {
    const [open, hidden, unmirrored] = world.repositories;
    if (!open || !hidden || !unmirrored) throw new Error("Three repositories are needed");
    await world.ctx.db.query(sql`update repositories set private = (id = ${hidden.id})`);
    await world.ctx.db.query(sql`update repository_syncs set state = 'gone' where repository_id = ${unmirrored.id}`);
    const url = await world.openSibling({ RATE_LIMIT_ANONYMOUS: "1000" });
    const ask = async (path: string) => {
      const answer = await fetch(url + path, { headers: { "user-agent": "test" } });
      const headers = Object.fromEntries(
        [...answer.headers].filter(([name]) => !/date|request-id|remaining|used|content-length/.test(name)),
      );
      return { status: answer.status, headers, body: await answer.text() };
    };
    const hiddenName = (await world.get(`/repositories/${hidden.id}`)).body.full_name;
    for (const rest of [
      "",
      "/issues",
      "/issues/1",
      "/pulls",
      "/pulls/2",
      "/labels",
      "/labels/bug",
      "/milestones",
      "/issues/comments",
      "/pulls/comments",
    ]) {
      const looks = await Promise.all([
        ask(`/repos/${hiddenName}${rest}`),
        ask(`/repositories/${hidden.id}${rest}`),
        ask(`/repos/${unmirrored.fullName}${rest}`),
        ask(`/repos/no/body${rest}`),
        ask(`/repositories/987654321${rest}`),
      ]);
      expect(new Set(looks.map((look) => JSON.stringify(look))).size, rest).toBe(1);
      expect(looks[0]?.status).toBe(404);
      expect((await ask(`/repos/${open.fullName}${rest}`)).status, rest).toBeOneOf([200, 404]);
    }
    expect((await world.get(`/repositories/${hidden.id}`)).status).toBe(200);
    expect((await world.get(`/repos/${unmirrored.fullName}`)).status).toBe(404);
    const names = (await world.get("/user/repos")).body.map((row: { id: number }) => row.id);
    expect(names).toContain(hidden.id);
    expect(names).not.toContain(unmirrored.id);
  });

  test("the rights of upstream's token are shown to nobody without one", async () => {
    const mine = await world.get(`/repos/${repo}`);
    expect(mine.body.permissions).toBeDefined();
    const answer = await askAt(await world.openSibling({ RATE_LIMIT_ANONYMOUS: "1000" }), "GET", `/repos/${repo}`);
    expect(answer.status).toBe(200);
    for (const key of ["permissions", "temp_clone_token", "allow_squash_merge", "security_and_analysis"])
      expect(answer.body).not.toHaveProperty(key);
    expect(answer.body.full_name).toBe(repo);
  });

  test("a revoked token is refused, and a token's use is noted", async () => {
    const rows = await world.ctx.db.query<{ n: number }>(sql`
      select count(*) as n from api_tokens where last_used_at is not null`);
    expect(rows[0]?.n).toBeGreaterThan(0);
    const stored = await world.ctx.db.query(sql`select * from api_tokens`);
    expect(JSON.stringify(stored)).not.toContain(world.token);
    await world.ctx.db.query(sql`update api_tokens set revoked_at = now() where not can_write`);
    const url = await world.openSibling();
    const answer = await fetch(`${url}/user`, { headers: { authorization: `Bearer ${world.readToken}` } });
    expect(answer.status).toBe(401);
  });
});
