/** Whoever knows the secret of one hook tells of what that hook's owner has, and of nothing else. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { type HookHolder, hookSecret } from "../../src/config/hook-secrets.ts";
import { MIRROR_PARTS } from "../../src/config/parts.ts";
import { createTarget } from "../../src/events/target.ts";
import { renameRepository } from "../../src/simulator/changes/repositories.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { refusalOfSigner } from "../../src/sync/deliveries/signer.ts";
import { openTargetServer, type TargetServer } from "../events/target-server.ts";
import { forge } from "../support/forging.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

type Fields = Record<string, unknown>;

let world: TestWorld;
let own: Repository;
let foreign: Repository;
/** Hears of everything that the foreign repository's owner has. */
let target: TargetServer;
beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 21, repositories: 2, issues: 8, pulls: 3 }),
    env: { MIRROR: MIRROR_PARTS.join(), RATE_LIMIT_ANONYMOUS: "0", TARGETS_ALLOWED: "127.0.0.1" },
  });
  const upstream = world.simulator.world;
  const [first, second] = [...upstream.repositories.values()].filter((one) => !one.fork);
  if (!first || !second) throw new Error("The generated world has no two repositories");
  [own, foreign] = [first, second];
  await world.mirror(upstream.fullName(own), upstream.fullName(foreign));
  await world.settleMarks();
  // Upstream would let one owner have both, and then the owner's targets may hear of both.
  await world.ctx.db.query(sql`update repositories set owner_id = 900001 where id = ${foreign.id}`);
  target = await openTargetServer();
  const given = {
    url: target.url,
    contentType: "json",
    insecureSsl: false,
    secret: "x",
    events: ["*"],
    active: true,
  } as const;
  for (const scope of [
    { kind: "organization", id: 900_001 },
    { kind: "repository", id: foreign.id },
  ] as const)
    await createTarget(world.ctx, { ...given, scope, madeBy: "operator", rewriteTo: null });
});
afterAll(async () => {
  await target?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

/** How a holder of this secret sends. */
const as = (holder: HookHolder) => ({
  secret: hookSecret(world.ctx.config.webhookSecrets[0] ?? "", holder),
  headers: {
    "x-github-hook-installation-target-type": holder.type,
    "x-github-hook-installation-target-id": String(holder.id),
  },
});
const asOwn = () => as({ type: "repository", id: own.id });
const nameOf = (repository: Repository) => world.simulator.world.fullName(repository);
const shown = async (repository: Repository) => (await world.get(`/repositories/${repository.id}`)).body as Fields;
const sender = { id: 1, login: "mallory" };

describe("with the secret of a repository's hook", () => {
  test("its holder takes no other repository's name, and redirects nobody from it", async () => {
    const [before, of] = [await shown(foreign), await shown(own)];
    const claimed = {
      ...of,
      name: before.name,
      full_name: before.full_name,
      owner: before.owner,
      node_id: before.node_id,
      updated_at: "2099-01-01T00:00:00Z",
    };
    for (const action of ["renamed", "transferred", "edited"])
      await forge(world, "repository", { action, changes: {}, repository: claimed, sender }, asOwn());
    expect((await world.get(`/repos/${nameOf(foreign)}`)).body).toMatchObject({ id: foreign.id });
    await forge(
      world,
      "repository",
      { action: "renamed", changes: {}, repository: { ...of, full_name: "taken/secret" }, sender },
      asOwn(),
    );
    for (const name of ["taken/secret", nameOf(foreign), nameOf(own)]) {
      const { status } = await fetch(`${world.url}/repos/${name}`, {
        headers: { "user-agent": "test" },
        redirect: "manual",
      });
      expect(status, name).toBe(name === "taken/secret" ? 404 : 200);
    }
    await world.settleMarks();
    const after = await shown(own);
    for (const key of ["name", "full_name", "owner", "node_id"]) expect(after[key], key).toEqual(of[key]);
    expect(await shown(foreign)).toEqual(before);
  });

  test("a rename that upstream confirms is shown once it was read", async () => {
    const before = nameOf(own);
    const of = await shown(own);
    renameRepository(world.simulator.world, own.ownerId, own, "renamed-now");
    const claimed = { ...of, name: "another", full_name: "somebody/another" };
    await forge(world, "repository", { action: "renamed", changes: {}, repository: claimed, sender }, asOwn());
    expect((await world.get(`/repos/${before}`)).body).toMatchObject({ id: own.id });
    await world.settleMarks();
    expect((await world.get(`/repos/${nameOf(own)}`)).body).toMatchObject({ id: own.id, name: "renamed-now" });
  });

  test("its events reach no target of another owner, whomever they name", async () => {
    const of = await shown(own);
    const owner = { id: 900_001, login: "victim", type: "Organization" };
    await forge(
      world,
      "star",
      { action: "created", repository: { ...of, owner }, organization: owner, sender },
      asOwn(),
    );
    await forge(world, "deployment", { action: "created", repository: { ...of, owner }, sender }, asOwn());
    await forge(world, "repository", { action: "edited", changes: {}, repository: { ...of, owner }, sender }, asOwn());
    const [row] = await world.ctx.db.query<{ owners: number[] }>(
      sql`select array_agg(distinct owner_id::float8) as owners from events`,
    );
    expect(row?.owners).toEqual([own.ownerId]);
    expect(target.heard).toEqual([]);
  });

  test("an issue that has another issue's number or id does not take its place", async () => {
    const [issue] = (await world.get(`/repos/${nameOf(own)}/issues?state=all`)).body as Fields[];
    const changed = { ...issue, id: 424_242, title: "another issue", updated_at: "2099-01-01T00:00:00Z" };
    await forge(
      world,
      "issues",
      { action: "edited", changes: {}, issue: changed, repository: await shown(own), sender },
      asOwn(),
    );
    expect((await world.get(`/repos/${nameOf(own)}/issues/${issue?.number}`)).body).toMatchObject({
      id: issue?.id,
      title: issue?.title,
    });
  });

  test("a pull request that goes to another repository is refused", async () => {
    const [pull] = (await world.get(`/repos/${nameOf(own)}/pulls?state=all`)).body as (Fields & { base: Fields })[];
    const base = { ...pull?.base, repo: await shown(foreign) };
    const payload = {
      action: "edited",
      number: pull?.number,
      pull_request: { ...pull, base },
      repository: await shown(own),
      sender,
    };
    expect(await forge(world, "pull_request", payload, asOwn())).toMatchObject({
      status: "failed",
      reason: expect.stringContaining(`of the repository ${foreign.id}`),
    });
  });
});

describe("with the secret of an organisation's hook", () => {
  const organization = { id: 900_002, login: "attacker" };
  test("its holder tells nothing of a repository that upstream shows as another's", async () => {
    const before = await shown(foreign);
    const repository = { ...before, description: "forged", owner: organization, updated_at: "2099-01-01T00:00:00Z" };
    for (const event of ["repository", "star"])
      expect(
        await forge(
          world,
          event,
          { action: event === "star" ? "created" : "edited", changes: {}, repository, organization, sender },
          as({ type: "organization", id: organization.id }),
        ),
      ).toMatchObject({ status: "ignored", reason: expect.stringContaining("organisation that signed it") });
    expect(await shown(foreign)).toEqual(before);
    expect(target.heard).toEqual([]);
  });
});

test("what fits no column in what a delivery names is refused by name, or stands as a text of Postgres", async () => {
  const repository = await shown(own);
  const sha = "a".repeat(40);
  const push = { ref: "refs/heads/a\0b\ud800", before: sha, after: "b".repeat(40), repository, sender, commits: [] };
  expect(await forge(world, "push", push, asOwn())).toMatchObject({ status: "applied" });
  for (const event of ["create", "delete"])
    expect(await forge(world, event, { ref: "a\0b", ref_type: "branch", repository, sender }, asOwn())).toMatchObject({
      status: "applied",
    });
  const suite = { id: 7, head_sha: "a\0b", status: "completed", conclusion: "success", pull_requests: [] };
  expect(
    await forge(world, "check_suite", { action: "completed", check_suite: suite, repository, sender }, asOwn()),
  ).toEqual({ status: "applied", reason: null });
  const resolved = { action: "resolved", pull_request: { number: 2 ** 31 }, thread: {}, repository, sender };
  expect(await forge(world, "pull_request_review_thread", resolved, asOwn())).toMatchObject({
    reason: expect.stringContaining("no whole number up to 2147483647"),
  });
});

test("with an App's secret, an event of installations that names a repository counts as little as any other", () => {
  const signer: HookHolder = { type: "integration", id: 77 };
  const known = { owners: new Map(), covered: new Map([[own.id, 1]]), accounts: new Map() };
  const refusal = (repositoryId: number | null) =>
    refusalOfSigner(
      { appId: "77" },
      {
        taken: {
          id: "1",
          event: "installation",
          payload: null,
          repositoryId,
          signer,
          receivedAt: new Date(),
          traceparent: null,
        },
        payload: { action: "deleted", installation: { id: 1 } },
        repository: null,
      },
      known,
    );
  expect([refusal(null), refusal(own.id)]).toEqual([null, null]);
  expect(refusal(foreign.id)).toBe("the GitHub App is not installed on its repository");
});

test("with an App's secret, its holder tells nothing of what the App is not installed on", async () => {
  const before = await shown(foreign);
  const payload = {
    action: "edited",
    changes: {},
    repository: { ...before, description: "forged" },
    installation: { id: 1 },
    sender,
  };
  expect(await forge(world, "repository", payload, as({ type: "integration", id: 77 }))).toMatchObject({
    status: "ignored",
  });
  expect(await shown(foreign)).toEqual(before);
  expect(target.heard).toEqual([]);
});
