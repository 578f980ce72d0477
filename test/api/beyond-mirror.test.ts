import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createIssue } from "../../src/simulator/changes/issues.ts";
import { createRepository } from "../../src/simulator/changes/repositories.ts";
import { askAt } from "../support/asking.ts";
import { OWNER } from "../support/config.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const TOKEN = "ghp_of-a-person";
/** A repository that upstream shows to everybody and that the mirror does not have. */
const OTHER = "person/elsewhere";
let world: ApiWorld;
let off: string;
let repo: string;
let otherId: number;

beforeAll(async () => {
  world = await openApiWorld({ repositories: 3, issues: 20, env: { PASS_THROUGH: "on" } });
  repo = world.repositories.find((row) => !row.private)?.fullName as string;
  const { world: theirs, tokens } = world.upstream;
  tokens.create({ token: TOKEN, login: "person", repositories: "all" });
  const person = theirs.userByLogin("person")?.id ?? 0;
  const other = createRepository(theirs, person, { ownerId: person, name: "elsewhere", hasIssues: true });
  otherId = other.id;
  createIssue(theirs, person, { repository: other, title: "of no mirror" });
  off = await world.openSibling({ PASS_THROUGH: "off" });
});
afterAll(() => world?.[Symbol.asyncDispose]());

const asPerson = (path: string, method = "GET", body?: object) =>
  askAt(world.url, method, path, { token: TOKEN, ...(body && { body: JSON.stringify(body) }) });

describe("a repository that is not mirrored", () => {
  // Routes that the mirror serves and routes that it does not, by name and by id.
  const below = ["", "/issues", "/issues/1", "/pulls", "/labels", "/milestones", "/branches", "/hooks", "/assignees"];

  test.each(below)("%s: a token of upstream's gets upstream's own answer", async (rest) => {
    for (const path of [`/repos/${OTHER}${rest}`, `/repositories/${otherId}${rest}`]) {
      const theirs = await askAt(world.upstream.url, "GET", path, { token: TOKEN });
      const ours = await asPerson(path);
      expect([ours.status, ours.headers.get("x-tain-passed-through")], path).toEqual([theirs.status, "upstream"]);
      expect(ours.text, path).toBe(theirs.text.replaceAll(world.upstream.url, world.url));
    }
  });

  test("so do writes, and the caller's own token pays for them", async () => {
    world.upstream.meter.reset();
    const made = await asPerson(`/repos/${OTHER}/issues`, "POST", { title: "by way of the mirror" });
    expect([made.status, made.headers.get("x-tain-passed-through")]).toEqual([201, "upstream"]);
    const edited = await asPerson(`/repositories/${otherId}/issues/${made.body.number}`, "PATCH", { state: "closed" });
    expect([edited.status, edited.body.state]).toEqual([200, "closed"]);
    const label = await asPerson(`/repos/${OTHER}/labels`, "POST", { name: "of theirs", color: "ededed" });
    expect(label.status).toBe(201);
    expect((await asPerson(`/repos/${OTHER}/labels/of%20theirs`, "DELETE")).status).toBe(204);
    expect(Object.keys(world.upstream.meter.read().callers)).toEqual([TOKEN]);
  });

  test("so do accounts and organisations that the mirror has not met", async () => {
    world.upstream.world.addUser({ login: "unmet" });
    const theirs = await askAt(world.upstream.url, "GET", "/users/unmet", { token: TOKEN });
    const ours = await asPerson("/users/unmet");
    expect([ours.status, ours.headers.get("x-tain-passed-through")]).toEqual([theirs.status, "upstream"]);
    expect(theirs.status).toBe(200);
  });

  test.each(below)("%s: all others are told 404 in the service's words, and upstream is not asked", async (rest) => {
    world.upstream.meter.reset();
    for (const token of [null, world.token]) {
      const answer = await askAt(world.url, "GET", `/repos/${OTHER}${rest}`, { token });
      const isServed = rest !== "/branches";
      expect(answer.status, String(token)).toBe(isServed ? 404 : 403);
      if (isServed) expect(answer.body).toMatchObject({ message: "Not Found", status: "404" });
    }
    expect(world.upstream.meter.read().requests).toBe(0);
  });

  test("where nothing is forwarded, a token of upstream's is not told that there is none", async () => {
    for (const path of [
      `/repos/${OTHER}`,
      `/repositories/${otherId}/issues`,
      "/repos/no/body/labels",
      "/users/unmet",
    ]) {
      const answer = await askAt(off, "GET", path, { token: TOKEN });
      expect([path, answer.status]).toEqual([path, 403]);
      expect(answer.body.message).toContain("PASS_THROUGH=on");
    }
  });
});

