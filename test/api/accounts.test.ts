import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { rebased } from "../support/asking.ts";
import { store } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let busiest: string;
beforeAll(async () => {
  world = await openApiWorld({ issues: 30, repositories: 6 });
  busiest = world.repositories[0]?.fullName as string;
});
afterAll(() => world?.[Symbol.asyncDispose]());

const same = async (path: string, asUpstream = path) => {
  const [ours, theirs] = [await world.get(path), await world.getUpstream(asUpstream)];
  expect(ours.status, path).toBe(theirs.status);
  expect(ours.body, path).toEqual(rebased(theirs.text, world.upstream.url, world.url));
  return ours;
};

/** An account that the mirror knows only from issues. */
async function somebody(): Promise<{ id: number; login: string }> {
  const { body } = await world.get(`/repos/${busiest}/issues?state=all&per_page=100`);
  return (body as { user: { id: number; login: string; type: string } }[])
    .map(({ user }) => user)
    .find(({ type, login }) => type === "User" && login !== busiest.split("/")[0]) as { id: number; login: string };
}

describe("accounts", () => {
  test("one that was only seen in passing is read from upstream, once", async () => {
    const { id, login } = await somebody();
    world.upstream.meter.reset();
    const first = await same(`/users/${login}`);
    expect(first.body.public_repos).toBeTypeOf("number");
    // A date stands there once its second is over.
    const dated = async () => (await world.get(`/users/${login}`)).headers.get("last-modified");
    await expect.poll(dated).not.toBeNull();
    const asked = world.upstream.meter.read().requests;
    expect(await world.get(`/users/${login.toUpperCase()}`)).toMatchObject({ status: 200, body: first.body });
    expect((await world.get(`/user/${id}`)).body).toEqual(first.body);
    // The last two reads asked upstream nothing more.
    expect(world.upstream.meter.read().requests).toBe(asked);
    // Where the account is embedded, it keeps its short form.
    const { body } = await world.get(`/repos/${busiest}/issues?creator=${login}&state=all`);
    expect(body[0].user).not.toHaveProperty("public_repos");
  });

  test("the user of one of our tokens is shown whole as well", async () => {
    const { body } = await world.get(`/repos/${busiest}/issues?state=all&per_page=100`);
    const { id } = await somebody();
    const other = body.map((row: { user: { id: number } }) => row.user.id).find((one: number) => one !== id);
    const token = await createApiToken(world.ctx, { userId: other, canWrite: false });
    const shown = await world.get("/user", { token });
    expect([shown.status, shown.body.id, typeof shown.body.public_repos]).toEqual([200, other, "number"]);
  });

  test("what upstream tells an account of itself is told to nobody else", async () => {
    const { body: own } = await world.getUpstream("/user");
    expect(own).toHaveProperty("two_factor_authentication");
    const asked: [path: string, token: string | null][] = [
      [`/users/${own.login}`, null],
      [`/users/${own.login}`, world.token],
      // Own tokens are given to others, and answer as the operator unless they were made for somebody else.
      ["/user", world.token],
      ["/user", world.readToken],
    ];
    for (const [path, token] of asked) {
      const shown = await world.get(path, { token });
      expect([shown.status, shown.body.id]).toEqual([200, own.id]);
      expect(shown.body.email).toBeNull();
      expect(shown.body.user_view_type).toBe("public");
      for (const key of [
        "plan",
        "two_factor_authentication",
        "notification_email",
        "disk_usage",
        "total_private_repos",
      ])
        expect(shown.body).not.toHaveProperty(key);
    }
  });

  test("an organisation, by login and by id, beside itself as an account", async () => {
    const organization = world.upstream.world.addUser({ login: "acme", type: "Organization", name: "Acme" });
    const single = await world.getUpstream("/users/acme");
    await store(world.ctx, world.upstream, "user", single.body);
    await same("/orgs/acme");
    await same(`/organizations/${organization.id}`);
    await same("/users/acme");
    await same("/orgs/ACME", "/orgs/acme");
    expect((await world.get(`/orgs/${(await somebody()).login}`)).status).toBe(404);
  });

  test("one that nobody knows is 404; one that upstream hides now is asked for once", async () => {
    for (const path of ["/users/nobody-at-all", "/user/999999999", "/user/0x1", "/orgs/nobody"])
      expect((await world.get(path)).status, path).toBe(404);
    await store(world.ctx, world.upstream, "user", {
      ...(await world.get(`/repos/${busiest}`)).body.owner,
      login: "gone-upstream",
      id: 123_456_789,
    });
    world.upstream.meter.reset();
    expect((await world.get("/users/gone-upstream")).status).toBe(404);
    expect((await world.get("/users/gone-upstream")).status).toBe(404);
    expect(world.upstream.meter.read().requests).toBe(1);
  });
});

