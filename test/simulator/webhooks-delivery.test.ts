import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { createComment } from "../../src/simulator/changes/comments.ts";
import { addedHook, settledHook } from "./hooked.ts";
import { deliveryIds, openReceiver, openSimulated, rel } from "./simulated.ts";

const HOOKS = "/repos/octo/demo/hooks";

test("a new hook is pinged; its secret signs the bytes and is never shown", async () => {
  await using it = await openSimulated();
  await using receiver = await openReceiver();
  const made = await it.ask("POST", HOOKS, {
    body: {
      name: "web",
      events: ["issues"],
      config: { url: receiver.url, content_type: "json", secret: "It's a Secret" },
    },
  });
  expect(made.status).toBe(201);
  expect(made.body).toMatchObject({
    type: "Repository",
    name: "web",
    active: true,
    events: ["issues"],
    config: { url: receiver.url, content_type: "json", insecure_ssl: "0", secret: "********" },
    last_response: { code: null, status: "unused", message: null },
  });
  await it.simulator.quiet();
  const [ping] = receiver.heard;
  expect(ping?.payload).toMatchObject({
    hook_id: made.body.id,
    hook: { type: "Repository" },
    repository: { full_name: "octo/demo" },
    sender: { login: "octo" },
  });
  expect(JSON.stringify(ping?.payload)).not.toContain("It's a Secret");
  const signature = (algorithm: string) =>
    `${algorithm}=${createHmac(algorithm, "It's a Secret")
      .update(ping?.raw ?? "")
      .digest("hex")}`;
  expect(ping?.headers).toMatchObject({
    accept: "*/*",
    "content-type": "application/json",
    "user-agent": expect.stringMatching(/^GitHub-Hookshot\/[0-9a-f]{7}$/),
    "x-github-event": "ping",
    "x-github-hook-id": String(made.body.id),
    "x-github-hook-installation-target-type": "repository",
    "x-github-hook-installation-target-id": String(it.repository.id),
    "x-hub-signature-256": signature("sha256"),
    "x-hub-signature": signature("sha1"),
  });
  expect(ping?.guid).toMatch(/^[0-9a-f-]{36}$/);
  expect((await it.get(`${HOOKS}/${made.body.id}`)).body.last_response).toMatchObject({ code: 200, status: "active" });
});

test("form content signs the encoded bytes; without a secret nothing is signed", async () => {
  await using it = await openSimulated();
  await using receiver = await openReceiver();
  await settledHook(it, { url: receiver.url, secret: "s", content_type: "form" }, ["issues"]);
  await settledHook(it, { url: `${receiver.url}/2`, content_type: "json" }, ["issues"]);
  it.issue("ünïcode & more");
  await it.simulator.quiet();
  const form = receiver.heard.find((one) => one.event === "issues" && one.raw.startsWith("payload="));
  expect(form?.payload.issue.title).toBe("ünïcode & more");
  expect(form?.headers["x-hub-signature-256"]).toBe(
    `sha256=${createHmac("sha256", "s")
      .update(form?.raw ?? "")
      .digest("hex")}`,
  );
  const open = receiver.heard.find((one) => one.event === "issues" && one.raw.startsWith("{"));
  expect(open?.headers).not.toHaveProperty("x-hub-signature-256");
  // One event goes to two hooks with one GUID.
  expect(open?.guid).toBe(form?.guid);
});

test("hooks hear only what they asked for, and nothing while inactive", async () => {
  await using it = await openSimulated();
  await using receiver = await openReceiver();
  const hook = await settledHook(it, { url: receiver.url, content_type: "json" }, ["issue_comment"]);
  createComment(it.simulator.world, it.owner.id, it.issue(), "c");
  await it.ask("PATCH", `${HOOKS}/${hook}`, { body: { add_events: ["issues"], remove_events: ["issue_comment"] } });
  createComment(it.simulator.world, it.owner.id, it.issue(), "c");
  await it.ask("PATCH", `${HOOKS}/${hook}`, { body: { active: false } });
  it.issue();
  await it.simulator.quiet();
  expect(receiver.names()).toEqual(["ping", "issue_comment.created", "issues.opened"]);
});

