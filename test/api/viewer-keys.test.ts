import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { store } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// Upstream shows the mirror's credential more than it shows others. What it showed stays with those who may see it.

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

const SECRET = "shown-to-the-mirror-alone";
const CALLERS = ["stranger", "outsider", "reader of ours", "reader", "member", "admin"] as const;
type Name = (typeof CALLERS)[number];

let world: ApiWorld;
let open: { id: number; fullName: string };
let hidden: { id: number; fullName: string };
let tokens: Record<Name, string | null>;
const at: Record<string, Body> = {};

beforeAll(async () => {
  world = await openApiWorld({
    repositories: 6,
    issues: 50,
    env: {
      // What the mirror itself shows them.
      PASS_THROUGH: "off",
      RATE_LIMIT_USER: "0",
      RATE_LIMIT_ANONYMOUS: "0",
      RATE_LIMIT_SEARCH_USER: "0",
      RATE_LIMIT_SEARCH_ANONYMOUS: "0",
    },
  });
  const [isOpen, isHidden] = [false, true].map((isPrivate) =>
    world.repositories.find((one) => one.private === isPrivate),
  );
  if (!isOpen || !isHidden) throw new Error("The world needs a public repository and a private one");
  [open, hidden] = [isOpen, isHidden];
  const { create } = { create: world.upstream.tokens.create.bind(world.upstream.tokens) };
  create({ token: "ghp_outsider", login: "outsider", repositories: [] });
  create({ token: "ghp_reader", login: "reader", repositories: [hidden.fullName], write: false });
  create({ token: "ghp_member", login: "member", repositories: [hidden.fullName] });
  tokens = {
    stranger: null,
    outsider: "ghp_outsider",
    "reader of ours": await createApiToken(world.ctx, { userId: world.userId, canWrite: false }),
    reader: "ghp_reader",
    member: "ghp_member",
    admin: world.token,
  };
  for (const one of [open, hidden]) await showMore(one);
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Stores upstream's answers with unknown keys added, at the top and in every object within. */
async function showMore(one: { id: number; fullName: string }): Promise<void> {
  const read = async (path: string): Promise<Body> => (await world.getUpstream(`/repos/${one.fullName}${path}`)).body;
  const more = (value: Body): Body => {
    if (Array.isArray(value)) return value.map(more);
    if (typeof value !== "object" || value === null) return value;
    const inner = Object.entries(value).map(([key, each]) => [key, more(each)]);
    return { ...Object.fromEntries(inner), made_up_tomorrow: SECRET, viewer_made_up: SECRET };
  };
  const repository = await read("");
  const home = { id: one.id, fullName: one.fullName, htmlUrl: repository.html_url };
  const rows: Body[] = await read("/issues?state=all&per_page=100");
  const issue = rows.find((row) => !row.pull_request);
  const pull = await read(`/pulls/${rows.find((row) => row.pull_request)?.number}`);
  const comment = (await read("/issues/comments?per_page=1"))[0];
  const [label, milestone] = [(await read("/labels"))[0], (await read("/milestones?state=all"))[0]];
  at[one.fullName] = { issue, pull, comment, label, milestone };
  const put = (kind: Parameters<typeof store>[2], body: Body) =>
    store(world.ctx, world.upstream, kind, body, kind === "repository" ? undefined : home);
  await put("repository", { ...more(repository), role_name: "admin", custom_properties: { tier: SECRET } });
  const member = { author_association: "MEMBER" };
  await put("issue", {
    ...more(issue),
    ...member,
    issue_field_values: [{ issue_field_name: "estimate", value: SECRET }],
    parent_issue_url: `${world.upstream.url}/repos/${hidden.fullName}/issues/1`,
    made_up_address: { url: `${world.upstream.url}/repos/${hidden.fullName}/issues/2` },
  });
  await put("pull_request", { ...more(pull), ...member });
  if (comment) await put("issue_comment", { ...more(comment), ...member });
  await put("label", more(label));
  if (milestone) await put("milestone", more(milestone));
}

const show = (name: Name, path: string) => world.get(path, { token: tokens[name] });

function paths({ fullName }: { fullName: string }): string[] {
  const { issue, pull, comment, label, milestone } = at[fullName];
  const below = [
    "",
    `/issues/${issue.number}`,
    "/issues?state=all&per_page=100",
    "/issues?state=all&sort=updated&per_page=100",
    `/pulls/${pull.number}`,
    "/pulls?state=all&per_page=100",
    `/issues/${pull.number}`,
    ...(comment ? [`/issues/comments/${comment.id}`, "/issues/comments?per_page=100"] : []),
    "/labels?per_page=100",
    `/labels/${encodeURIComponent(label.name)}`,
    ...(milestone ? ["/milestones?state=all", `/milestones/${milestone.number}`] : []),
  ];
  return [
    ...below.map((path) => `/repos/${fullName}${path}`),
    `/search/issues?q=repo:${fullName}&per_page=100`,
    `/search/repositories?q=repo:${fullName}`,
    `/users/${fullName.split("/")[0]}`,
    `/users/${issue.user.login}`,
    `/users/${fullName.split("/")[0]}/repos`,
  ];
}

/** Asks for each page so often that it is kept. Pages are kept for each class of callers. */
async function texts(name: Name, where: { fullName: string }): Promise<string[]> {
  const all: string[] = [];
  for (const path of paths(where))
    for (let turn = 0; turn < 3; turn++) {
      const answer = await show(name, path);
      expect(answer.status, `${path}: ${answer.text}`).toBe(200);
      all.push(answer.text);
    }
  return all;
}

describe("of a public repository", () => {
  test.each(["stranger", "outsider", "reader", "member"] as const)(
    "a %s without rights there is shown what is public, and no name of what they do not see",
    async (name) => {
      await texts("admin", open);
      for (const text of await texts(name, open)) {
        expect(text).not.toContain(SECRET);
        expect(text).not.toMatch(/"(role_name|custom_properties|issue_field_values|made_up\w*|viewer\w*)":/);
        if (name === "stranger" || name === "outsider") expect(text).not.toContain(hidden.fullName);
        expect(text).not.toContain('"author_association":"MEMBER"');
      }
    },
  );

  test("whoever sees the parent's repository is shown its address", async () => {
    const { issue } = at[open.fullName];
    const path = `/repos/${open.fullName}/issues/${issue.number}`;
    const parent = async (name: Name) => (await show(name, path)).body.parent_issue_url;
    const shown = `${world.url}/repos/${hidden.fullName}/issues/1`;
    for (const name of CALLERS)
      expect(await parent(name), name).toBe(name === "stranger" || name === "outsider" ? undefined : shown);
  });
});

test("who does not see a pull request's repository is shown neither its name nor its branches in lists of others", async () => {
  const { issue } = at[open.fullName];
  const path = `/repos/${open.fullName}/issues/${issue.number}`;
  const pull = (fullName: string, headName: string, ref: string) => {
    const repo = (full: string) => ({
      id: 1,
      url: `${world.upstream.url}/repos/${full}`,
      name: full.split("/")[1] ?? "",
    });
    const end = (of: string) => ({ ref, sha: "c0ffee", repo: repo(of) });
    const url = `${world.upstream.url}/repos/${fullName}/pulls/7`;
    return { id: 7, number: 7, url, head: end(headName), base: end(fullName) };
  };
  const home = { id: open.id, fullName: open.fullName, htmlUrl: issue.html_url.split("/issues/")[0] };
  const own = pull(open.fullName, open.fullName, "own-branch");
  const changed = {
    ...issue,
    updated_at: new Date(Date.parse(issue.updated_at) + 60_000).toISOString(),
    pull_requests: [
      own,
      pull(open.fullName, hidden.fullName, "secret-head"),
      pull(hidden.fullName, open.fullName, "secret-base"),
    ],
    check_suite: { id: 5, pull_requests: [pull(hidden.fullName, hidden.fullName, "secret-inside")] },
    head_repository: { url: `${world.upstream.url}/repos/${hidden.fullName}` },
  };
  await store(world.ctx, world.upstream, "issue", changed, home);
  for (const name of CALLERS) {
    const { body, text } = await show(name, path);
    const sees = name !== "stranger" && name !== "outsider";
    expect(
      body.pull_requests.map((one: Body) => one.head.ref),
      name,
    ).toEqual(sees ? ["own-branch", "secret-head", "secret-base"] : ["own-branch"]);
    expect(body.check_suite.pull_requests, name).toHaveLength(sees ? 1 : 0);
    expect(body.head_repository === null, name).toBe(!sees);
    if (!sees) expect(text).not.toMatch(new RegExp(`secret-|${hidden.fullName}`));
  }
});

describe("of a private repository", () => {
  test("a reader is shown what every reader is shown, and nothing that nobody knows", async () => {
    for (const name of ["reader", "reader of ours"] as const) {
      for (const text of await texts(name, hidden)) expect(text).not.toMatch(/"(role_name|made_up\w*|viewer\w*)":/);
      const { issue } = at[hidden.fullName];
      const { body } = await show(name, `/repos/${hidden.fullName}/issues/${issue.number}`);
      expect(body.issue_field_values).toMatchObject([{ value: SECRET }]);
      expect(body.author_association).toBe("MEMBER");
    }
  });

  test("who may push is shown what upstream adds tomorrow, and nothing that is said of the mirror's own account", async () => {
    for (const [at, text] of (await texts("member", hidden)).entries()) {
      expect(text).not.toMatch(/"(role_name|viewer\w*)":/);
      // Every answer but the accounts at the end has the key.
      if (at < 9) expect(text).toContain('"made_up_tomorrow":');
    }
  });

  test("who may do what the mirror may is shown all", async () => {
    const { body } = await show("admin", `/repos/${hidden.fullName}`);
    expect(body).toMatchObject({ made_up_tomorrow: SECRET, viewer_made_up: SECRET, role_name: "admin" });
    expect(body.license?.made_up_tomorrow ?? SECRET).toBe(SECRET);
  });
});

test.each(CALLERS)("GraphQL shows none of it to a %s", async (name) => {
  if (name === "stranger") return;
  const { issue } = at[open.fullName];
  const [owner, repository] = open.fullName.split("/");
  const query = `{ repository(owner: "${owner}", name: "${repository}") { issue(number: ${issue.number}) { title authorAssociation } } }`;
  for (let turn = 0; turn < 3; turn++) {
    const { body, text } = await world.send("POST", "/graphql", {
      token: tokens[name],
      body: JSON.stringify({ query }),
    });
    expect(text).not.toContain(SECRET);
    const isGiven = name === "reader of ours" || name === "admin";
    expect(body.data.repository.issue.authorAssociation).toBe(isGiven ? "MEMBER" : "NONE");
  }
});