describe("what no mirrored repository confines", () => {
  const beyond = [
    "/search/issues?q=is:open",
    `/search/issues?q=repo:${OTHER}`,
    "/search/issues?q=author:@me",
    `/search/issues?q=user:${OWNER}`,
    "/search/repositories?q=elsewhere",
    "/user/repos",
    "/users/person/repos",
    "/orgs/octo-works/repos",
    "/issues?filter=all",
    "/user/issues?filter=all",
    "/orgs/octo-works/issues?filter=all",
  ];

  test.each(beyond)("%s is upstream's answer for its tokens", async (path) => {
    const theirs = await askAt(world.upstream.url, "GET", path, { token: TOKEN });
    const ours = await asPerson(path);
    expect([ours.status, ours.headers.get("x-tain-passed-through")]).toEqual([theirs.status, "upstream"]);
    expect(ours.text).toBe(theirs.text.replaceAll(world.upstream.url, world.url));
    expect(ours.headers.get("x-tain-part")).toBeNull();
  });

  test.each(beyond)("%s says to all others that it is a part", async (path) => {
    world.upstream.meter.reset();
    const answer = await world.get(path);
    expect(world.upstream.meter.read().requests).toBe(0);
    // A search of nothing that can be searched has no results of which these could be a part.
    if (path.endsWith(`repo:${OTHER}`)) return expect(answer.status).toBe(422);
    if (answer.status === 404) return expect(answer.body.message).toBe("Not Found");
    expect([answer.status, answer.headers.get("x-tain-part")]).toEqual([200, "mirrored repositories"]);
    if (path.startsWith("/search/")) expect(answer.body.incomplete_results).toBe(true);
  });

  test.each([
    `/search/issues?q=repo:${"REPO"}`,
    "/search/issues?q=(repo:REPO OR repo:REPO) is:open",
    "/search/issues?q=author:@me repo:REPO -repo:no/body",
  ])("%s is the mirror's, and whole", async (path) => {
    for (const token of [TOKEN, world.token]) {
      const answer = await askAt(world.url, "GET", path.replaceAll("REPO", repo), { token });
      expect([answer.status, answer.headers.get("x-tain-passed-through")]).toEqual([200, null]);
      expect([answer.headers.get("x-tain-part"), answer.body.incomplete_results]).toEqual([null, false]);
    }
  });

  test.each([
    '{search(query:"is:open",type:ISSUE,first:1){issueCount}}',
    '{search(query:"elsewhere",type:REPOSITORY,first:1){repositoryCount}}',
    "{viewer{repositories(first:1){totalCount}}}",
  ])("GraphQL %s is a part for tokens of the mirror's own, also when it is kept", async (document) => {
    for (const _ of [1, 2]) {
      const ours = await world.query(document);
      expect([ours.status, ours.headers.get("x-tain-part")]).toEqual([200, "mirrored repositories"]);
    }
    const theirs = await world.query(document, {}, { token: TOKEN });
    expect([theirs.headers.get("x-tain-passed-through"), theirs.headers.get("x-tain-part")]).toEqual([
      "upstream",
      null,
    ]);
  });

  test("a scope that nobody sees adds nothing to a search, and alone it is refused", async () => {
    const alone = (await world.get(`/search/issues?q=repo:${repo}`)).body.total_count;
    expect(alone).toBeGreaterThan(0);
    for (const scope of ["repo:no/body", "user:no-such-user-zz", "org:no-such-org-zz"]) {
      const q = `repo:${repo} ${scope}`;
      const answer = await world.get(`/search/issues?q=${encodeURIComponent(q)}`);
      expect([scope, answer.status, answer.body.total_count]).toEqual([scope, 200, alone]);
      expect(answer.headers.get("x-tain-part")).toBe("mirrored repositories");
      const document = "query($q:String!){search(query:$q,type:ISSUE,first:1){issueCount}}";
      const { body } = await world.query(document, { q });
      expect([scope, body]).toEqual([scope, { data: { search: { issueCount: alone } } }]);
      expect((await world.get(`/search/issues?q=${scope}`)).status).toBe(422);
    }
  });

  test("an upstream that is away is a 502 for its tokens, and no empty list", async () => {
    try {
      world.upstream.setFaults({ http: [{ match: "^GET /user/repos", kind: "reset" }] });
      const answer = await askAt(world.url, "GET", "/user/repos", { token: TOKEN });
      expect([answer.status, answer.body.message]).toEqual([
        502,
        "This mirror does not hold what is asked for, and upstream, which may, gave no answer that can be read.",
      ]);
    } finally {
      world.upstream.setFaults({});
    }
  });
});