describe("whose repositories", () => {
  test("of a user: only public ones, for every caller", async () => {
    const owners = [...new Set(world.repositories.map(({ fullName }) => fullName.split("/")[0] as string))];
    for (const owner of owners) {
      const { body, status } = await world.get(`/users/${owner}/repos?per_page=100`);
      expect(status).toBe(200);
      const expected = world.repositories.filter(
        ({ fullName, private: hidden }) => fullName.startsWith(`${owner}/`) && !hidden,
      );
      expect(body.map((row: { id: number }) => row.id).sort()).toEqual(expected.map(({ id }) => id).sort());
      const named = body.map((row: { full_name: string }) => row.full_name.toLowerCase());
      expect(named).toEqual(named.toSorted());
    }
  });

  test("of an organisation: private ones for who sees them, counts and Link included", async () => {
    const [first] = world.repositories;
    const owner = first?.fullName.split("/")[0] as string;
    const { id } = (await world.get(`/repos/${first?.fullName}`)).body.owner;
    const own = world.repositories.filter(({ fullName }) => fullName.startsWith(`${owner}/`));
    await world.ctx.db.query(sql`update users set type = 'Organization' where id = ${id}`);
    const all = await world.get(`/orgs/${owner}/repos?per_page=100`);
    expect(all.body).toHaveLength(own.length);
    const anonymous = await world.get(`/orgs/${owner}/repos?per_page=100`, { token: null });
    expect(anonymous.body).toHaveLength(own.filter((row) => !row.private).length);
    expect((await world.get(`/orgs/${owner}/repos?type=private`, { token: null })).body).toEqual([]);
    const paged = await world.get(`/orgs/${owner}/repos?per_page=1&type=all`);
    if (own.length > 1)
      expect(paged.headers.get("link")).toContain(
        `<${world.url}/organizations/${id}/repos?per_page=1&type=all&page=2>`,
      );
    expect((await world.get(`/organizations/${id}/repos?per_page=100`)).body).toEqual(all.body);
    await world.ctx.db.query(sql`update users set type = 'User' where id = ${id}`);
  });

  test("roles that are not mirrored are refused, and unknown orders give the list's own", async () => {
    const { status, body } = await world.get("/users/mirror-owner/repos?type=member");
    expect(status).toBe(422);
    expect(body).toMatchObject({ message: "Validation Failed", errors: [{ resource: "Repository" }] });
    const plain = (await world.get("/users/mirror-owner/repos?per_page=100")).body;
    for (const query of ["sort=size", "direction=up"])
      expect((await world.get(`/users/mirror-owner/repos?per_page=100&${query}`)).body, query).toEqual(plain);
  });
});

