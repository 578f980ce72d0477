import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { User } from "../../src/simulator/world/records.ts";
import { askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";
import { GIVEN, mintTokens } from "./app-tokens.ts";

let world: ApiWorld;
let organization: User;
let repo: string;
let ahead = 0;
const clock = { now: () => new Date(Date.now() + ahead) };

beforeAll(async () => {
  const env = { ALLOWED_USERS: "Named, reader[bot]", ALLOWED_ORGANIZATIONS: "nobodys-org,the-team" };
  world = await openApiWorld({ repositories: 2, issues: 40, clock, env });
  repo = world.repositories.find((one) => !one.private)?.fullName ?? "";
  organization = world.upstream.world.addUser({ login: "The-Team", type: "Organization" });
});
afterAll(() => world?.[Symbol.asyncDispose]());
beforeEach(() => world.upstream.setFaults({}));

let made = 0;
function tokenOf(login: string, { isMember = false } = {}): string {
  made += 1;
  const { value, userId } = world.upstream.tokens.create({
    token: `ghp_of-${login}-${made}`,
    login,
    repositories: "all",
  });
  if (isMember) organization.memberIds = [...organization.memberIds, userId];
  return value;
}

const as = (token: string | null, path = `/repos/${repo}`) => askAt(world.url, "GET", path, { token });
const query = (token: string) =>
  askAt(world.url, "POST", "/graphql", { token, body: '{"query":"{ viewer { login } }"}' });

test("those who are named are let in, whatever the case of their login; members of an organization too; an App by its name", async () => {
  expect((await as(tokenOf("named"))).status).toBe(200);
  expect((await as(tokenOf("a-member", { isMember: true }))).status).toBe(200);
  expect((await as(mintTokens(world, repo, GIVEN).both)).status).toBe(200);
});

test("a stranger's token is refused by REST, GraphQL and the feed, with the reason, and upstream is asked no more for a while", async () => {
  const token = tokenOf("a-stranger");
  const refused = { message: expect.stringContaining("a-stranger may not use this mirror") };
  world.upstream.meter.reset();
  for (const answer of [
    await as(token),
    await query(token),
    await as(token, "/-/events"),
    await as(token, "/no/such/route"),
  ])
    expect([answer.status, answer.body]).toEqual([403, expect.objectContaining(refused)]);
  expect(world.upstream.meter.read().requests).toBe(2);
});

test("a person who bears an App's name is not the App", async () => {
  expect((await as(tokenOf("reader"))).status).toBe(403);
});

test("tokens of Tain's own and callers without any are not judged by it", async () => {
  expect((await as(world.token)).status).toBe(200);
  expect((await as(null)).status).toBe(200);
});

test("who leaves the organization is refused once upstream's word is old, and let in again after joining it", async () => {
  const token = tokenOf("a-guest", { isMember: true });
  expect((await as(token)).status).toBe(200);
  const { memberIds } = organization;
  organization.memberIds = [];
  ahead += 61_000;
  expect((await as(token)).status).toBe(403);
  organization.memberIds = memberIds;
  ahead += 61_000;
  expect((await as(token)).status).toBe(200);
});

test("while upstream does not answer who is a member, who is known goes on and who is not waits", async () => {
  const known = tokenOf("a-regular", { isMember: true });
  expect((await as(known)).status).toBe(200);
  world.upstream.setFaults({ http: [{ match: "/graphql", kind: "status", status: 502 }] });
  ahead += 61_000;
  expect((await as(known)).status).toBe(200);
  expect((await as(tokenOf("a-newcomer", { isMember: true }))).status).toBe(503);
});
