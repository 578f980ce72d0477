/** Collaborators, members and teams: what the mirror holds of them, and whom it shows that. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Permission } from "../../src/api/callers/permissions.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { hookSecret } from "../../src/config/hook-secrets.ts";
import {
  addTeam,
  giveTeam,
  leaveOrganization,
  renameTeam,
  setCollaborator,
} from "../../src/simulator/changes/people.ts";
import { transferRepository } from "../../src/simulator/changes/repositories.ts";
import { renameUser } from "../../src/simulator/changes/users.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Repository, Team, User } from "../../src/simulator/world/records.ts";
import { askAt, rebased } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markPeopleDue } from "../support/due.ts";
import { forge } from "../support/forging.ts";
import { passRound } from "../support/rounds.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const HOUR = 3_600_000;
const TTL_MS = 5 * 60_000;
/** Tokens of upstream's, by whose they are. `unscoped` is a member's without `read:org`. */
const TOKENS = {
  owner: "ghp_owner",
  member: "ghp_member",
  unscoped: "ghp_unscoped",
  spy: "ghp_spy",
  outsider: "ghp_outsider",
  reader: "ghp_reader",
  stranger: "ghp_stranger",
  fineGrained: "github_pat_owner",
} as const;
type Who = keyof typeof TOKENS;

let world: TestWorld;
let acme: User;
let hidden: Repository;
let open: Repository;
let core: Team;
let spies: Team;
const id = {} as Record<Who | "leaver", number>;

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "people", UPSTREAM_CALLER_TTL: "5m", PASS_THROUGH: "on" },
    fill: ({ world: filled, tokens }) => {
      for (const name of ["owner", "member", "spy", "outsider", "reader", "stranger", "leaver"] as const)
        id[name] = filled.addUser({ login: `${name}-of-all` }).id;
      acme = filled.addUser({
        login: "acme",
        type: "Organization",
        memberIds: [id.owner, id.member, id.spy, id.leaver],
        ownerIds: [id.owner],
        publicMemberIds: [id.member],
      });
      const made = (name: string, visibility: "private" | "public") =>
        filled.addRepository({ ownerId: acme.id, name, visibility });
      [hidden, open] = [made("hidden", "private"), made("open", "public")];
      for (const repository of [hidden, open]) {
        setCollaborator(filled, id.owner, repository, id.outsider, "push");
        setCollaborator(filled, id.owner, repository, id.reader, "pull");
      }
      core = addTeam(filled, { organization: acme, name: "Core Team", members: [[id.member, "maintainer"]] });
      addTeam(filled, { organization: acme, name: "Below", parentId: core.id, members: [[id.leaver, "member"]] });
      spies = addTeam(filled, {
        ...{ organization: acme, name: "Spies", privacy: "secret", members: [[id.spy, "member"]] },
      });
      giveTeam(filled, id.owner, core, hidden, "maintain");
      for (const [name, token] of Object.entries(TOKENS)) {
        const kinds = { unscoped: "member", fineGrained: "owner" };
        const login = `${kinds[name as keyof typeof kinds] ?? name}-of-all`;
        const scopes = name === "unscoped" ? ["repo"] : ["repo", "read:org"];
        // It has no permission to administer, or to read the organisation's members.
        if (name === "fineGrained")
          tokens.create({
            token,
            login,
            kind: "fine-grained",
            owner: "acme",
            repositories: "all",
            permissions: { issues: "write" },
          });
        else tokens.create({ token, login, scopes });
      }
    },
  });
  await world.mirror("acme/hidden", "acme/open");
  await world.listen("acme/hidden", "acme/open");
  await pass(60_000);
  await pass(60_000);
});
afterAll(() => world?.[Symbol.asyncDispose]());

const pass = (ms: number) => passRound(world, ms, markPeopleDue);
const get = (path: string, token: string | null = world.token) => askAt(world.url, "GET", path, { token });
const upstreams = (path: string, token: string = UPSTREAM_TOKEN) => askAt(world.simulator.url, "GET", path, { token });
const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through");
const shown = (text: string) => (text === "" ? null : rebased(text, world.simulator.url, world.url));
const tick = () => (world.simulator.world.clock as SettableClock).advance(2_000);
const own = (permissions?: readonly Permission[], more: object = {}) =>
  createApiToken(world.ctx, { userId: id.owner, canWrite: false, ...(permissions && { permissions }), ...more });

