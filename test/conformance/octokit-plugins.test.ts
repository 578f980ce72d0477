/** octokit's own plugins for limits and passing failures, which read answers closely. */
import { Octokit } from "octokit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";
import { openLink } from "../receiver/breakable-link.ts";

let world: ApiWorld;
let owner: string;
let repo: string;
beforeAll(async () => {
  world = await openApiWorld({ issues: 20, repositories: 1 });
  [owner, repo] = (world.repositories[0]?.fullName ?? "/").split("/") as [string, string];
});
afterAll(() => world?.[Symbol.asyncDispose]());

interface Told {
  retryAfter: number;
  url: string;
}

/** With the plugins as they come, and what they report; nothing is repeated by the one for limits. */
function withThrottling(baseUrl: string): { octokit: Octokit; limits: Told[]; secondary: Told[] } {
  const [limits, secondary]: [Told[], Told[]] = [[], []];
  const into = (list: Told[]) => (retryAfter: number, options: object) => {
    list.push({ retryAfter, url: (options as { url: string }).url });
    return false;
  };
  const octokit = new Octokit({
    baseUrl,
    auth: world.token,
    retry: { enabled: false },
    throttle: { onRateLimit: into(limits), onSecondaryRateLimit: into(secondary) },
  });
  return { octokit, limits, secondary };
}

test("throttling knows a spent quota of REST, and when it is whole again", async () => {
  const { octokit, limits, secondary } = withThrottling(await world.openSibling({ RATE_LIMIT_USER: "3" }));
  for (let at = 0; at < 3; at++) await octokit.rest.issues.get({ owner, repo, issue_number: 1 });
  await expect(octokit.rest.issues.get({ owner, repo, issue_number: 1 })).rejects.toMatchObject({ status: 403 });
  expect(secondary).toEqual([]);
  expect(limits).toEqual([{ url: "/repos/{owner}/{repo}/issues/{issue_number}", retryAfter: expect.any(Number) }]);
  expect(limits[0]?.retryAfter).toBeGreaterThan(3_500);
  expect(limits[0]?.retryAfter).toBeLessThanOrEqual(3_602);
});

test("throttling knows a spent quota of GraphQL", async () => {
  const { octokit, limits } = withThrottling(await world.openSibling({ RATE_LIMIT_GRAPHQL: "2" }));
  const query = "{ viewer { login } }";
  for (let at = 0; at < 2; at++) await octokit.graphql(query);
  await expect(octokit.graphql(query)).rejects.toThrow("GraphQL Rate Limit Exceeded");
  expect(limits).toEqual([{ url: "/graphql", retryAfter: expect.any(Number) }]);
  expect(limits[0]?.retryAfter).toBeGreaterThan(3_500);
});

test("retry asks again while the mirror's database is away, and is answered when it is back", async () => {
  await using link = await openLink(world.ctx.config.databaseUrl);
  const statuses: number[] = [];
  const octokit = new Octokit({
    baseUrl: await world.openSibling({ DATABASE_URL: link.url }),
    auth: world.token,
    request: {
      fetch: async (...asked: Parameters<typeof fetch>) => {
        const answer = await fetch(...asked);
        statuses.push(answer.status);
        if (answer.status === 503) await link.mend();
        return answer;
      },
    },
    throttle: { enabled: false },
    // The plugin waits for seconds by default; this is its unit, in milliseconds.
    retry: { retryAfterBaseValue: 50 },
  });
  expect((await octokit.rest.issues.get({ owner, repo, issue_number: 1 })).data.number).toBe(1);
  await link.cut();
  expect((await octokit.rest.issues.get({ owner, repo, issue_number: 2 })).data.number).toBe(2);
  expect(statuses).toEqual([200, 503, 200]);
});

test("retry does not repeat what is refused for good", async () => {
  const octokit = new Octokit({
    baseUrl: world.url,
    auth: world.token,
    throttle: { enabled: false },
    retry: { retryAfterBaseValue: 1 },
  });
  const before = world.upstream.meter.read().requests;
  await expect(octokit.rest.issues.create({ owner, repo, title: "" })).rejects.toMatchObject({ status: 422 });
  expect(world.upstream.meter.read().requests - before).toBe(1);
});
