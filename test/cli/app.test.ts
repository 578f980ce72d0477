import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { hookSecret } from "../../src/config/hook-secrets.ts";
import type { App } from "../../src/simulator/world/apps.ts";
import { resolveSelections } from "../../src/sync/following/selection.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { tainOn } from "./tain-on.ts";

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pemOf = (key: typeof pair.privateKey) => String(key.export({ type: "pkcs1", format: "pem" }));
const APP = { APP_ID: "4711", APP_PRIVATE_KEY: pemOf(pair.privateKey), UPSTREAM_TOKEN: "" };
const OWN = { type: "integration", id: 4711 } as const;
const EVENTS = [
  ...["issues", "issue_comment", "label", "milestone", "public", "pull_request", "pull_request_review"],
  ...["pull_request_review_comment", "repository", "sub_issues", "issue_dependencies"],
];

/** A mirror by an App alone, installed on `octo` with `octo/demo`. */
async function openApp(): Promise<{ world: TestWorld; app: App; [Symbol.asyncDispose]: () => PromiseLike<void> }> {
  const world = await openWorld({
    ...{ env: APP, workers: false },
    fill: ({ world: upstream, apps }) => {
      const { id } = upstream.addUser({ login: "octo" });
      upstream.addRepository({ ownerId: id, name: "demo" });
      const keys = [String(pair.publicKey.export({ type: "spki", format: "pem" }))];
      apps.create({ id: 4711, slug: "mirror", keys, events: EVENTS, installations: [{ account: "octo" }] });
    },
  });
  await resolveSelections(world.ctx);
  const app = world.simulator.apps.byIssuer(4711) as App;
  return { world, app, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

/** Runs the command in a process of its own, with the App. */
const run = (world: TestWorld, args: string[], env: NodeJS.ProcessEnv = {}) => tainOn(world, args, { ...APP, ...env });
// biome-ignore-start lint/suspicious/noExplicitAny: documents are JSON.
/** As in doctor.test.ts. */
const worse = ({ json }: any): string[] =>
  json.findings.filter((one: any) => one.level !== "ok").map((one: any) => `${one.level} ${one.check}`);
const kinds = (one: any) => one.findings.map(({ kind }: { kind: string }) => kind);
// biome-ignore-end lint/suspicious/noExplicitAny: documents are JSON.

test("the App's webhook is found missing, registered, proven by a delivery that is sent again, and its secret changed", async () => {
  await using opened = await openApp();
  const { world, app } = opened;
  const missing = await run(world, ["hooks", "check", "--json"]);
  expect(missing.code).toBe(1);
  expect(missing.json.repositories).toMatchObject([{ repository: "app" }]);
  expect(kinds(missing.json.repositories[0])).toContain("missing");

  // Upstream has sent nothing yet. So the webhook is registered and unproven.
  const unproven = await run(world, ["hooks", "register", "--json"]);
  expect(unproven.json.registered).toMatchObject([{ repository: "app", ping: null, finding: { kind: "unproven" } }]);
  expect(app.hook).toMatchObject({ url: `${world.url}/webhooks`, secret: hookSecret("test-webhook-secret", OWN) });

  world.simulator.apps.suspend(world.simulator.apps.of(app)[0] as never, app.ownerId, true);
  world.simulator.apps.suspend(world.simulator.apps.of(app)[0] as never, app.ownerId, false);
  await world.simulator.quiet();
  expect(await run(world, ["hooks", "register", "app"])).toMatchObject({
    code: 0,
    stdout: "app: the App's webhook is registered, and its ping arrived\n",
  });
  expect(await run(world, ["hooks", "check"])).toMatchObject({ code: 0, stdout: "app: well\n" });
  const WEBHOOK_SECRET = "the-new-webhook-secret,test-webhook-secret";
  await world.restart({ WEBHOOK_SECRET });
  const rotated = await run(world, ["hooks", "rotate", "--json"], { WEBHOOK_SECRET });
  expect(rotated).toMatchObject({
    code: 0,
    json: { step: "finish", rotated: [{ repository: "app", ping: "arrived" }] },
  });
  expect(app.hook.secret).toBe(hookSecret("the-new-webhook-secret", OWN));

  const refused = await run(world, ["hooks", "remove", "app"]);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toMatch(/nobody remove an App's webhook by its API: switch it off on the App's page/);
});

test("what the App may not and is not told of is said in words, and so is a key that is not its own", async () => {
  await using opened = await openApp();
  const { world, app } = opened;
  await run(world, ["hooks", "register"]);
  world.simulator.apps.edit(app, { events: ["issues"], permissions: { issues: "read" } });
  const checked = await run(world, ["hooks", "check", "--json"]);
  expect(kinds(checked.json.repositories[0])).toEqual(expect.arrayContaining(["permission", "events"]));
  expect(checked.json.repositories[0].findings[0].says).toMatch(/permission to read pull requests/);

  const APP_PRIVATE_KEY = pemOf(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey);
  const strange = await run(world, ["doctor", "--json"], { APP_PRIVATE_KEY });
  expect(strange.code).toBe(1);
  expect(worse(strange)).toContain("problem app-key");
  expect(JSON.stringify(strange.json.findings)).toMatch(
    /does not accept the GitHub App 4711.*APP_ID and APP_PRIVATE_KEY/,
  );
  expect(strange.stdout + strange.stderr).not.toContain("PRIVATE KEY-----");
});

test("doctor and status tell of the App, its installations and what they lack", async () => {
  await using opened = await openApp();
  const { world, app } = opened;
  const well = await run(world, ["doctor", "--json"]);
  const said = well.json.findings.filter(({ part }: { part: string }) => part === "upstream");
  expect(said.map(({ says }: { says: string }) => says)).toEqual([
    `${world.simulator.url} knows the GitHub App mirror`,
    "The App is installed on octo (1 account)",
  ]);
  expect(JSON.stringify(well.json.findings)).toMatch(/upstream's clock|clock/i);
  const away = await run(world, ["doctor", "--json"], { DATABASE_URL: "postgres://me@127.0.0.1:1/x" });
  expect(JSON.stringify(away.json.findings)).toContain("knows the GitHub App mirror");

  const [installation] = world.simulator.apps.of(app);
  world.simulator.apps.suspend(installation as never, app.ownerId, true);
  world.advance(60_000);
  await resolveSelections(world.ctx);
  const ill = await run(world, ["doctor", "--json"]);
  expect(ill.code).toBe(1);
  expect(worse(ill)).toContain("problem app-suspended");
  expect(JSON.stringify(ill.json.findings)).toMatch(/suspended on octo: what it covers is paused/);
  const { stdout } = await run(world, ["status"]);
  expect(stdout).toMatch(/octo\/demo +paused .*installation on octo is suspended/);
  expect(stdout).toMatch(
    /The installation on octo cannot be used: octo has suspended the App's installation: an owner/,
  );
});