test("hooks are validated as the service validates them", async () => {
  await using it = await openSimulated({ refuseLocalHooks: true });
  const post = (body: unknown, token?: string) => it.ask("POST", HOOKS, { body, ...(token ? { token } : {}) });
  const config = { url: "https://hooks.example.invalid/x", content_type: "json" };
  expect((await post({ config: {} })).body.errors).toEqual([{ resource: "Hook", code: "missing_field", field: "url" }]);
  expect((await post({ config: { url: "not a url" } })).status).toBe(422);
  expect((await post({ config: { url: "http://127.0.0.1:1/" } })).body.errors[0].message).toContain(
    "isn't reachable over the public Internet",
  );
  expect((await post({ config, events: ["nonsense"] })).status).toBe(422);
  expect((await post({ config })).status).toBe(201);
  expect((await post({ config })).body.errors).toEqual([
    { resource: "Hook", code: "custom", message: "Hook already exists on this repository" },
  ]);
  await it.control("POST", "/-/tokens", { token: "eves", login: "eve" });
  expect((await post({ config }, "eves")).status).toBe(404);
  expect((await it.get(HOOKS, { token: "eves" })).status).toBe(404);
});

test("deliveries are logged, listed by cursor and status, and redelivered with the same GUID and payload", async () => {
  await using it = await openSimulated();
  await using receiver = await openReceiver();
  const hook = await settledHook(it, { url: receiver.url, content_type: "json" }, ["issues"]);
  receiver.answer.status = 500;
  const issue = it.issue("as it was");
  await it.simulator.quiet();
  receiver.answer.status = 202;
  issue.title = "as it is";
  for (let n = 0; n < 3; n++) it.issue();
  await it.simulator.quiet();

  const deliveries = `${HOOKS}/${hook}/deliveries`;
  const all = await it.get(deliveries);
  expect(all.body).toHaveLength(5);
  const ids = deliveryIds(all);
  expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? 1 : -1)));
  expect(new Set(ids.map((id) => id > BigInt(Number.MAX_SAFE_INTEGER)))).toEqual(new Set([true]));
  const failures = await it.get(`${deliveries}?status=failure`);
  expect(failures.body).toEqual([
    expect.objectContaining({
      event: "issues",
      action: "opened",
      redelivery: false,
      status_code: 500,
      repository_id: it.repository.id,
    }),
  ]);
  const page = await it.get(`${deliveries}?per_page=2`);
  expect(page.headers.get("link")).not.toContain('rel="last"');
  expect(deliveryIds(await it.get(rel(page, "next") ?? ""))[0]).toBe(ids[2]);
  expect((await it.get(`${deliveries}?cursor=nope`)).status).toBe(422);
  expect((await it.get(`${deliveries}?status=odd`)).status).toBe(422);

  const failed = failures.body[0];
  const [failedId] = deliveryIds(failures);
  const single = await it.get(`${deliveries}/${failedId}`);
  expect(single.body).toMatchObject({
    url: receiver.url,
    request: { headers: { "X-GitHub-Delivery": failed.guid }, payload: { issue: { title: "as it was" } } },
    response: { headers: { "x-seen": "yes" }, payload: "heard" },
  });
  const attempt = await it.ask("POST", `${deliveries}/${failedId}/attempts`);
  expect([attempt.status, attempt.body]).toEqual([202, {}]);
  await it.simulator.quiet();
  const again = receiver.heard.filter((one) => one.guid === failed.guid);
  expect(again).toHaveLength(2);
  expect(again[1]?.raw).toBe(again[0]?.raw);
  const after = await it.get(deliveries);
  expect(after.body[0]).toMatchObject({ guid: failed.guid, redelivery: true, status: "OK" });
  expect(deliveryIds(after)[0]).toBeGreaterThan(failedId ?? 0n);
  expect((await it.ask("POST", `${deliveries}/1/attempts`)).status).toBe(404);

  it.clock.advance(3 * 24 * 3_600_000 + 1);
  expect((await it.get(deliveries)).body).toEqual([]);
});

