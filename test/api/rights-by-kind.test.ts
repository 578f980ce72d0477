import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MIRROR_OPERATIONS } from "../../src/api/operations.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";
import { EACH_GIVEN, GIVEN, type Given, isGiven as has, mintTokens } from "./app-tokens.ts";
import { pathOf, type Target, targetOf } from "./targets.ts";

// What a token sees of a private repository by REST, by the permissions that it was given there.

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

let world: ApiWorld;
let tokens: Record<Given | "of another repository", string>;
let hidden: Target;
let open: Target;
/** Under a pull request; the target's own is under an issue. */
let commentOnPull: number;
/** What the owner sees of the hidden repository. */
let all: { issues: number[]; pulls: number[] };

beforeAll(async () => {
  world = await openApiWorld({
    repositories: 6,
    issues: 50,
    env: { RATE_LIMIT_SEARCH_USER: "0", RATE_LIMIT_USER: "0" },
  });
  const found = world.repositories.find((one) => one.private);
  const isPublic = world.repositories.find((one) => !one.private);
  if (!found || !isPublic) throw new Error("The world needs a public repository and a private one");
  [hidden, open] = [await targetOf(world, found), await targetOf(world, isPublic)];
  const comments = (await world.get(`/repos/${hidden.fullName}/issues/comments?per_page=100`)).body as Body[];
  const idUnder = (kind: string) => comments.find((row) => row.html_url.includes(`/${kind}/`))?.id;
  hidden.params["issues/comments/id"] = String(idUnder("issues"));
  commentOnPull = idUnder("pull");
  const rows = (await world.get(`/repos/${hidden.fullName}/issues?state=all&per_page=100`)).body as Body[];
  const numbers = (isPull: boolean) => rows.filter((row) => !!row.pull_request === isPull).map((row) => row.number);
  all = { issues: numbers(false), pulls: numbers(true) };
  tokens = mintTokens(world, hidden.fullName, {
    ...GIVEN,
    "of another repository": { ...GIVEN.both, repositoryIds: new Set() },
  });
});
afterAll(() => world?.[Symbol.asyncDispose]());

const get = (name: keyof typeof tokens, path: string) => world.get(path, { token: tokens[name] });
const below = (path: string) => `/repos/${hidden.fullName}${path}`;

const reads = MIRROR_OPERATIONS.filter(({ route }) => route.run.of === "repository" && route.method === "GET");

/** GitHub docs, "Permissions required for fine-grained personal access tokens": any one of these. */
function takenBy(path: string): string[] {
  if (path === "/" || path === "/topics") return ["metadata"];
  if (path.startsWith("/pulls")) return ["pull_requests"];
  if (path === "/issues" || path === "/issues/:number") return ["issues"];
  return ["issues", "pull_requests"];
}

function expectRefusal(answer: Body, accepted: string): void {
  expect([answer.status, answer.body]).toEqual([
    403,
    {
      message: "Resource not accessible by integration",
      documentation_url: expect.stringMatching(/^https:\/\/docs\.github\.com\/rest\/./),
      status: "403",
    },
  ]);
  expect(answer.headers.get("x-accepted-github-permissions")).toBe(accepted);
}

