import { getNamedType, isEnumType, isObjectType, isScalarType } from "graphql";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiSchema } from "../../src/api/graphql/schema.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";
import { type Fields, HELD_IN_PART, READINGS, RELATIONS, reactionGroups } from "./rest-readings.ts";

// One resource through REST and through GraphQL, field by field. A field that is added to the schema has to be added
// here.

let world: ApiWorld;
beforeAll(async () => {
  world = await openApiWorld();
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** REST's rows of each type. */
async function rows(type: string): Promise<Fields[]> {
  const all = async (path: string) => (await world.get(path)).body as Fields[];
  const found: Fields[] = [];
  for (const { fullName } of world.repositories) {
    const at = `/repos/${fullName}`;
    const each = async (from: string, into: (row: Fields) => string) => {
      for (const row of await all(`${at}/${from}`)) found.push(...[await all(`${at}/${into(row)}`)].flat());
    };
    const pulls = "pulls?state=all&per_page=25";
    if (type === "Repository") found.push(...[await all(at)].flat());
    else if (type === "Issue")
      found.push(...(await all(`${at}/issues?state=all&per_page=100`)).filter((row) => !row.pull_request));
    else if (type === "PullRequest") await each(pulls, (row) => `pulls/${row.number}`);
    else if (type === "PullRequestReview") await each(pulls, (row) => `pulls/${row.number}/reviews`);
    else if (type === "Label") found.push(...(await all(`${at}/labels?per_page=100`)));
    else if (type === "Milestone") found.push(...(await all(`${at}/milestones?state=all&per_page=100`)));
    else if (type === "IssueComment") found.push(...(await all(`${at}/issues/comments?per_page=100`)));
    else if (type === "PullRequestReviewComment") found.push(...(await all(`${at}/pulls/comments?per_page=100`)));
    else {
      // The accounts of a repository are its authors and its owner.
      const people = (await all(`${at}/issues?state=all&per_page=100`)).map((row) => row.user);
      const distinct = new Map([...people, (await world.get(at)).body.owner].map((user) => [user?.login, user]));
      for (const user of distinct.values()) {
        if (user?.type !== type || user.login === "ghost") continue;
        // Nothing that embeds an account shows these.
        const { name, company } = (await world.getUpstream(`/users/${user.login}`)).body;
        found.push({ ...user, name, company });
      }
    }
  }
  return found;
}

const schema = apiSchema();
const types = Object.values(schema.getTypeMap()).filter(
  (type) =>
    isObjectType(type) && type.getInterfaces().some((one) => one.name === "Node") && !type.name.startsWith("__"),
);

describe("the same resource through REST and GraphQL", () => {
  // The simulated world has no account of this type. What happens to issues is compared in `issue-events.test.ts`.
  const compared = types.filter(({ name }) => name !== "Mannequin" && !name.endsWith("Event"));
  test.each(compared.map((type) => [type.name, type] as const))("%s", async (name, type) => {
    if (!isObjectType(type)) throw new Error(`${name} is no object type`);
    const leaves = Object.values(type.getFields())
      .filter((field) => {
        const named = getNamedType(field.type);
        return isScalarType(named) || isEnumType(named);
      })
      .map((field) => field.name)
      .filter((field) => !HELD_IN_PART[name]?.includes(field));
    const readings = READINGS[name] ?? {};
    expect(leaves.sort()).toEqual(Object.keys(readings).sort());

    const relations = Object.entries(RELATIONS[name] ?? {});
    const selection = [...leaves, ...relations.map(([field, [selected]]) => `${field}${selected}`)].join(" ");
    const found = await rows(name);
    expect(found.length).toBeGreaterThan(0);
    for (let at = 0; at < found.length; at += 50) {
      const batch = found.slice(at, at + 50);
      const { body } = await world.send("POST", "/graphql", {
        body: JSON.stringify({
          query: `query($ids: [ID!]!) { nodes(ids: $ids) { ... on ${name} { ${selection} } } }`,
          variables: { ids: batch.map((row) => row.node_id) },
        }),
      });
      expect(body.errors).toBeUndefined();
      for (const [index, row] of batch.entries()) {
        const said = Object.fromEntries([
          ...leaves.map((field) => [field, readings[field]?.(row, world)]),
          ...relations.map(([field, [, read]]) => [field, read(row, world)]),
        ]);
        expect(body.data.nodes[index]).toEqual(said);
      }
    }
  });
});

test("what lies under a label, a milestone and a review is what REST lists there", async () => {
  const [{ fullName = "" } = {}] = world.repositories;
  const [owner, name] = fullName.split("/");
  const V = "query($owner: String!, $name: String!) { repository(owner: $owner, name: $name)";
  const ask = async (query: string) =>
    (await world.send("POST", "/graphql", { body: JSON.stringify({ query, variables: { owner, name } }) })).body;
  const lists = "issues(first: 100) { nodes { number } } pullRequests(first: 100) { nodes { number } }";
  const { data } = await ask(
    `${V} { labels(first: 50) { nodes { name ${lists} } } milestones(first: 50) { nodes { number ${lists} } } } }`,
  );
  const numbers = (node: Fields) =>
    [...node.issues.nodes, ...node.pullRequests.nodes].map((row) => row.number).sort((a, b) => a - b);
  const listed = async (filter: string) =>
    (await world.get(`/repos/${fullName}/issues?state=all&per_page=100&${filter}`)).body
      .map((row: Fields) => row.number)
      .sort((a: number, b: number) => a - b);
  let compared = 0;
  for (const label of data.repository.labels.nodes) {
    expect(numbers(label)).toEqual(await listed(`labels=${encodeURIComponent(label.name)}`));
    compared += numbers(label).length;
  }
  for (const milestone of data.repository.milestones.nodes) {
    expect(numbers(milestone)).toEqual(await listed(`milestone=${milestone.number}`));
    compared += numbers(milestone).length;
  }
  expect(compared).toBeGreaterThan(10);

  const comments = (await world.get(`/repos/${fullName}/pulls/comments?per_page=100`)).body as Fields[];
  const reviewed = Map.groupBy(comments, (comment) => comment.pull_request_review_id);
  const [[reviewId, held] = [null, []]] = [...reviewed].filter(([id]) => id !== null);
  const number = held[0]?.pull_request_url.split("/").at(-1);
  const reviews = await ask(
    `${V} { pullRequest(number: ${number}) { reviews(first: 100) { nodes { fullDatabaseId comments(first: 100) { totalCount nodes { fullDatabaseId } } } } } } }`,
  );
  const review = reviews.data.repository.pullRequest.reviews.nodes.find(
    (one: Fields) => one.fullDatabaseId === String(reviewId),
  );
  expect(review.comments).toEqual({
    totalCount: held.length,
    nodes: held.map((comment) => ({ fullDatabaseId: String(comment.id) })),
  });
});

test("resource finds what has a page, and nothing else", async () => {
  const [{ fullName = "" } = {}] = world.repositories;
  const pulls = (await world.get(`/repos/${fullName}/pulls?state=all&per_page=1`)).body;
  const issues = (await world.get(`/repos/${fullName}/issues?state=all&per_page=100`)).body;
  const issue = issues.find((row: Fields) => !row.pull_request);
  const milestone = (await world.get(`/repos/${fullName}/milestones?state=all`)).body[0];
  const repository = (await world.get(`/repos/${fullName}`)).body;
  const ask = async (url: string) =>
    (
      await world.send("POST", "/graphql", {
        body: JSON.stringify({
          query: "query($url: URI!) { resource(url: $url) { __typename ... on Node { id } } }",
          variables: { url },
        }),
      })
    ).body;
  for (const [row, type] of [
    [issue, "Issue"],
    [pulls[0], "PullRequest"],
    [milestone, "Milestone"],
    [repository, "Repository"],
    [repository.owner, repository.owner.type],
  ])
    expect(await ask(row.html_url)).toEqual({ data: { resource: { __typename: type, id: row.node_id } } });
  // The page of a pull request can be asked for as an issue's.
  expect((await ask(pulls[0].html_url.replace("/pull/", "/issues/"))).data.resource.id).toBe(pulls[0].node_id);
  for (const nowhere of [
    `${repository.html_url}/issues/999999`,
    `${repository.html_url}/issues/99999999999999`,
    `${repository.html_url}/wiki`,
    `${repository.html_url}/issues/1/2`,
    issue.html_url.replace("github.com", "example.com"),
    "https://github.com/",
    "https://github.com/%",
    "https://github.com/no-such/thing",
    "nonsense",
  ])
    expect(await ask(nowhere), nowhere).toEqual({ data: { resource: null } });
});

test("the reactions to pull requests, their latest reviews, and who may be assigned are what REST shows elsewhere", async () => {
  const [{ fullName = "" } = {}] = world.repositories;
  const [owner, name] = fullName.split("/");
  const { body } = await world.send("POST", "/graphql", {
    body: JSON.stringify({
      query: `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) {
        assignableUsers(first: 100) { totalCount nodes { login } }
        pullRequests(first: 100) { nodes { number reactionGroups { content users { totalCount } reactors { totalCount } }
          latestReviews(first: 100) { nodes { fullDatabaseId } } } } } }`,
      variables: { owner, name },
    }),
  });
  expect(body.errors).toBeUndefined();
  const { assignableUsers, pullRequests } = body.data.repository;
  const assignees = (await world.get(`/repos/${fullName}/assignees?per_page=100`)).body;
  const people = assignees.filter((user: Fields) => user.type === "User");
  expect(assignableUsers).toEqual({
    totalCount: people.length,
    nodes: people.map((user: Fields) => ({ login: user.login })),
  });
  let reviewed = 0;
  for (const { number, reactionGroups: groups, latestReviews } of pullRequests.nodes) {
    const issue = (await world.get(`/repos/${fullName}/issues/${number}`)).body;
    expect(groups).toEqual(issue.reactions ? reactionGroups(issue) : null);
    const { requested_reviewers: asked } = (await world.get(`/repos/${fullName}/pulls/${number}`)).body;
    const reviews = (await world.get(`/repos/${fullName}/pulls/${number}/reviews?per_page=100`)).body as Fields[];
    const latest = new Map(reviews.map((review) => [review.user?.id ?? review.id, review]));
    const shown = [...latest.values()].filter(({ user }) => !asked.some(({ id }: Fields) => id === user?.id));
    expect(latestReviews.nodes.map((one: Fields) => one.fullDatabaseId)).toEqual(
      shown.map(({ id }) => String(id)).sort(),
    );
    reviewed += shown.length;
  }
  expect(reviewed).toBeGreaterThan(5);
});

test("what is not known of commits and watchers is refused, and never shown as none", async () => {
  const [{ fullName = "" } = {}] = world.repositories;
  const [owner, name] = fullName.split("/");
  const ask = async (selection: string) => {
    const query = `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { ${selection} } }`;
    return (await world.send("POST", "/graphql", { body: JSON.stringify({ query, variables: { owner, name } }) })).body;
  };
  const commits = await ask("pullRequests(first: 1) { nodes { commits(first: 5) { nodes { commit { oid } } } } }");
  expect(commits.errors[0].message).toContain("ask for `commits(last: 1)`");
  expect(commits.data.repository.pullRequests.nodes[0].commits.nodes).toBeNull();
  const watchers = await ask("watchers(first: 5) { nodes { login } }");
  expect(watchers.errors[0].message).toContain("Who watches a repository is not mirrored");
});

test("the repositories that an account owns, and no others", async () => {
  const query = `query($login: String!) { repositoryOwner(login: $login) { repositories(first: 50, ownerAffiliations: OWNER) { totalCount nodes { nameWithOwner } } } }`;
  for (const { fullName } of world.repositories) {
    const [login] = fullName.split("/");
    const { body } = await world.send("POST", "/graphql", { body: JSON.stringify({ query, variables: { login } }) });
    expect(body.errors).toBeUndefined();
    const names = body.data.repositoryOwner.repositories.nodes.map((one: Fields) => one.nameWithOwner);
    expect(names).toContain(fullName);
    expect(names.every((one: string) => one.startsWith(`${login}/`))).toBe(true);
  }
});
