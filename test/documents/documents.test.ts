/** What public clients send, through Tain and to upstream itself, whose schema is the service's whole one. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { printFigures } from "../support/figures.ts";
import { store } from "../support/mirrored.ts";
import { clientDocuments } from "./all.ts";
import type { At, ClientDocument } from "./document.ts";
import { SERVICE_SCHEMA } from "./service-schema.ts";

const PERSON = "ghp_of-a-person";
let world: ApiWorld;
let at: At;
const sides = { mirror: 0, upstream: 0 };

beforeAll(async () => {
  world = await openApiWorld({ issues: 40, repositories: 2, mergeableDelayMs: 0, wholeSchema: SERVICE_SCHEMA });
  world.upstream.tokens.create({ token: PERSON, login: "person", repositories: "all" });
  const { world: upstream } = world.upstream;
  const found = world.repositories.find((one) => !one.private);
  const repository = found && upstream.repositories.get(found.id);
  const all = [...upstream.issues.values()].filter((one) => one.repository === repository && one.state === "open");
  const [issue, pull] = [all.find((one) => !one.pull), all.find((one) => one.pull)];
  if (!repository || !issue || !pull?.pull) throw new Error("The generated world lacks an open issue or pull request");
  const [owner = "", name = ""] = upstream.fullName(repository).split("/");
  // The mirror has heard whether they can be merged.
  const home = { id: repository.id, fullName: upstream.fullName(repository), htmlUrl: null };
  for (const { number } of all.filter((one) => one.pull)) {
    await world.getUpstream(`/repositories/${home.id}/pulls/${number}`);
    const shown = await world.getUpstream(`/repositories/${home.id}/pulls/${number}`);
    await store(world.ctx, world.upstream, "pull_request", shown.body, {
      ...home,
      htmlUrl: shown.body.base.repo.html_url,
    });
  }
  const ids = `{ repository(owner: "${owner}", name: "${name}") { id issue(number: ${issue.number}) { id } pullRequest(number: ${pull.number}) { id } labels(first: 1) { nodes { name } } } }`;
  const { body } = await askAt(world.upstream.url, "POST", "/graphql", {
    token: PERSON,
    body: JSON.stringify({ query: ids }),
  });
  const { id: repositoryId, issue: i, pullRequest: p, labels } = body.data.repository;
  const numbers = { issue: issue.number, pull: pull.number, issueId: i.id, pullId: p.id };
  at = { owner, name, ...numbers, repositoryId, label: labels.nodes[0].name, login: "person", oid: pull.pull.head.sha };
});
afterAll(async () => {
  printFigures("documents", sides);
  await world?.[Symbol.asyncDispose]();
});

const ask = (base: string, { query, variables }: ClientDocument) =>
  askAt(base, "POST", "/graphql", {
    token: PERSON,
    body: JSON.stringify({
      query: query.replace("OWNER", at.owner).replace("NAME", at.name),
      variables: variables?.(at) ?? {},
    }),
  });

/** Cursors are opaque, and what is left of a quota is each side's own. */
function comparable({ body }: Answered): unknown {
  const own = /^(cursor|startCursor|endCursor|rateLimit)$/;
  return JSON.parse(JSON.stringify(body, (key, value) => (own.test(key) && value !== null ? "its own" : value)));
}

const sideOf = ({ headers }: Answered) => (headers.get("x-tain-passed-through") ? "upstream" : "mirror");

test("there are sixty-eight", () => {
  expect(new Set(clientDocuments.map(({ name }) => name)).size).toBe(68);
});

const isMutation = ({ query }: ClientDocument) => query.startsWith("mutation");

describe.each(clientDocuments.filter((one) => !isMutation(one)))("$name", (document) => {
  test("is answered as upstream answers it, field by field", async () => {
    const theirs = await ask(world.upstream.url, document);
    expect(theirs.body.errors).toBeUndefined();
    const ours = await ask(world.url, document);
    sides[sideOf(ours)] += 1;
    expect(ours.body.errors).toBeUndefined();
    expect(comparable(ours)).toEqual(comparable(theirs));
  });
});

test.each(clientDocuments.filter(isMutation).map((one) => [one.name, one] as const))(
  "%s is done once",
  async (_name, document) => {
    world.upstream.meter.reset();
    const ours = await ask(world.url, document);
    expect(ours.body.errors).toBeUndefined();
    const payload = Object.values(ours.body.data)[0];
    expect(payload).toEqual(expect.any(Object));
    sides[sideOf(ours)] += 1;
  },
);

test("a review is here once its mutation is answered, though the answer shows nothing of it", async () => {
  const path = `/repos/${at.owner}/${at.name}/pulls/${at.pull}/reviews`;
  const body = JSON.stringify({ event: "COMMENT", body: "well done" });
  // The simulator has no mutation that makes one.
  const made = await askAt(world.upstream.url, "POST", path, { token: PERSON, body });
  const query =
    "mutation($input: AddPullRequestReviewInput!) { addPullRequestReview(input: $input) { clientMutationId } }";
  await ask(world.url, { name: "", query, variables: ({ pullId }) => ({ input: { pullRequestId: pullId } }) });
  const shown = await askAt(world.url, "GET", path, { token: PERSON });
  expect(shown.body.map(({ id }: { id: number }) => id)).toContain(made.body.id);
});

test("eighteen are answered here, the others by upstream", () => {
  expect(sides).toEqual({ mirror: 18, upstream: 50 });
});
