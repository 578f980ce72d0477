import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { diagnose, failureFinding } from "../../src/cli/hooks/diagnosis.ts";
import { hookSecret } from "../../src/config/hook-secrets.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { Hook } from "../../src/simulator/world/records.ts";
import { HOOK_EVENTS, LATER_EVENTS } from "../../src/sync/events/followed.ts";
import { moveSubscriptions } from "../../src/sync/following/hook-subscriptions.ts";
import { removeSelection } from "../../src/sync/following/removal.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import type { HookAtUpstream } from "../../src/upstream/hooks/hooks.ts";
import { openWorld, type TestWorld, type TestWorldOptions } from "../support/world.ts";
import { tainOn, tainProcessOn } from "./tain-on.ts";

/** A world in which one repository is mirrored, as far as the commands see. */
async function openHooked(options: TestWorldOptions = {}): Promise<TestWorld> {
  const world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 2, issues: 5, pulls: 1 }),
    ...options,
  });
  await addSelections(world.ctx, [world.first]);
  await resolveSelections(world.ctx);
  return world;
}

let shared: TestWorld;
beforeAll(async () => {
  shared = await openHooked();
});
afterAll(async () => await shared?.[Symbol.asyncDispose]());

/** The same world for many tests: upstream has no hook in it, and nothing is known of earlier ones. */
async function unhooked(): Promise<TestWorld> {
  const { ctx, simulator, first } = shared;
  simulator.setFaults({});
  await simulator.quiet();
  for (const { id, repository } of hooksOf(shared)) {
    repository.rows.hooks.delete(id);
    simulator.world.hooks.delete(id);
  }
  await removeSelection(ctx, first, { purge: true });
  await addSelections(ctx, [first]);
  await resolveSelections(ctx);
  return shared;
}

const ownSecret = (hook: Hook | undefined, of = "test-webhook-secret") =>
  hookSecret(of, { type: "repository", id: hook?.repository.id ?? 0 });
const hooksOf = ({ simulator }: TestWorld) => [...simulator.world.hooks.values()];
const kinds = (findings: { kind: string }[]) => findings.map(({ kind }) => kind);

test("a hook is registered, proven by a ping, found well, listed as ours, and removed without touching another's", async () => {
  const world = await unhooked();
  const missing = await tainOn(world, ["hooks", "check", "--json"]);
  expect(missing.code).toBe(1);
  expect(kinds(missing.json.repositories[0].findings)).toEqual(["missing"]);

  const registered = await tainProcessOn(world, ["hooks", "register", "--json"]);
  expect(registered.json.registered).toMatchObject([{ repository: world.first, ping: "arrived", finding: null }]);
  expect(registered.code).toBe(0);
  await world.simulator.quiet();
  expect(await tainProcessOn(world, ["hooks", "check", world.first])).toMatchObject({
    code: 0,
    stdout: `${world.first}: well\n`,
  });

  const [hook] = hooksOf(world);
  const { repository } = hook as NonNullable<typeof hook>;
  world.simulator.world.addHook({ repository, url: "https://other.example/", events: ["push"], active: true });
  const listed = await tainProcessOn(world, ["hooks", "list", "--json"]);
  expect(listed.json.repositories[0].hooks).toMatchObject([
    { id: hook?.id, isOurs: true, isActive: true, hasSecret: true, lastResponse: { code: 202 } },
    { isOurs: false, url: "https://other.example/", events: ["push"], hasSecret: false },
  ]);
  expect(listed.stdout).not.toContain("test-webhook-secret");

  const removed = await tainProcessOn(world, ["hooks", "remove", world.first, "--json"]);
  expect(removed.json.removed).toEqual([{ repository: world.first, hookIds: [hook?.id], problem: null }]);
  expect(hooksOf(world).map(({ url }) => url)).toEqual(["https://other.example/"]);
  expect(await tainOn(world, ["hooks", "remove", world.first])).toMatchObject({
    code: 0,
    stdout: `${world.first}: there was no hook that sends to ${world.url}/webhooks\n`,
  });
});

test("a hook that was changed at upstream is reported, and registering again repairs it", async () => {
  const world = await unhooked();
  await tainOn(world, ["hooks", "register"]);
  const [hook] = hooksOf(world);
  Object.assign(hook ?? {}, { active: false, secret: null, events: ["issues", "pull_request"] });
  const { code, json } = await tainOn(world, ["hooks", "check", "--json"]);
  expect(code).toBe(1);
  expect(kinds(json.repositories[0].findings)).toEqual(["disabled", "no-secret", "events"]);
  expect(json.repositories[0].findings[2].says).toMatch(
    /^The hook does not send issue_comment, .*, label, .* and issue_dependencies$/,
  );

  expect((await tainOn(world, ["hooks", "register", world.first])).code).toBe(0);
  expect(hook).toMatchObject({ active: true, secret: ownSecret(hook) });
  expect((await tainOn(world, ["hooks", "check"])).code).toBe(0);
});