/** Expects the mirror to answer from its own rows, as upstream answers the mirror's account. */
async function expectHeld(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const [ours, theirs] = [await get(path), await upstreams(path)];
    expect([path, isPassed(ours), ours.status]).toEqual([path, false, theirs.status]);
    if (theirs.status === 200) expect(ours.body, path).toEqual(shown(theirs.text));
  }
}

const ofRepositories = () =>
  ["/repos/acme/hidden", "/repos/acme/open"].flatMap((home) => [
    `${home}/assignees`,
    `${home}/assignees?per_page=2&page=2`,
    `${home}/assignees/outsider-of-all`,
    `${home}/assignees/stranger-of-all`,
    `${home}/collaborators`,
    `${home}/collaborators?per_page=1&page=3`,
    `${home}/collaborators/reader-of-all`,
    `${home}/collaborators/stranger-of-all`,
    `${home}/collaborators/nobody-at-all`,
    ...["owner", "outsider", "reader"].map((name) => `${home}/collaborators/${name}-of-all/permission`),
    `${home}/teams`,
  ]);
const ofOrganization = () => [
  "/orgs/acme/members",
  "/orgs/acme/members?role=admin",
  "/orgs/acme/members?role=member&per_page=1",
  "/orgs/acme/members/member-of-all",
  "/orgs/acme/members/outsider-of-all",
  "/orgs/acme/public_members",
  "/orgs/acme/public_members/member-of-all",
  "/orgs/acme/public_members/spy-of-all",
  "/orgs/acme/teams",
  ...[core, spies].flatMap(({ slug, id: teamId }) => [
    `/orgs/acme/teams/${slug}`,
    `/orgs/acme/teams/${slug}/members`,
    `/organizations/${acme.id}/team/${teamId}/members?role=maintainer`,
  ]),
  `/orgs/acme/teams/${core.slug}/memberships/leaver-of-all`,
];

test("lists are copied, and answered as upstream answers the mirror's account", async () => {
  await expectHeld([...ofRepositories(), ...ofOrganization()]);
});

test("an hour without changes costs nothing", async () => {
  world.simulator.meter.reset();
  for (let hour = 0; hour < 7; hour++) await pass(HOUR + 1_000);
  const { charged, requests } = world.simulator.meter.read();
  expect(charged).toBe(0);
  expect(requests).toBeGreaterThan(20);
});

test("no caller is shown what upstream does not show them", async () => {
  const held = new Set<string>();
  for (const path of [...ofRepositories(), ...ofOrganization()])
    for (const [who, token] of Object.entries(TOKENS)) {
      const [ours, theirs] = [await get(path, token), await upstreams(path, token)];
      expect([who, path, ours.status, shown(ours.status === 200 ? ours.text : "")]).toEqual([
        ...[who, path, theirs.status, theirs.status === 200 ? shown(theirs.text) : null],
      ]);
      if (!isPassed(ours)) held.add(`${who} ${path}`);
    }
  const has = (who: Who, path: string) => held.has(`${who} ${path}`);
  // What the mirror answers itself.
  for (const path of [
    "/repos/acme/hidden/collaborators",
    "/orgs/acme/members",
    `/orgs/acme/teams/${core.slug}/members`,
  ])
    expect([path, has("owner", path), has("member", path), has("unscoped", path), has("stranger", path)]).toEqual([
      ...[path, true, true, false, false],
    ]);
  expect([has("owner", "/orgs/acme/teams"), has("member", "/orgs/acme/teams")]).toEqual([true, false]);
  expect(has("outsider", "/repos/acme/hidden/collaborators")).toBe(false);
  for (const path of ["/repos/acme/hidden/teams", "/orgs/acme/members", "/orgs/acme/teams"])
    expect([path, has("fineGrained", path)]).toEqual([path, false]);
});

test("without a token, nobody is shown more than is public", async () => {
  for (const path of ["/repos/acme/open/collaborators", "/repos/acme/open/teams", "/orgs/acme/teams"])
    expect([path, (await get(path, null)).status]).toEqual([path, 401]);
  const members = await get("/orgs/acme/members", null);
  expect(members.body.map(({ login }: { login: string }) => login)).toEqual(["member-of-all"]);
  const moved = await get("/orgs/acme/members/spy-of-all", null);
  expect([moved.status, moved.headers.get("location")]).toEqual([
    ...[302, `${world.url}/organizations/${acme.id}/public_members/spy-of-all`],
  ]);
  const people = await get("/repos/acme/open/assignees", null);
  expect([people.status, people.text.includes("spy-of-all")]).toEqual([200, false]);
});

