import { Octokit } from "octokit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openSimulated, type Simulated, TOKEN } from "./simulated.ts";

let simulated: Simulated;
beforeEach(async () => {
  simulated = await openSimulated();
});
afterEach(() => simulated[Symbol.asyncDispose]());

const query = (text: string, variables?: object) => ({ body: { query: text, variables } });

describe("over HTTP", () => {
  test.each(["/graphql", "/api/graphql"])("%s answers with the rate headers of its own bucket", async (path) => {
    const { status, headers, body } = await simulated.ask(
      "POST",
      path,
      query("{ viewer { login } rateLimit { remaining used resetAt } }"),
    );
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        data: { viewer: { login: "octo" }, rateLimit: { remaining: 4_999, used: 1, resetAt: "2026-10-01T13:00:00Z" } },
      },
    });
    expect(headers.get("x-ratelimit-resource")).toBe("graphql");
    expect(headers.get("x-ratelimit-remaining")).toBe("4999");
    expect(headers.get("etag")).toBeNull();
    const core = await simulated.get("/rate_limit");
    expect(core.body.resources).toMatchObject({ core: { used: 0 }, graphql: { used: 1 } });
  });

  test("anonymous and unknown callers: 401", async () => {
    expect(await simulated.ask("POST", "/graphql", { ...query("{ viewer { login } }"), token: null })).toMatchObject({
      status: 401,
      body: { message: "This endpoint requires you to be authenticated." },
    });
    expect(
      await simulated.ask("POST", "/graphql", { ...query("{ viewer { login } }"), token: "ghp_other" }),
    ).toMatchObject({ status: 401, body: { message: "Bad credentials" } });
  });

  test("the meter counts requests and points; a time-out set by the control interface is a 502", async () => {
    simulated.issue();
    simulated.issue();
    const all = '{ repository(owner: "octo", name: "demo") { issues(first: 50) { nodes { title } } } }';
    await simulated.ask("POST", "/graphql", query(all));
    await simulated.control("POST", "/-/faults", { graphql: { timeoutAtWork: 1 } });
    expect((await simulated.ask("POST", "/graphql", query(all))).status).toBe(502);
    await simulated.control("POST", "/-/faults", {});
    expect((await simulated.ask("POST", "/graphql", query(all))).status).toBe(200);
    expect(simulated.simulator.meter.read().callers[TOKEN]?.graphql).toMatchObject({
      requests: 3,
      points: 13,
      errors: 1,
    });
  });

  test("octokit asks, pages and reads errors", async () => {
    for (let i = 0; i < 5; i++) simulated.issue(`Issue ${i}`);
    const octokit = new Octokit({ auth: TOKEN, baseUrl: simulated.simulator.url });
    const paged = await octokit.graphql.paginate(
      'query ($cursor: String) { repository(owner: "octo", name: "demo") { issues(first: 2, after: $cursor) { nodes { title } pageInfo { hasNextPage endCursor } } } }',
    );
    expect(paged.repository.issues.nodes.map((node: { title: string }) => node.title)).toEqual([
      "Issue 0",
      "Issue 1",
      "Issue 2",
      "Issue 3",
      "Issue 4",
    ]);
    await expect(octokit.graphql('{ repository(owner: "octo", name: "none") { id } }')).rejects.toMatchObject({
      errors: [{ type: "NOT_FOUND" }],
    });
  });
});
