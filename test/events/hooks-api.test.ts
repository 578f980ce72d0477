import { verify } from "@octokit/webhooks-methods";
import { Octokit } from "octokit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { registerHook } from "../../src/cli/hooks/repository-hooks.ts";
import { changeTarget, createTarget, findTarget, listTargets, removeTarget } from "../../src/events/target.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { answerSchema, problemsOf, readDescription, unknownFields } from "../simulator/openapi.ts";
import { askAt } from "../support/asking.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { openTargetServer, type TargetServer } from "./target-server.ts";
import { type ToldRepository, tell } from "./tell.ts";

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

let world: TestWorld;
let server: TargetServer;
let octokit: Octokit;
let owner: string;
let repo: string;
let path: string;
let repository: ToldRepository;

const ADMIN = "ghp_admin";
const READER = "ghp_reader";

beforeAll(async () => {
  world = await openWorld({
    fill: (simulator) => {
      generateWorld(simulator.world, { seed: 7, repositories: 1, issues: 3, pulls: 0 });
      simulator.tokens.create({ token: ADMIN, login: "an-admin", repositories: "all" });
      simulator.tokens.create({ token: READER, login: "a-reader", repositories: "all", write: false });
    },
    env: { TARGETS_ALLOWED: "127.0.0.1", AUTH_MODE: "both" },
  });
  await world.mirror(world.first);
  [owner = "", repo = ""] = world.first.split("/");
  path = `/repos/${world.first}/hooks`;
  repository = (await world.get(`/repos/${world.first}`)).body as ToldRepository;
  server = await openTargetServer();
  octokit = new Octokit({ auth: ADMIN, baseUrl: world.url, retry: { enabled: false }, throttle: { enabled: false } });
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

const ask = (method: string, at: string, body?: object, token: string | null = ADMIN) =>
  askAt(world.url, method, at, { token, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });

function linkOf({ headers }: { headers: Headers }, rel: string): URL | null {
  return URL.parse(new RegExp(`<([^>]+)>; rel="${rel}"`).exec(headers.get("link") ?? "")?.[1] ?? "");
}

test("a hook lives through octokit: made and pinged, listed, delivered to, changed, sent again, removed", async () => {
  const secret = "of the hook alone";
  const config = { url: server.url, content_type: "json", secret };
  const made = await octokit.rest.repos.createWebhook({ owner, repo, events: ["star"], config });
  const { id: hook_id } = made.data;
  const url = `${world.url}${path}/${hook_id}`;
  expect(made).toMatchObject({ status: 201, headers: { location: url, etag: expect.any(String) } });
  const shown = { content_type: "json", insecure_ssl: "0", secret: "********", url: server.url };
  expect(made.data).toEqual({
    ...{ type: "Repository", id: hook_id, name: "web", active: true, events: ["star"], config: shown },
    ...{ updated_at: expect.stringMatching(/^[\d-]+T[\d:]+Z$/), created_at: expect.stringMatching(/^[\d-]+T[\d:]+Z$/) },
    ...{ url, test_url: `${url}/test`, ping_url: `${url}/pings`, deliveries_url: `${url}/deliveries` },
    last_response: { code: null, status: "unused", message: null },
  });

  await until("the ping arrives", async () => server.pings.length === 1);
  const [ping] = server.pings;
  expect(ping?.payload).toMatchObject({ hook_id, hook: { id: hook_id }, repository: { id: repository.id } });
  expect(ping?.payload.sender).toMatchObject({ login: "an-admin" });
  expect(ping?.body).not.toContain(secret);
  await expect(verify(secret, ping?.body ?? "", String(ping?.headers["x-hub-signature-256"]))).resolves.toBe(true);

  const guid = await tell(world, { event: "star", payload: { action: "created", repository } });
  await server.hears(1);
  await tell(world, { event: "watch", payload: { action: "started", repository } });
  const sent = () => octokit.rest.repos.listWebhookDeliveries({ owner, repo, hook_id });
  await until("both are noted", async () => (await sent()).data.length === 2);
  const [star, first] = (await sent()).data;
  expect(first).toMatchObject({ event: "ping", status: "OK", status_code: 200, redelivery: false });
  expect(star).toMatchObject({ guid, event: "star", action: "created", repository_id: repository.id, url: "" });
  const delivery_id = star?.id ?? 0;
  const whole = await octokit.rest.repos.getWebhookDelivery({ owner, repo, hook_id, delivery_id });
  expect(whole.data).toMatchObject({
    ...{ url: server.url, request: { payload: { action: "created", repository: { id: repository.id } } } },
    response: { payload: null, headers: expect.any(Object) },
  });

  expect((await octokit.rest.repos.redeliverWebhookDelivery({ owner, repo, hook_id, delivery_id })).status).toBe(202);
  await server.hears(2);
  expect(server.heard.map((heard) => heard.guid)).toEqual([guid, guid]);
  await until("it is noted", async () => (await sent()).data.length === 3);
  expect((await sent()).data[0]).toMatchObject({ guid, redelivery: true });
  const paged = await ask("GET", `${path}/${hook_id}/deliveries?per_page=2`);
  const next = linkOf(paged, "next");
  expect(next?.searchParams.get("cursor")).toBe(`v1_${delivery_id}`);
  const rest = await ask("GET", `${next?.pathname}${next?.search}`);
  expect(rest.body.map(({ event }: Body) => event)).toEqual(["ping"]);
  expect(linkOf(rest, "prev")?.search).toBe("?per_page=2");
  const last = await ask("GET", `${path}/${hook_id}/deliveries?per_page=1&cursor=v1_${delivery_id}`);
  expect(linkOf(last, "next")).toBeNull();
  const middle = await ask("GET", `${path}/${hook_id}/deliveries${linkOf(last, "prev")?.search}`);
  expect(middle.body.map(({ id }: Body) => id)).toEqual([delivery_id]);
  const newest = await ask("GET", `${path}/${hook_id}/deliveries${linkOf(middle, "prev")?.search}`);
  expect(newest.body).toMatchObject([{ redelivery: true }]);
  expect(linkOf(newest, "prev")).toBeNull();

  const { data: patched } = await octokit.rest.repos.updateWebhook({ owner, repo, hook_id, add_events: ["watch"] });
  expect(patched).toMatchObject({ events: ["star", "watch"], config: { secret: "********" } });
  expect(patched.last_response).toEqual({ code: 200, status: "active", message: "OK" });
  // GitHub docs: a config without the secret removes it; that of /config keeps what it does not name.
  await octokit.rest.repos.updateWebhookConfigForRepo({ owner, repo, hook_id, content_type: "form" });
  const kept = await octokit.rest.repos.getWebhookConfigForRepo({ owner, repo, hook_id });
  expect(kept.data).toEqual({ ...shown, content_type: "form" });
  const dropped = await octokit.rest.repos.updateWebhook({ owner, repo, hook_id, config: { url: server.url } });
  expect(dropped.data.config).toEqual({ content_type: "form", insecure_ssl: "0", url: server.url });

  expect((await octokit.rest.repos.listWebhooks({ owner, repo })).data.map(({ id }) => id)).toEqual([hook_id]);
  expect((await octokit.rest.repos.pingWebhook({ owner, repo, hook_id })).status).toBe(204);
  expect((await octokit.rest.repos.testPushWebhook({ owner, repo, hook_id })).status).toBe(204);
  await until("the ping arrives", async () => server.pings.length === 2);
  expect((await octokit.rest.repos.deleteWebhook({ owner, repo, hook_id })).status).toBe(204);
  expect((await ask("GET", `${path}/${hook_id}`)).status).toBe(404);
  expect((await octokit.rest.repos.listWebhooks({ owner, repo })).data).toEqual([]);
  // Upstream knows of none of this.
  expect((await askAt(world.simulator.url, "GET", path, { token: ADMIN })).body).toEqual([]);
});

/** Each operation as it is described, below a repository or an organisation; ids are filled in as they become known. */
const OPERATIONS: [method: string, below: string, status: string, body?: object][] = [
  ["POST", "", "201", { name: "web", events: ["star"] }],
  ["GET", "", "200"],
  ["GET", "/{hook_id}", "200"],
  ["PATCH", "/{hook_id}", "200", { active: true, events: ["star", "fork"] }],
  ["GET", "/{hook_id}/config", "200"],
  ["PATCH", "/{hook_id}/config", "200", { content_type: "json" }],
  ["POST", "/{hook_id}/pings", "204"],
  ["POST", "/{hook_id}/tests", "204"],
  ["GET", "/{hook_id}/deliveries", "200"],
  ["GET", "/{hook_id}/deliveries/{delivery_id}", "200"],
  ["POST", "/{hook_id}/deliveries/{delivery_id}/attempts", "202"],
  ["DELETE", "/{hook_id}", "204"],
];

test.each(["/repos/{owner}/{repo}", "/orgs/{org}"])(
  "each operation of hooks below %s answers as it is described",
  async (place) => {
    const description = readDescription();
    const isOrganization = place.startsWith("/orgs");
    const { id: userId } = (await world.get("/user")).body as { id: number };
    const token = await createApiToken(world.ctx, { userId, canWrite: true, permissions: ["hooks:write"] });
    const filled: Record<string, string> = { owner, repo, org: owner };
    const faults: string[] = [];
    const asked: string[] = [];
    for (const [method, below, status, body] of OPERATIONS) {
      const template = `${place}/hooks${below}`;
      if (isOrganization && below === "/{hook_id}/tests") continue;
      const given = method === "POST" && below === "" ? { ...body, config: { url: `${server.url}/described` } } : body;
      if (below === "/{hook_id}/deliveries")
        await until(
          "the ping is noted",
          async () => (await ask("GET", filledIn(template, filled), undefined, token)).body.length > 0,
        );
      const answer = await ask(method, filledIn(template, filled), given, token);
      asked.push(`${method} ${template}`);
      expect(answer.status, `${method} ${template}: ${JSON.stringify(answer.body)}`).toBe(Number(status));
      if (status === "204") continue;
      const schema = answerSchema(description, method.toLowerCase(), template, status);
      for (const fault of [
        ...problemsOf(description, schema, answer.body),
        ...unknownFields(description, schema, answer.body),
      ])
        faults.push(`${method} ${template}: ${fault}`);
      if (method === "POST" && below === "") filled.hook_id = String(answer.body.id);
      if (below === "/{hook_id}/deliveries") filled.delivery_id = String(answer.body[0].id);
    }
    // The service shows it in lists, empty, and does not describe it.
    expect(faults.filter((fault) => !/deliveries: \$\.url$/.test(fault))).toEqual([]);
    const described = Object.entries(description.paths).flatMap(([path, methods]) =>
      path.startsWith(`${place}/hooks`)
        ? Object.keys(methods)
            .filter((method) => /^(get|post|patch|put|delete)$/.test(method))
            .map((method) => `${method.toUpperCase()} ${path}`)
        : [],
    );
    expect(asked.toSorted()).toEqual(described.toSorted());
  },
);

const filledIn = (template: string, values: Record<string, string>) =>
  template.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? "");

const hook = (config: object = {}, more: object = {}) => ({
  config: { url: "https://ci.example/hook", ...config },
  ...more,
});
const custom = (message: string, field?: string) => ({
  resource: "Hook",
  code: "custom",
  message,
  ...(field && { field }),
});

test.each<[string, object, object]>([
  ["no address", { config: {} }, { resource: "Hook", code: "missing_field", field: "url" }],
  ["no URL", hook({ url: "ci.example" }), custom("The URL you've entered is not valid.")],
  [
    "an address of the machine itself",
    hook({ url: "http://localhost:3000/" }),
    custom("url is not supported because it isn't reachable over the public Internet (localhost)", "url"),
  ],
  [
    "an address of the inside",
    hook({ url: "http://169.254.169.254/latest" }),
    custom("url is not supported because it isn't reachable over the public Internet (169.254.169.254)", "url"),
  ],
  ["an unknown key", hook({ "content-type": "json" }), custom("Invalid config attribute: content-type")],
  ["another name", hook({}, { name: "cli" }), { resource: "Hook", code: "invalid", field: "name" }],
  ["another form", hook({ content_type: "xml" }), { resource: "Hook", code: "invalid", field: "content_type" }],
  ["what is no event", hook({}, { events: ["Push!"] }), { resource: "Hook", code: "invalid", field: "events" }],
])("a hook with %s is refused as the service words it", async (_, body, fault) => {
  const answer = await ask("POST", path, body);
  expect(answer.status).toBe(422);
  expect(answer.body).toMatchObject({ message: "Validation Failed", errors: [fault] });
});

test("what is no JSON, or no boolean, is refused; the defaults are the service's; a second hook alike is refused", async () => {
  expect((await askAt(world.url, "POST", path, { token: ADMIN, body: "{" })).status).toBe(400);
  expect((await ask("POST", path, hook({}, { active: "yes" }))).body.message).toContain("is not a boolean");
  const made = await ask("POST", path, hook({ insecure_ssl: 1 }, { active: false }));
  expect(made.body).toMatchObject({ events: ["push"], active: false });
  expect(made.body.config).toEqual({ content_type: "form", insecure_ssl: "1", url: "https://ci.example/hook" });
  const second = await ask("POST", path, hook({ insecure_ssl: "1" }, { events: ["push", "issues"] }));
  expect(second.status).toBe(422);
  expect(second.body.errors).toEqual([custom("Hook already exists on this repository")]);
  expect((await ask("POST", path, hook({ insecure_ssl: "1" }, { events: ["issues"] }))).status).toBe(201);
  for (const { id } of (await ask("GET", path)).body) expect((await ask("DELETE", `${path}/${id}`)).status).toBe(204);
});

test("hooks are for those who may administer the repository at upstream, and for tokens of ours that were given them", async () => {
  const { ctx } = world;
  const userId = (await world.get("/user")).body as { id: number };
  const make = (permissions: ("hooks:write" | "issues:write")[] | null, repositoryIds?: number[]) =>
    createApiToken(ctx, {
      ...{ userId: userId.id, canWrite: true, permissions },
      scope: repositoryIds ? { repositoryIds, ownerIds: [] } : null,
    });
  const given = await make(["hooks:write"]);
  const full = await make(null);
  const elsewhere = await make(["hooks:write", "issues:write"], [repository.id + 1_000_000]);
  const statuses = async (token: string | null) => [
    (await ask("GET", path, undefined, token)).status,
    (await ask("POST", path, hook(), token)).status,
  ];
  expect(await statuses(null)).toEqual([404, 404]);
  expect(await statuses(READER)).toEqual(
    (await upstreamStatuses(READER)).map((status) => expect.toSatisfy((one) => one === status)),
  );
  expect(await statuses(full)).toEqual([403, 403]);
  for (const status of await statuses(elsewhere)) expect([403, 404]).toContain(status);
  expect(await statuses(given)).toEqual([200, 201]);
  const [{ id }] = (await ask("GET", path, undefined, given)).body;
  expect((await ask("DELETE", `${path}/${id}`, undefined, READER)).status).toBeGreaterThanOrEqual(403);
  expect((await ask("DELETE", `${path}/${id}`, undefined, given)).status).toBe(204);
});

test("a proxy's page in place of upstream's word on who may register is told of as upstream's failure", async () => {
  world.simulator.setFaults({ http: [{ match: "^POST .*/hooks", kind: "status", status: 502 }] });
  try {
    const { status, body } = await ask("POST", path, hook());
    expect([status, body.message]).toEqual([502, expect.stringMatching(/upstream/i)]);
  } finally {
    world.simulator.setFaults({});
  }
});

async function upstreamStatuses(token: string): Promise<number[]> {
  const asked = (method: string, body?: string) =>
    askAt(world.simulator.url, method, path, { token, ...(body === undefined ? {} : { body }) });
  return [
    (await asked("GET")).status,
    (await asked("POST", JSON.stringify(hook({ url: "https://other.example/" })))).status,
  ];
}

test("a hook of an organization hears of its repositories, and is shown without test and last response", async () => {
  const { ctx } = world;
  const login = repository.full_name.split("/")[0] ?? "";
  const { body } = await world.get(`/users/${login}`);
  const isOrganization = (body as Body).type === "Organization";
  const token = await createApiToken(ctx, { userId: (body as Body).id, canWrite: false, permissions: ["hooks:write"] });
  const made = await ask(
    "POST",
    `/orgs/${login}/hooks`,
    { name: "web", ...hook({ url: server.url }, { events: ["*"] }) },
    token,
  );
  expect(made.status).toBe(isOrganization ? 201 : 404);
  if (!isOrganization) return;
  expect(Object.keys(made.body)).toEqual(
    "type id name active events config updated_at created_at url ping_url deliveries_url".split(" "),
  );
  const before = server.heard.length;
  const guid = await tell(world, { event: "star", payload: { action: "deleted", repository } });
  await server.hears(before + 1);
  expect(server.heard.at(-1)).toMatchObject({ guid });
  expect(server.heard.at(-1)?.headers["x-github-hook-installation-target-type"]).toBe("organization");
  expect((await ask("POST", `/orgs/${login}/hooks`, hook(), token)).body.errors).toEqual([
    { resource: "Hook", code: "missing_field", field: "name" },
  ]);
  expect((await ask("GET", `/repos/${world.first}/hooks/${made.body.id}`, undefined, token)).status).toBe(404);
});

test("our hook at upstream sends what targets want beside what the mirror follows, and no more once they are gone", async () => {
  const { ctx, simulator } = world;
  for (const { id } of await listTargets(ctx)) await removeTarget(ctx, id);
  expect(await registerHook(ctx, { id: repository.id, owner, name: repo }, `${world.url}/webhooks`)).toBeNull();
  const ours = () => {
    const hook = [...simulator.world.hooks.values()].find(({ url }) => url === `${world.url}/webhooks`);
    if (!hook) throw new Error("Upstream has no hook of ours");
    return hook.events;
  };
  const own = [...ours()].sort();
  expect(own).not.toContain("star");
  const widened = (...events: string[]) =>
    until(
      `upstream sends ${events.join()}`,
      async () => ours().toSorted().join() === [...own, ...events].sort().join(),
    );
  const first = await ask("POST", path, hook({ url: server.url }, { events: ["star", "issues"] }));
  await widened("star");
  const { id } = await createTarget(ctx, {
    ...{ scope: { kind: "everything", id: 0 }, madeBy: "operator", url: "https://ci.example/", contentType: "json" },
    ...{ insecureSsl: false, secret: null, events: ["fork"], active: true, rewriteTo: null },
  });
  await ask("PATCH", `${path}/${first.body.id}`, { add_events: ["watch"] });
  await widened("star", "watch", "fork");
  // Upstream has no such event for repositories. That does not keep the other targets from their events.
  await changeTarget(ctx, id, { events: ["organization"] });
  await ask("PATCH", `${path}/${first.body.id}`, { remove_events: ["watch"] });
  await until("upstream sends everything", async () => ours().join() === "*");
  await removeTarget(ctx, id);
  await ask("PATCH", `${path}/${first.body.id}`, { active: false });
  await widened();
  await ask("PATCH", `${path}/${first.body.id}`, { active: true, events: ["*"] });
  await until("upstream sends everything", async () => ours().join() === "*");
  expect((await ask("DELETE", `${path}/${first.body.id}`)).status).toBe(204);
  await widened();
});

test("a hook that asks for it is sent addresses of the mirror, and all else byte for byte", async () => {
  const made = await ask(
    "POST",
    path,
    hook({ url: server.url, content_type: "json", rewrite_urls: "1" }, { events: ["star"] }),
  );
  expect(made.body.config).toMatchObject({ rewrite_urls: "1" });
  const api = world.ctx.config.upstreamUrl;
  const payload = (at: string) => ({
    action: "created",
    text: `{"url":"${api}/said by a person"}`,
    url: `${at}/repos/a/b`,
    statuses_url: `${at}/repos/a/b/statuses/{sha}`,
    html_url: `${api}.example/a`,
    _links: { self: { href: at } },
    body: `${api}/repos/a/b`,
    number: 1.5,
    repository,
  });
  const before = server.heard.length;
  const guid = await tell(world, { event: "star", payload: payload(api) });
  await server.hears(before + 1);
  expect(server.heard.at(-1)).toMatchObject({ guid, body: JSON.stringify(payload(world.url)) });
  const heard = server.heard.at(-1);
  await until("it is noted", async () => (await ask("GET", `${path}/${made.body.id}/deliveries`)).body.length === 2);
  const [{ id }] = (await ask("GET", `${path}/${made.body.id}/deliveries`)).body;
  const shown = await ask("GET", `${path}/${made.body.id}/deliveries/${id}`);
  expect(JSON.stringify(shown.body.request.payload)).toBe(heard?.body);
  expect((await ask("PATCH", `${path}/${made.body.id}/config`, { rewrite_urls: 0 })).body).not.toHaveProperty(
    "rewrite_urls",
  );
  expect(await findTarget(world.ctx, made.body.id)).toMatchObject({ rewriteTo: null });
  expect((await ask("PATCH", `${path}/${made.body.id}/config`, { rewrite_urls: "yes" })).status).toBe(422);
  expect((await ask("DELETE", `${path}/${made.body.id}`)).status).toBe(204);
});
