import { expect, test } from "vitest";
import { formOf } from "../../src/upstream/client/metering.ts";

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
  expect(formOf(path)).toBe(form);
});