test("a server from before there were sub-issues is asked for the other events, and nothing is amiss", async () => {
  const world = await unhooked();
  const { ctx, simulator } = world;
  simulator.setFaults({ lacksEvents: [...LATER_EVENTS] });
  const registered = await tainOn(world, ["hooks", "register", "--json"]);
  expect(registered).toMatchObject({ code: 0, json: { registered: [{ ping: "arrived", finding: null }] } });
  const [hook] = hooksOf(world);
  const known = HOOK_EVENTS.filter((event) => !LATER_EVENTS.has(event));
  expect(hook?.events.toSorted()).toEqual(known.toSorted());
  const checked = await tainOn(world, ["hooks", "check", "--json"]);
  expect(checked).toMatchObject({ code: 0, json: { repositories: [{ findings: [{ level: "warning" }] }] } });
  // The hook already has every event that upstream lets it have.
  expect(await moveSubscriptions(ctx)).toBe(0);

  const repositoryId = hook?.repository.id ?? 0;
  await ctx.db.query(sql`update repository_syncs set mirrors = '{releases}' where repository_id = ${repositoryId}`);
  expect(await moveSubscriptions(ctx)).toBe(1);
  expect(hook?.events.toSorted()).toEqual([...known, "release"].toSorted());
  await simulator.quiet();

  // Once the server is upgraded, the hook is changed again.
  simulator.setFaults({});
  expect((await tainOn(world, ["hooks", "register"])).code).toBe(0);
  expect(hook?.events.toSorted()).toEqual([...HOOK_EVENTS, "release"].toSorted());
  expect(await tainOn(world, ["hooks", "check", "--json"])).toMatchObject({ code: 0 });
});

test("a server that refuses other events of ours refuses the hook, in its own words", async () => {
  const world = await unhooked();
  world.simulator.setFaults({ lacksEvents: ["milestone"] });
  const registered = await tainOn(world, ["hooks", "register", "--json"]);
  expect(registered).toMatchObject({ code: 1, json: { registered: [{ finding: { kind: "refused" } }] } });
  expect(registered.json.registered[0].finding.says).toContain('"milestone" is not a valid event');
  expect(hooksOf(world)).toEqual([]);
});

