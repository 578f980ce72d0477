import { expect, test } from "vitest";
import { Metrics } from "../../src/operations/metrics.ts";
import { UpstreamMeter } from "../../src/upstream/client/metering.ts";
import { pathFormOf } from "../../src/upstream/protocol/paths.ts";

test.each([
  ["/repos/octo/demo/issues/12/comments?page=2", "/repos/*/*/issues/*/comments"],
  ["/repositories/5/pulls/12", "/repos/*/*/pulls/*"],
  ["/repos/octo/demo/git/trees/0f1e2d3c?recursive=1", "/repos/*/*/git/trees/*"],
  ["/repos/octo/demo/commits/feature/one/check-runs", "/repos/*/*/commits/*"],
  ["/repos/octo/demo/actions/runs/7/pending_deployments", "/repos/*/*/actions/runs/*/pending_deployments"],
  ["/app/installations/7/access_tokens", "/app/installations/*/access_tokens"],
  ["/orgs/octo/hooks/3", "/orgs/*/hooks/*"],
  ["/users/hubot", "/users/*"],
  ["/search/issues?q=secret", "/search/issues"],
  ["/graphql", "/graphql"],
])("the form of %s is %s", (path, form) => {
  expect(pathFormOf(path)).toBe(form);
});

test("callers who ask for paths without end add no series without end", async () => {
  const metrics = new Metrics();
  const meter = new UpstreamMeter(metrics);
  const word = (nth: number) => [...String(nth)].map((digit) => "abcdefghij"[Number(digit)]).join("");
  for (let nth = 0; nth < 1_000; nth++)
    meter.answered({ path: `/${word(nth)}`, bucket: "core", class: "own" }, 404, performance.now());
  const routes = [...(await metrics.text()).matchAll(/^tain_upstream_requests_total\{route="([^"]+)"/gm)];
  expect(routes).toHaveLength(201);
  expect(routes.map(([, route]) => route)).toContain("other");
});