test("a receiver that does not answer in time, or is not there, has failed; nothing is retried", async () => {
  await using it = await openSimulated({ webhooks: { timeoutMs: 50 } });
  await using receiver = await openReceiver();
  const slow = await settledHook(it, { url: receiver.url, content_type: "json" }, ["issues"]);
  const nowhere = await settledHook(it, { url: "http://127.0.0.1:9/", content_type: "json" }, ["issues"]);
  receiver.answer.status = null;
  it.issue();
  await it.simulator.quiet();
  expect(receiver.heard.filter((one) => one.event === "issues")).toHaveLength(1);
  const last = async (hook: number) => (await it.get(`${HOOKS}/${hook}/deliveries`)).body[0];
  expect(await last(slow)).toMatchObject({ status: "timed out", event: "issues" });
  expect(await last(nowhere)).toMatchObject({ status: "failed to connect to host", event: "issues" });
});

test("deleted hooks hear nothing more; pings and tests are asked for", async () => {
  await using it = await openSimulated();
  await using receiver = await openReceiver();
  const hook = await settledHook(it, { url: receiver.url, content_type: "json" }, ["push"]);
  expect((await it.ask("POST", `${HOOKS}/${hook}/pings`)).status).toBe(204);
  expect((await it.ask("POST", `${HOOKS}/${hook}/tests`)).status).toBe(204);
  await it.simulator.quiet();
  expect(receiver.names()).toEqual(["ping", "ping", "push"]);
  const config = await it.ask("PATCH", `${HOOKS}/${hook}/config`, { body: { content_type: "form", secret: "new" } });
  expect(config.body).toMatchObject({ content_type: "form", secret: "********" });
  expect((await it.ask("DELETE", `${HOOKS}/${hook}`)).status).toBe(204);
  expect((await it.get(`${HOOKS}/${hook}`)).status).toBe(404);
});

test("dropped deliveries leave no trace, failed ones do; duplicates share their GUID", async () => {
  await using it = await openSimulated();
  await using receiver = await openReceiver();
  const hook = await addedHook(it, receiver.url);
  const deliveries = async () => (await it.get(`${HOOKS}/${hook.id}/deliveries`)).body;
  it.simulator.setFaults({ webhooks: { drop: 1 } });
  it.issue();
  await it.simulator.quiet();
  expect([receiver.heard.length, await deliveries()]).toEqual([0, []]);
  it.simulator.setFaults({ webhooks: { fail: 1 } });
  it.issue();
  await it.simulator.quiet();
  expect(receiver.heard).toHaveLength(0);
  expect(await deliveries()).toEqual([expect.objectContaining({ status: "failed to connect to host" })]);
  it.simulator.setFaults({ webhooks: { duplicate: 1 } });
  it.issue();
  await it.simulator.quiet();
  expect(receiver.heard).toHaveLength(2);
  expect(new Set(receiver.heard.map((one) => one.guid)).size).toBe(1);
  it.simulator.setFaults({ webhooks: { timeout: 1 } });
  it.issue();
  await it.simulator.quiet();
  expect(receiver.heard).toHaveLength(3);
  expect((await deliveries())[0]).toMatchObject({ status: "timed out" });
  expect((await it.control("GET", "/-/meter")).body).toMatchObject({
    webhooks: { dropped: 1, failed: 2 },
    faults: { "webhook timeout": 1 },
  });
});

test("delayed and reordered deliveries all arrive, in another order", async () => {
  await using it = await openSimulated({ webhooks: { concurrency: 1 } });
  await using receiver = await openReceiver();
  await addedHook(it, receiver.url);
  it.simulator.setFaults({ seed: 3, webhooks: { reorder: 0.4, delay: 0.3, delayMs: 30 } });
  for (let n = 0; n < 30; n++) it.issue();
  await it.simulator.quiet();
  const order = receiver.heard.map((one) => one.payload.issue.number);
  expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, n) => n + 1));
  expect(order).not.toEqual(order.toSorted((a, b) => a - b));
});