test("a secret that the receiver does not know, and an address that nobody listens at, are told apart", async () => {
  const world = await unhooked();
  const mistaken = await tainOn(world, ["hooks", "register"], { WEBHOOK_SECRET: "another-secret-word" });
  expect(mistaken.code).toBe(1);
  expect(mistaken.stdout).toMatch(/registered, but Deliveries are refused with 401: the hook's secret is none that/);
  expect(mistaken.stdout + mistaken.stderr).not.toContain("another-secret-word");
  const checked = await tainOn(world, ["hooks", "check", "--json"]);
  expect(kinds(checked.json.repositories[0].findings)).toEqual(["wrong-secret"]);

  const away = { PUBLIC_URL: "http://127.0.0.1:1" };
  const unreached = await tainOn(world, ["hooks", "register", "--json"], away);
  expect(unreached).toMatchObject({
    code: 1,
    json: { registered: [{ ping: "failed", finding: { kind: "unreachable" } }] },
  });
  const again = await tainOn(world, ["hooks", "check", "--json"], away);
  expect(kinds(again.json.repositories[0].findings)).toEqual(["unreachable"]);
});

test("an address that takes deliveries for another inbox is found out", async () => {
  const world = await unhooked();
  const stranger = createServer((_request, response) => response.writeHead(200).end("fine")).listen(0, "127.0.0.1");
  await once(stranger, "listening");
  onTestFinished(() => void stranger.close());
  const elsewhere = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
  const hook = await fetch(`${world.simulator.url}/repos/${world.first}/hooks`, {
    method: "POST",
    headers: { authorization: "token test-upstream-token", "user-agent": "test" },
    body: JSON.stringify({
      name: "web",
      events: ["*"],
      config: { url: `${elsewhere}/webhooks`, secret: "x", content_type: "json" },
    }),
  });
  expect(hook.status).toBe(201);
  await world.simulator.quiet();
  const { code, json } = await tainOn(world, ["hooks", "check", "--json"], { PUBLIC_URL: elsewhere });
  expect(code).toBe(1);
  expect(kinds(json.repositories[0].findings)).toEqual(["elsewhere"]);
});

test("a token that may not manage hooks, and an address that upstream does not take, are refusals with a way out", async () => {
  await using world = await openHooked({ simulator: { refuseLocalHooks: true } });
  world.simulator.tokens.create({ token: "ghp_mayOnlyRead", login: "a-reader" });
  const reader = { UPSTREAM_TOKEN: "ghp_mayOnlyRead" };
  const actions = ["register", "check", "list", "remove"];
  const refusals = await Promise.all(actions.map((action) => tainOn(world, ["hooks", action, world.first], reader)));
  for (const [at, { code, stdout }] of refusals.entries()) {
    expect({ action: actions[at], code }).toEqual({ action: actions[at], code: 1 });
    expect(stdout).toMatch(/the token may not manage its hooks/);
  }
  const local = await tainOn(world, ["hooks", "register"]);
  expect(local.code).toBe(1);
  expect(local.stdout).toMatch(/Upstream refuses with 422: .*isn't reachable over the public Internet/);
  expect(local.stdout).not.toContain("test-webhook-secret");
  expect(hooksOf(world)).toEqual([]);
});

test("without an address, a secret or a mirrored repository nothing is registered, and it is said what is missing", async () => {
  const world = await unhooked();
  const refusals: [string[], NodeJS.ProcessEnv, RegExp][] = [
    [
      ["register"],
      { PUBLIC_URL: "" },
      /^tain: There is no address that upstream could send deliveries to: set PUBLIC_URL/,
    ],
    [["check"], { PUBLIC_URL: "" }, /^tain: There is no address/],
    [["register"], { WEBHOOK_SECRET: "" }, /^tain: WEBHOOK_SECRET is not set, and no instance has run here/],
    [["register", "octo/unknown"], {}, /^tain: octo\/unknown is not mirrored: .* No hook was registered$/m],
    [["register"], { UPSTREAM_URL: "http://127.0.0.1:1" }, /^tain: Upstream does not answer/],
  ];
  for (const [args, env, message] of refusals) {
    const { code, stderr } = await tainOn(world, ["hooks", ...args], env);
    expect({ args, code }).toEqual({ args, code: 1 });
    expect(stderr).toMatch(message);
  }
  // `tain add` does not register a webhook either: no receiver would know its secret.
  const added = await tainOn(world, ["add", world.first, "--json"], { WEBHOOK_SECRET: "" });
  expect(added.json.added).toMatchObject([{ repository: world.first, webhook: "none" }]);
  expect(hooksOf(world)).toEqual([]);
});

test("a secret is changed in three steps, and no step loses a delivery", async () => {
  await using world = await openHooked();
  await tainOn(world, ["hooks", "register"]);
  const proposed = await tainOn(world, ["hooks", "rotate", "--json"]);
  expect(proposed).toMatchObject({
    code: 0,
    json: { step: "propose", secret: expect.stringMatching(/^[0-9a-f]{48}$/) },
  });
  expect((await tainOn(world, ["hooks", "rotate"])).stdout).not.toContain("test-webhook-secret");

  const WEBHOOK_SECRET = `${proposed.json.secret},test-webhook-secret`;
  const [hook] = hooksOf(world);
  const early = await tainOn(world, ["hooks", "rotate"], { WEBHOOK_SECRET });
  expect(early.code).toBe(1);
  expect(early.stderr).toMatch(/do not accept the new secret yet: restart them .* No hook was changed/);
  const nowhere = await tainOn(world, ["hooks", "rotate"], { WEBHOOK_SECRET, PUBLIC_URL: "http://127.0.0.1:1" });
  expect(nowhere.stderr).toMatch(/cannot be reached from here .* No hook was changed/);
  expect(hook).toMatchObject({ secret: ownSecret(hook) });

  await world.restart({ WEBHOOK_SECRET });
  const one = await tainOn(world, ["hooks", "rotate", world.first], { WEBHOOK_SECRET });
  expect(one).toMatchObject({ code: 0, stdout: expect.stringMatching(/ping arrived[\s\S]*Keep both secrets/) });
  expect(one.stdout).not.toContain("Take the old one out");
  const done = await tainOn(world, ["hooks", "rotate"], { WEBHOOK_SECRET });
  expect(done.stderr + done.stdout).not.toContain(proposed.json.secret);
  expect(done).toMatchObject({ code: 0, stdout: expect.stringMatching(/ping arrived[\s\S]*Take the old one out/) });
  expect(hook).toMatchObject({ secret: ownSecret(hook, proposed.json.secret) });
});

test("a hook whose ping with the new secret is refused has its old secret again", async () => {
  const world = await unhooked();
  await tainOn(world, ["hooks", "register"]);
  // Two receivers share one address, and only one has been restarted. Our own ping met that one.
  const WEBHOOK_SECRET = "the-new-webhook-secret,test-webhook-secret";
  let asked = 0;
  const front = createServer(async (_request, response) => {
    asked += 1;
    response.writeHead(asked === 1 ? 202 : 401).end();
  }).listen(0, "127.0.0.1");
  await once(front, "listening");
  onTestFinished(() => void front.close());
  const PUBLIC_URL = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
  const [hook] = hooksOf(world);
  Object.assign(hook ?? {}, { url: `${PUBLIC_URL}/webhooks` });
  const failed = await tainOn(world, ["hooks", "rotate", "--json"], { WEBHOOK_SECRET, PUBLIC_URL });
  expect(failed).toMatchObject({ code: 1, json: { step: "failed", rotated: [{ ping: "failed" }] } });
  expect(hook).toMatchObject({ secret: ownSecret(hook) });
});

test("a hook that was given WEBHOOK_SECRET itself goes on, and is given its own when it is registered again", async () => {
  const world = await unhooked();
  await tainOn(world, ["hooks", "register"]);
  const [hook] = hooksOf(world);
  Object.assign(hook ?? {}, { secret: "test-webhook-secret" });
  expect((await tainOn(world, ["hooks", "check"])).code).toBe(0);
  expect(await tainOn(world, ["hooks", "register", "--json"])).toMatchObject({
    code: 0,
    json: { registered: [{ ping: "arrived" }] },
  });
  expect(hook?.secret).toBe(ownSecret(hook));
});

test("a secret for a hook made by hand is that of its repository alone", async () => {
  const world = await unhooked();
  await tainOn(world, ["hooks", "register"]);
  const [hook] = hooksOf(world);
  const printed = await tainOn(world, ["hooks", "secret", world.first]);
  expect(printed).toMatchObject({ code: 0, stdout: `${hook?.secret}\n` });
  const upstream = world.simulator.world;
  const other = [...upstream.repositories.values()].find((one) => one !== hook?.repository);
  const name = other ? upstream.fullName(other) : "";
  // The mirror does not hold this repository yet.
  const others = await tainOn(world, ["hooks", "secret", name, "--json"]);
  expect(others.json).toEqual({
    target: name.toLowerCase(),
    secret: hookSecret("test-webhook-secret", { type: "repository", id: other?.id ?? 0 }),
  });
  const unknown = await tainOn(world, ["hooks", "secret", "nobody/nothing"]);
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("upstream shows no nobody/nothing") });
  expect(await tainOn(world, ["hooks", "secret"])).toMatchObject({ code: 2 });
  expect(await tainOn(world, ["hooks", "secret", "app"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("There is no App"),
  });
});

const address = "https://tain.example/webhooks";
const hook: HookAtUpstream = {
  id: 1,
  path: "/repos/o/a/hooks/1",
  url: address,
  isActive: true,
  events: ["*"],
  hasSecret: true,
  lastResponse: { code: null, status: "unused" },
};
const sent = (guid: string, statusCode: number, status = "OK") => ({
  id: "1",
  guid,
  event: "issues",
  repositoryId: null,
  statusCode,
  status,
  deliveredAt: new Date(0),
});
const examined = { fullName: "o/a", address, hook, wantedEvents: ["issues"], arrived: ["a"] };

test("the newest delivery decides; older failures are a warning, and no deliveries are no proof", () => {
  expect(diagnose({ ...examined, sent: [sent("a", 202)] })).toEqual([]);
  expect(diagnose({ ...examined, sent: null })).toEqual([]);
  expect(diagnose({ ...examined, sent: [] })).toMatchObject([{ level: "warning", kind: "unproven" }]);
  const mixed = [sent("a", 202), sent("b", 401, "Invalid HTTP Response: 401")];
  expect(diagnose({ ...examined, sent: mixed })).toMatchObject([
    { level: "warning", kind: "failing", says: expect.stringMatching(/^1 delivery of the last 2 failed/) },
  ]);
  expect(kinds(diagnose({ ...examined, sent: mixed.toReversed() }))).toEqual(["wrong-secret"]);
  expect(kinds(diagnose({ ...examined, sent: mixed, arrived: [] }))).toEqual(["elsewhere", "failing"]);
});

test.each([
  [502, "failed to connect to host", "unreachable"],
  [504, "timed out", "unreachable"],
  [0, "peer certificate cannot be authenticated with given CA certificates", "unreachable"],
  [502, "Invalid HTTP Response: 502", "failing"],
  [503, "Invalid HTTP Response: 503", "failing"],
  [500, "Invalid HTTP Response: 500", "failing"],
  [401, "Invalid HTTP Response: 401", "wrong-secret"],
  [413, "Invalid HTTP Response: 413", "refused"],
  [301, "Invalid HTTP Response: 301", "refused"],
  [404, "Invalid HTTP Response: 404", "refused"],
])("a delivery that ended as %i %s is called %s", (statusCode, status, kind) => {
  expect(failureFinding(sent("a", statusCode, status), address, "o/a").kind).toBe(kind);
});