describe("with one of Tain's tokens", () => {
  test("who only reads is no collaborator, and an ordinary member", async () => {
    const reader = await own();
    const refused = await get("/repos/acme/hidden/collaborators", reader);
    expect([refused.status, refused.body.message]).toEqual([
      ...[403, "Must have push access to view repository collaborators."],
    ]);
    const told = await get("/repos/acme/hidden/collaborators/owner-of-all/permission", reader);
    expect([told.status, told.body.message]).toEqual([403, "Must have push access to view collaborator permission."]);
    expect((await get("/repos/acme/hidden/teams", reader)).status).toBe(403);
    expect((await get("/orgs/acme/members", reader)).body).toHaveLength(4);
    const teams = await get("/orgs/acme/teams", reader);
    expect(teams.body.map(({ slug }: { slug: string }) => slug)).toEqual(["core-team", "below"]);
    expect((await get(`/orgs/acme/teams/${spies.slug}`, reader)).status).toBe(404);
    expect((await get(`/orgs/acme/teams/${spies.slug}/members`, reader)).status).toBe(404);
  });

  test("who reads some kinds, or some repositories, is no member", async () => {
    for (const token of [
      await own(["issues:read"]),
      await own(undefined, { scope: { repositoryIds: [hidden.id], ownerIds: [] } }),
    ]) {
      expect((await get("/orgs/acme/members", token)).body).toHaveLength(1);
      expect((await get("/orgs/acme/teams", token)).status).toBe(403);
      expect((await get("/repos/acme/hidden/collaborators", token)).status).toBe(403);
    }
  });
});

describe("what changes", () => {
  const logins = async (path: string, token?: string) =>
    (await get(path, token)).body.map(({ login }: { login: string }) => login);
  const HOME = "/repos/acme/hidden/collaborators";

  test("is there once a webhook has told of it, and until then upstream answers those who have its tokens", async () => {
    tick();
    setCollaborator(world.simulator.world, id.owner, hidden, id.stranger, "triage");
    await world.settle();
    const [meanwhile, older] = [await get(HOME, TOKENS.owner), await get(HOME)];
    expect([isPassed(meanwhile), meanwhile.text.includes("stranger-of-all")]).toEqual([true, true]);
    expect([older.status, older.headers.get("warning") ?? ""]).toEqual([200, expect.stringContaining("changed")]);
    await pass(60_000);
    await expectHeld(ofRepositories());
    setCollaborator(world.simulator.world, id.owner, hidden, id.stranger, null);
    await world.settle();
    await pass(60_000);
    expect(await logins(HOME)).not.toContain("stranger-of-all");
  });

  test("a member who leaves, of whom no webhook told, is gone within the hour, and from teams within six", async () => {
    leaveOrganization(world.simulator.world, acme, id.leaver);
    await pass(HOUR);
    await pass(60_000);
    await expectHeld(["/orgs/acme/members", "/orgs/acme/members/leaver-of-all", HOME]);
    for (let hours = 0; hours < 6; hours++) await pass(HOUR);
    await expectHeld(ofOrganization().filter((path) => !path.includes("memberships")));
  });

  test("an organisation's own hook tells of its teams, and a repository's cannot", async () => {
    const organization = { id: acme.id, login: "acme" };
    const told = { action: "added", scope: "team", member: {}, team: { id: core.id }, organization, sender: {} };
    const as = (holder: { type: "organization" | "repository"; id: number }) => ({
      secret: hookSecret(world.ctx.config.webhookSecrets[0] ?? "", holder),
      headers: {
        "x-github-hook-installation-target-type": holder.type,
        "x-github-hook-installation-target-id": String(holder.id),
      },
    });
    core.members.set(id.spy, "member");
    await expect(forge(world, "membership", told, as({ type: "repository", id: hidden.id }))).rejects.toThrow();
    const row = await forge(world, "membership", told, as({ type: "organization", id: acme.id }));
    expect(row?.status).toBe("applied");
    await pass(60_000);
    await expectHeld([`/orgs/acme/teams/${core.slug}/members`, HOME]);
    expect(await logins(`/orgs/acme/teams/${core.slug}/members`)).toContain("spy-of-all");
  });

  test("a team, an organisation and a person have new names", async () => {
    const { world: upstream } = world.simulator;
    renameTeam(upstream, core, "Kernel");
    renameUser(upstream, upstream.user(id.reader), "renamed-reader");
    // Somebody else takes the login at once.
    renameUser(upstream, upstream.user(id.stranger), "reader-of-all");
    await pass(HOUR);
    await pass(60_000);
    expect((await get("/orgs/acme/teams/core-team")).status).toBe(404);
    await expectHeld(["/orgs/acme/teams", `/repos/acme/hidden/teams`]);
    for (const login of ["renamed-reader", "reader-of-all"]) {
      await get(`/users/${login}`, TOKENS.member);
      await expectHeld([`${HOME}/${login}`]);
    }
    renameUser(upstream, acme, "acme-now");
    await world.catchUp();
    await pass(HOUR);
    await expectHeld(["/orgs/acme-now/members", "/repos/acme-now/hidden/collaborators"]);
    renameUser(upstream, acme, "acme");
    await world.catchUp();
    await pass(HOUR);
  });

  test("whoever loses the right to push is not shown collaborators for longer than their rights are believed", async () => {
    const { world: upstream } = world.simulator;
    const before = await get(HOME, TOKENS.member);
    expect([before.status, isPassed(before)]).toEqual([200, false]);
    leaveOrganization(upstream, acme, id.member);
    hidden.collaborators.set(id.member, "pull");
    world.advance(TTL_MS + 1_000);
    const after = await get(HOME, TOKENS.member);
    expect([after.status, isPassed(after)]).toEqual([403, true]);
    expect((await get("/orgs/acme/members", TOKENS.member)).text).not.toContain("spy-of-all");
  });
});

