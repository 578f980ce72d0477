import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { createComment } from "../../src/simulator/changes/comments.ts";
import { createRepository, transferRepository } from "../../src/simulator/changes/repositories.ts";
import { APP_ID, openAppWorld } from "./app-world.ts";
import { addedHook } from "./hooked.ts";
import { problemsOf, readDescription, unknownFields, webhookSchema } from "./openapi.ts";
import { deliveryIds, openReceiver } from "./simulated.ts";

const EVERYTHING = ["issues", "issue_comment", "pull_request", "repository", "label"];

async function openHookedApp(options: { url: string; events?: readonly string[] }) {
  const { url, events = EVERYTHING } = options;
  return openAppWorld({ events, webhook: { url, secret: "the App's" } });
}

test("an App's hook hears of all installed repositories, signed, with the installation", async () => {
  await using receiver = await openReceiver();
  await using it = await openHookedApp({ url: receiver.url });
  await addedHook(it, `${receiver.url}/own`);
  it.issue();
  await it.simulator.quiet();
  const [app, own] = receiver.heard.toSorted(
    (a, b) => Number("installation" in b.payload) - Number("installation" in a.payload),
  );
  expect(app?.payload.installation).toEqual({ id: it.installationId, node_id: expect.stringMatching(/^MDI/) });
  expect(own?.payload).not.toHaveProperty("installation");
  expect(app?.guid).toBe(own?.guid);
  expect(app?.headers).toMatchObject({
    "x-github-hook-installation-target-type": "integration",
    "x-github-hook-installation-target-id": String(APP_ID),
    "x-hub-signature-256": `sha256=${createHmac("sha256", "the App's")
      .update(app?.raw ?? "")
      .digest("hex")}`,
  });
  expect(own?.headers["x-github-hook-id"]).not.toBe(app?.headers["x-github-hook-id"]);
});

test("an App hears what it subscribed to and may read, where it is installed and not suspended", async () => {
  await using receiver = await openReceiver();
  await using it = await openHookedApp({ url: receiver.url, events: ["issue_comment", "pull_request"] });
  const { world } = it.simulator;
  const path = `/-/installations/${it.installationId}`;
  const comment = () => createComment(world, it.owner.id, it.issue(), "c");
  comment();
  const eve = world.addUser({ login: "eve" });
  it.simulator.world.addRepository({ ownerId: eve.id, name: "elsewhere" });
  await it.control("POST", "/-/mutate", { op: "createIssue", repository: "eve/elsewhere", by: "eve", title: "t" });
  await it.control("PATCH", path, { suspended: true });
  comment();
  await it.control("PATCH", path, { suspended: false });
  // Upstream sends no events that are not granted, and grants no permissions that are not accepted.
  await it.control("PATCH", path, { accept: { permissions: { pull_requests: "read" }, events: ["issue_comment"] } });
  comment();
  await it.control("PATCH", path, { accept: true });
  await it.control("PATCH", `/-/apps/${APP_ID}`, { events: ["issues", "issue_comment"] });
  it.issue();
  await it.control("PATCH", path, { accept: true });
  it.issue();
  await it.simulator.quiet();
  expect(receiver.names().toSorted()).toEqual([
    "installation.new_permissions_accepted",
    "installation.new_permissions_accepted",
    "installation.new_permissions_accepted",
    "installation.suspend",
    "installation.unsuspend",
    "issue_comment.created",
    "issues.opened",
  ]);
});

test("what happens to an installation is told without being subscribed to, in the described shapes", async () => {
  const description = readDescription();
  await using receiver = await openReceiver();
  await using it = await openHookedApp({ url: receiver.url, events: [] });
  const { world } = it.simulator;
  world.addUser({ login: "acme", type: "Organization" });
  const path = `/-/installations/${it.installationId}`;
  await it.control("PATCH", path, { repositories: ["octo/demo"] });
  await it.control("PATCH", path, { add: ["octo/secret"], remove: ["octo/demo"], by: "octo" });
  await it.control("PATCH", path, { suspended: true });
  await it.control("PATCH", path, { suspended: false });
  await it.control("PATCH", path, { accept: true });
  await it.control("POST", "/-/installations", { app: APP_ID, account: "acme" });
  await it.control("DELETE", path);
  await it.simulator.quiet();
  const wrong = receiver.heard.flatMap(({ event, payload }) => {
    const name = `${event}-${payload.action}`.replaceAll("_", "-");
    const schema = webhookSchema(description, name);
    return [...problemsOf(description, schema, payload), ...unknownFields(description, schema, payload)].map(
      (problem) => `${name} ${problem}`,
    );
  });
  expect(wrong).toEqual([]);
  expect(receiver.names().toSorted()).toEqual([
    "installation.created",
    "installation.deleted",
    "installation.new_permissions_accepted",
    "installation.suspend",
    "installation.unsuspend",
    "installation_repositories.added",
    "installation_repositories.removed",
    "installation_repositories.removed",
  ]);
  const deleted = receiver.heard.find(({ payload }) => payload.action === "deleted")?.payload;
  expect(deleted.repositories).toEqual([expect.objectContaining({ full_name: "octo/secret", private: true })]);
});