describe("issues across repositories", () => {
  type Row = { number: number; id: number; repository: { full_name: string; id: number }; user: { login: string } };

  test("all that are seen, each with its repository, and each once", async () => {
    const found: Row[] = [];
    for (let page = 1, left = true; left; page++) {
      const { body, status } = await world.get(`/issues?filter=all&state=all&per_page=50&page=${page}`);
      expect(status).toBe(200);
      found.push(...body);
      left = body.length > 0;
    }
    const expected: string[] = [];
    for (const { fullName } of world.repositories) {
      for (let next: string | undefined = `/repos/${fullName}/issues?state=all&per_page=100`; next; ) {
        const { body, headers } = await world.get(next);
        expected.push(...(body as Row[]).map(({ number }) => `${fullName}#${number}`));
        next = /<[^>]*?(\/repositories[^>]*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
      }
    }
    const got = found.map(({ repository, number }) => `${repository.full_name}#${number}`);
    expect(got.toSorted()).toEqual(expected.toSorted());
    expect(found[0]?.repository).not.toHaveProperty("subscribers_count");
  });

  test("by what the caller has to do with them", async () => {
    const { login, id } = await somebody();
    await world.ctx.db.query(sql`update api_tokens set user_id = ${id}`);
    const sibling = await world.openSibling();
    const ask = async (query: string) =>
      (await (
        await fetch(`${sibling}${query}`, { headers: { authorization: `token ${world.token}`, "user-agent": "t" } })
      ).json()) as Row[];
    const created = await ask("/issues?filter=created&state=all&per_page=100");
    const inRepository = await world.get(`/repos/${busiest}/issues?creator=${login}&state=all&per_page=100`);
    expect(created.filter(({ repository }) => repository.full_name === busiest).map(({ id: one }) => one)).toEqual(
      inRepository.body.map((row: Row) => row.id),
    );
    expect(created.every(({ user }) => user.login === login)).toBe(true);
    const assigned = await ask("/issues?state=all&per_page=100");
    const there = await world.get(`/repos/${busiest}/issues?assignee=${login}&state=all&per_page=100`);
    expect(assigned.filter(({ repository }) => repository.full_name === busiest)).toHaveLength(there.body.length);
    expect(await ask("/user/issues?filter=created&state=all&per_page=100")).toEqual(created);
    expect(await ask("/issues?filter=created&state=all&pulls=false")).not.toContainEqual(
      expect.objectContaining({ pull_request: expect.anything() }),
    );
    await world.ctx.db.query(sql`update api_tokens set user_id = ${world.userId}`);
  });

  test("need a caller with a credential, and say what they cannot answer", async () => {
    for (const path of ["/issues", "/user/issues", "/orgs/acme/issues"])
      expect((await world.get(path, { token: null })).status, path).toBe(401);
    const { status, body } = await world.get("/issues?filter=subscribed");
    expect(status).toBe(422);
    expect(body.errors[0].message).toBe("Subscriptions are not mirrored");
    const assigned = await world.get("/issues");
    expect((await world.get("/issues?filter=mine")).body).toEqual(assigned.body);
    expect((await world.get("/orgs/nobody-at-all/issues")).status).toBe(404);
  });
});

describe("what belongs to a repository's parts", () => {
  test("merge checks, requested reviewers and a review's comments equal upstream's", async () => {
    const { body } = await world.getUpstream(`/repos/${busiest}/pulls?state=all&per_page=20`);
    for (const { number } of body as { number: number }[]) {
      const at = `/repos/${busiest}/pulls/${number}`;
      const [ours, theirs] = [await world.get(`${at}/merge`), await world.getUpstream(`${at}/merge`)];
      expect(ours.status, at).toBe(theirs.status);
      await same(`${at}/requested_reviewers`);
      for (const { id } of (await world.getUpstream(`${at}/reviews`)).body)
        expect((await world.get(`${at}/reviews/${id}/comments`)).body).toHaveLength(
          (await world.getUpstream(`${at}/reviews/${id}/comments`)).body.length,
        );
    }
    expect((await world.get(`/repos/${busiest}/pulls/${body[0].number}/reviews/1/comments`)).status).toBe(404);
  });

  test("labels of a milestone's issues, each once", async () => {
    const { body: issues } = await world.getUpstream(`/repos/${busiest}/issues?milestone=1&state=all&per_page=100`);
    const names = issues.flatMap((row: { labels: { name: string }[] }) => row.labels.map(({ name }) => name));
    const { body } = await world.get(`/repos/${busiest}/milestones/1/labels?per_page=100`);
    expect(new Set(body.map((row: { name: string }) => row.name))).toEqual(new Set(names));
    expect(body).toHaveLength(new Set(names).size);
    expect((await world.get(`/repos/${busiest}/milestones/999/labels`)).status).toBe(404);
  });

  test("who can be assigned", async () => {
    const { body } = await world.get(`/repos/${busiest}/assignees?per_page=100`);
    expect(body.map((row: { login: string }) => row.login)).toContain(busiest.split("/")[0]);
    for (const { login } of body.slice(0, 3)) {
      const check = await world.get(`/repos/${busiest}/assignees/${login}`);
      expect([check.status, check.text]).toEqual([204, ""]);
    }
    expect((await world.get(`/repos/${busiest}/assignees/nobody-at-all`)).status).toBe(404);
    expect((await world.get(`/repos/${busiest}/assignees?page=99`)).body).toEqual([]);
  });
});