test("whom upstream cannot be asked about is forwarded, and asked about again only after a while", async () => {
  const { simulator } = world;
  world.advance(TTL_MS + 1_000);
  const HOME = "/repos/acme/hidden/collaborators";
  expect(isPassed(await get(HOME, TOKENS.owner))).toBe(false);
  // What upstream said before is believed while upstream is away, but not for so long.
  world.advance(11 * 60_000);
  simulator.setFaults({ graphql: { lacks: [{ type: "Organization", field: "viewerCanAdminister" }] } });
  const asked = () => simulator.meter.read().callers[TOKENS.owner]?.graphql?.requests ?? 0;
  const first = await get(HOME, TOKENS.owner);
  const before = asked();
  const second = await get(HOME, TOKENS.owner);
  expect([first.status, isPassed(first), second.status, isPassed(second)]).toEqual([200, true, 200, true]);
  expect(asked()).toBe(before);
  simulator.setFaults({});
  world.advance(60_000);
  expect(isPassed(await get(HOME, TOKENS.owner))).toBe(false);
});

test("a list that upstream refuses the mirror is left alone for an hour, and those who may see it are forwarded", async () => {
  const { simulator, ctx } = world;
  simulator.setFaults({ http: [{ match: "GET .*/collaborators", kind: "status", status: 403 }] });
  await pass(HOUR);
  simulator.meter.reset();
  for (let minutes = 0; minutes < 50; minutes += 10) await pass(10 * 60_000);
  expect(simulator.meter.read().requests).toBeLessThan(10);
  simulator.setFaults({});
  const rows = await ctx.db.query(
    sql`select from people_lists where list = 'collaborators' and refused_at is not null`,
  );
  expect(rows.length).toBeGreaterThan(0);
  const answered = await get("/repos/acme/hidden/collaborators", TOKENS.owner);
  expect([answered.status, isPassed(answered)]).toEqual([200, true]);
  await pass(HOUR);
  await expectHeld(["/repos/acme/hidden/collaborators"]);
});

test("a repository that was given to a person keeps no list of the organisation's, and has it again once it is back", async () => {
  const { world: upstream } = world.simulator;
  giveTeam(upstream, id.owner, core, open, "triage");
  await pass(60_000);
  await expectHeld(["/repos/acme/open/teams"]);
  transferRepository(upstream, id.owner, open, upstream.user(id.owner));
  await world.settle();
  await world.catchUp();
  await world.settleMarks();
  await pass(60_000);
  await pass(60_000);
  const login = upstream.user(id.owner).login;
  await expectHeld([`/repos/${login}/open/collaborators`, `/repos/${login}/open/assignees`]);
  const rows = await world.ctx.db.query(
    sql`select from people_lists where repository_id = ${open.id} and list = 'teams'`,
  );
  expect(rows).toEqual([]);
  transferRepository(upstream, id.owner, open, acme);
  await world.settle();
  await world.catchUp();
  await world.settleMarks();
  for (let round = 0; round < 2; round++) await pass(60_000);
  await expectHeld(["/repos/acme/open/teams", "/repos/acme/open/collaborators"]);
  expect((await get("/repos/acme/open/teams")).body).toHaveLength(1);
});