test("new repositories join an installation of all; a transferred one leaves and joins", async () => {
  await using receiver = await openReceiver();
  await using it = await openHookedApp({ url: receiver.url, events: ["repository"] });
  const { world } = it.simulator;
  const acme = world.addUser({ login: "acme", type: "Organization" });
  const made = createRepository(world, it.owner.id, { ownerId: it.owner.id, name: "new" });
  await it.simulator.quiet();
  const joined = receiver.heard.find((one) => one.event === "installation_repositories");
  expect(joined?.payload).toMatchObject({
    action: "added",
    repository_selection: "all",
    repositories_added: [{ full_name: "octo/new" }],
    repositories_removed: [],
  });
  expect((await it.get(`/repositories/${made.id}`, { token: await it.token() })).status).toBe(200);
  transferRepository(world, it.owner.id, made, acme);
  await it.simulator.quiet();
  expect(receiver.names().toSorted()).toEqual([
    "installation_repositories.added",
    "installation_repositories.removed",
    "repository.created",
  ]);
  const chosen = (await it.control("POST", "/-/installations", { app: APP_ID, account: "acme", repositories: [] }))
    .body;
  const other = createRepository(world, acme.id, { ownerId: acme.id, name: "other" });
  expect(it.simulator.apps.repositoriesOf(it.simulator.apps.installations.get(chosen.id) as never)).toEqual([]);
  transferRepository(world, acme.id, other, it.owner);
  await it.simulator.quiet();
  expect(receiver.names().filter((name) => name === "repository.transferred")).toHaveLength(1);
});

test("the App sees its deliveries, changes its hook's address and asks for another attempt, all by JWT", async () => {
  await using receiver = await openReceiver();
  await using it = await openHookedApp({ url: "http://127.0.0.1:9/" });
  it.issue();
  await it.simulator.quiet();
  const list = await it.app("GET", "/app/hook/deliveries?status=failure");
  expect(list.body).toEqual([
    expect.objectContaining({
      event: "issues",
      installation_id: it.installationId,
      repository_id: it.repository.id,
      status: "failed to connect to host",
    }),
  ]);
  const config = await it.app("PATCH", "/app/hook/config", { url: receiver.url, secret: "new" });
  expect(config.body).toEqual({ content_type: "json", insecure_ssl: "0", secret: "********", url: receiver.url });
  const delivery = `/app/hook/deliveries/${deliveryIds(list)[0]}`;
  expect((await it.app("GET", delivery)).body.request.payload.installation.id).toBe(it.installationId);
  expect((await it.app("POST", `${delivery}/attempts`)).status).toBe(202);
  await it.simulator.quiet();
  const [again] = receiver.heard;
  expect(again?.guid).toBe(list.body[0].guid);
  expect(again?.headers["x-hub-signature-256"]).toBe(
    `sha256=${createHmac("sha256", "new")
      .update(again?.raw ?? "")
      .digest("hex")}`,
  );
  expect((await it.app("GET", "/app/hook/deliveries?per_page=1")).body[0]).toMatchObject({
    redelivery: true,
    status: "OK",
  });
  expect((await it.app("POST", "/app/hook/deliveries/1/attempts")).status).toBe(404);
});

test("an App made while the simulator runs is told its key once and its hook is pinged; a hook's end is told to it", async () => {
  const description = readDescription();
  await using receiver = await openReceiver();
  await using it = await openAppWorld();
  const made = await it.control("POST", "/-/apps", {
    slug: "second",
    webhook: { url: receiver.url },
    installations: [{ account: "octo", repositories: ["octo/demo"] }],
  });
  expect(made.body).toMatchObject({ slug: "second", installations: [{ repositories: ["octo/demo"] }] });
  expect(made.body.privateKey).toMatch(/^-----BEGIN RSA PRIVATE KEY-----/);
  expect((await it.control("GET", "/-/apps")).text).not.toContain("PRIVATE KEY");
  const hook = await addedHook(it, `${receiver.url}/meta`);
  await it.ask("DELETE", `/repos/octo/demo/hooks/${hook.id}`);
  await it.simulator.quiet();
  expect(receiver.names()).toEqual(["ping", "meta.deleted"]);
  expect(receiver.heard[0]?.payload.hook).toMatchObject({ type: "App", app_id: made.body.id });
  const schema = webhookSchema(description, "meta-deleted");
  const meta = receiver.heard[1]?.payload;
  expect([...problemsOf(description, schema, meta), ...unknownFields(description, schema, meta)]).toEqual([]);
});

test("the control says what it cannot do with an App or an installation", async () => {
  await using it = await openAppWorld();
  const said = async (method: string, path: string, body?: unknown) =>
    (await it.control(method, path, body)).body.message;
  expect(await said("POST", "/-/apps", { slug: "No Slug" })).toContain("needs a slug");
  expect(await said("POST", "/-/apps", { slug: "s", keys: ["nonsense"] })).toContain("RSA key in PEM");
  expect(await said("POST", "/-/installations", { app: 1, account: "octo" })).toBe("There is no App 1");
  expect(await said("POST", "/-/installations", { app: APP_ID, account: "octo" })).toContain(
    "installed on octo already",
  );
  const path = `/-/installations/${it.installationId}`;
  it.simulator.world.addRepository({ ownerId: it.simulator.world.addUser({ login: "eve" }).id, name: "hers" });
  expect(await said("PATCH", path, { repositories: ["eve/hers"] })).toContain("does not belong to octo");
  expect(await said("PATCH", path, { suspend: true })).toContain("not suspend");
  expect(await said("PATCH", "/-/installations/1", { suspended: true })).toBe("There is no installation 1");
});