describe.each(EACH_GIVEN)("a token for %s", (name) => {
  test.each(reads.map(({ path }) => path))("GET /repos/{owner}/{repo}%s", async (path) => {
    const accepted = takenBy(path);
    // The target's number and comment are an issue's own.
    const isOfIssue = /^\/issues\/(:number|comments\/:id)/.test(path);
    const isAllowed = accepted.some((one) => has(name, one)) && (!isOfIssue || has(name, "issues"));
    const asked = below(pathOf(path, hidden));
    const cold = await get(name, asked);
    for (let turn = 0; turn < 3; turn++) await world.get(asked);
    const warm = await get(name, asked);
    for (const answer of [cold, warm]) {
      if (isAllowed) expect(answer.status, answer.text).toBeLessThan(300);
      else expectRefusal(answer, accepted.map((one) => `${one}=read`).join("; "));
    }
    expect((await get("of another repository", asked)).status).toBe(404);
    const inPublic = await get(name, `/repos/${open.fullName}${pathOf(path, open)}`);
    expect(inPublic.status, inPublic.text).toBeLessThan(300);
  });

  test("lists no pull requests among issues that it could not read", async () => {
    if (!has(name, "issues")) return;
    const [label] = (await world.get(below("/issues?state=all&per_page=100"))).body.flatMap((row: Body) =>
      row.pull_request ? row.labels : [],
    );
    for (const query of ["", `&labels=${encodeURIComponent(label.name)}`, "&sort=updated"]) {
      const path = below(`/issues?state=all&per_page=100${query}`);
      const theirs = (await world.get(path)).body as Body[];
      const wanted = theirs.filter((row) => has(name, "pull_requests") || !row.pull_request);
      expect((await get(name, path)).body).toEqual(wanted.map((row) => expect.objectContaining({ id: row.id })));
    }
  });

  test("sees a comment if it sees what the comment stands under", async () => {
    if (name === "metadata alone") return;
    const [issue, pull] = [all.issues[0], hidden.params["pulls/number"]];
    const statuses = [
      ["issues", `/issues/${issue}/comments`],
      ["issues", `/issues/${issue}/labels`],
      ["pull_requests", `/issues/${pull}/comments`],
      ["pull_requests", `/issues/${pull}/labels`],
      ["pull_requests", `/issues/comments/${commentOnPull}`],
    ] as const;
    for (const [permission, path] of statuses)
      expect((await get(name, below(path))).status, path).toBe(has(name, permission) ? 200 : 403);
    const listed = (await get(name, below("/issues/comments?per_page=100"))).body as Body[];
    const isUnder = (kind: string) => listed.some((row) => row.html_url.includes(`/${kind}/`));
    expect([isUnder("issues"), isUnder("pull")]).toEqual([has(name, "issues"), has(name, "pull_requests")]);
  });

  test("finds and counts what it could read", async () => {
    const isWanted = (row: Body) => has(name, row.pull_request ? "pull_requests" : "issues");
    const isHidden = (row: Body) => row.repository_url.endsWith(`/${hidden.fullName}`);
    const wanted = (has(name, "issues") ? all.issues.length : 0) + (has(name, "pull_requests") ? all.pulls.length : 0);
    const { body } = await get(name, `/search/issues?q=repo:${hidden.fullName}&per_page=100`);
    expect(body.total_count).toBe(wanted);
    expect(body.items).toHaveLength(Math.min(wanted, 100));
    expect(body.items.every(isWanted)).toBe(true);
    for (const path of [
      "/issues?filter=all&state=all",
      `/organizations/${hidden.ownerId}/issues?filter=all&state=all`,
    ]) {
      const answer = await get(name, `${path}&per_page=100`);
      // The owner is no organisation, or an installation asks what is somebody's.
      if (answer.status === 404 || answer.status === 403) continue;
      const rows = answer.body.filter(isHidden);
      expect(rows.every(isWanted)).toBe(true);
    }
    const repositories = await get(name, `/search/repositories?q=repo:${hidden.fullName}+fork:true`);
    expect(repositories.body.total_count).toBe(1);
    const labels = await get(name, `/search/labels?q=bug&repository_id=${hidden.id}`);
    expect(labels.status).toBe(200);
  });

  test("is told what a write takes", async () => {
    const refusals = [
      ["issues", "/issues", "issues=write"],
      ["pull_requests", "/pulls", "pull_requests=write"],
    ] as const;
    for (const [permission, path, accepted] of refusals) {
      if (has(name, permission)) continue;
      const answer = await world.send("POST", below(path), { token: tokens[name], body: "{}" });
      expectRefusal(answer, accepted);
    }
  });
});

test("a number of the other kind is refused by what the route takes", async () => {
  const pull = hidden.params["pulls/number"];
  expectRefusal(await get("issues too", below(`/issues/${pull}`)), "issues=read");
  expectRefusal(await get("issues too", below(`/issues/${pull}/comments`)), "issues=read; pull_requests=read");
  expectRefusal(await get("pull requests too", below(`/issues/${pull}`)), "issues=read");
});
