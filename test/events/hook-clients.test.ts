/**
 * Other people's programs, unmodified, with hooks of the mirror: `gh`, PyGithub and Probot. What is missing is
 * installed: PyGithub by Debian's apt-get for root, Probot by npm below `.tain`. So it is run when it is asked for:
 * `npm run proofs hook-clients`.
 */
import { execFile, spawn, spawnSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { listTargets } from "../../src/events/target.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { hasGh, openGh } from "../conformance/gh-runs.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { inherited } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { openTargetServer, type TargetServer } from "./target-server.ts";
import { type ToldRepository, tell } from "./tell.ts";

const PYTHON = "/usr/bin/python3";
const PROBOT = "probot@14.3.2";
const CLIENTS = fileURLToPath(new URL("../../.tain/hook-clients/", import.meta.url));

const run = promisify(execFile);
const resources = new AsyncDisposableStack();
let world: TestWorld;
let server: TargetServer;
let token: string;
let repository: ToldRepository;

/** Whether PyGithub is there, after it was installed where that can be done. */
function hasPyGithub(): boolean {
  const isThere = () => spawnSync(PYTHON, ["-c", "import github"]).status === 0;
  if (isThere()) return true;
  if (process.getuid?.() !== 0) return false;
  spawnSync("apt-get", ["install", "--yes", "--no-install-recommends", "python3-github"], { stdio: "ignore" });
  return isThere();
}

const isAsked = process.env.HOOK_CLIENTS !== undefined;

describe.skipIf(!isAsked)("hooks by other people's programs (HOOK_CLIENTS=1)", { timeout: LONG_TEST_MS }, () => {
  beforeAll(async () => {
    world = resources.use(
      await openWorld({
        fill: (simulator) => void generateWorld(simulator.world, { seed: 7, repositories: 1, issues: 3, pulls: 0 }),
        env: { TARGETS_ALLOWED: "127.0.0.1" },
      }),
    );
    await world.mirror(world.first);
    repository = (await world.get(`/repos/${world.first}`)).body as ToldRepository;
    const { id: userId } = (await world.get("/user")).body as { id: number };
    token = await createApiToken(world.ctx, { userId, canWrite: true, permissions: ["hooks:write"] });
    server = resources.use(await openTargetServer());
  });
  afterAll(() => resources.disposeAsync());

  const starred = () => tell(world, { event: "star", payload: { action: "created", repository } });

  test.skipIf(!hasGh)("gh api (skipped where gh is not installed)", async () => {
    const gh = await openGh({ ...world, token }, resources);
    const api = async (method: string, path: string, ...fields: string[]) => {
      const { status, out, err } = await gh(["api", "-X", method, `repos/${world.first}/hooks${path}`, ...fields]);
      expect(status, `${method} ${path}: ${out}${err}`).toBe(0);
      return out.trim() === "" ? null : JSON.parse(out);
    };
    const json = JSON.stringify({ events: ["star"], config: { url: server.url, content_type: "json" } });
    mkdirSync(CLIENTS, { recursive: true });
    writeFileSync(join(CLIENTS, "hook.json"), json);
    const made = await api("POST", "", "--input", join(CLIENTS, "hook.json"));
    expect(await api("GET", "")).toMatchObject([{ id: made.id, events: ["star"] }]);
    expect(await api("GET", `/${made.id}`)).toMatchObject({ id: made.id });
    expect(await api("PATCH", `/${made.id}`, "-F", "active=true", "-f", "add_events[]=fork")).toMatchObject({
      events: ["star", "fork"],
    });
    expect(await api("GET", `/${made.id}/config`)).toMatchObject({ url: server.url });
    expect(await api("PATCH", `/${made.id}/config`, "-f", "content_type=form")).toMatchObject({ content_type: "form" });
    await api("POST", `/${made.id}/pings`);
    await api("POST", `/${made.id}/tests`);
    const guid = await starred();
    await server.hears(1);
    await until("it is noted", async () => (await api("GET", `/${made.id}/deliveries`)).length >= 3);
    const [{ id }] = await api("GET", `/${made.id}/deliveries`, "-f", "per_page=1");
    expect(await api("GET", `/${made.id}/deliveries/${id}`)).toMatchObject({ guid, event: "star" });
    expect(await api("POST", `/${made.id}/deliveries/${id}/attempts`)).toEqual({});
    await server.hears(2);
    expect(await api("DELETE", `/${made.id}`)).toBeNull();
    expect(await listTargets(world.ctx)).toEqual([]);
    printFigures("hook clients", { client: "gh" });
  });

  test.skipIf(isAsked && !hasPyGithub())("PyGithub (skipped where it is missing and cannot be installed)", async () => {
    const script = `
import sys
from github import Github
url, token, name, target = sys.argv[1:]
repo = Github(base_url=url, login_or_token=token).get_repo(name)
hook = repo.create_hook("web", {"url": target, "content_type": "json", "secret": "of PyGithub"}, ["star"], True)
assert [one.id for one in repo.get_hooks()] == [hook.id]
assert repo.get_hook(hook.id).config["secret"] == "********", hook.config
hook.edit("web", {"url": target, "content_type": "json"}, add_events=["fork"])
assert sorted(hook.events) == ["fork", "star"], hook.events
hook.ping()
hook.test()
assert hook.last_response.status is not None
print(hook.id, flush=True)
sys.stdin.readline()
hook.delete()
assert list(repo.get_hooks()) == []
`;
    const heard = server.heard.length;
    const child = spawn(PYTHON, ["-c", script, world.url, token, world.first, server.url], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let said = "";
    let failed = "";
    child.stdout.on("data", (text) => {
      said += text;
    });
    child.stderr.on("data", (text) => {
      failed += text;
    });
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    await until("PyGithub has its hook", async () => {
      if (child.exitCode !== null) throw new Error(failed);
      return said !== "";
    });
    await starred();
    await server.hears(heard + 1);
    child.stdin.end("\n");
    expect(await ended, failed).toBe(0);
    expect(await listTargets(world.ctx)).toEqual([]);
    printFigures("hook clients", { client: "PyGithub" });
  });

  test("Probot is driven by the mirror's deliveries alone", async () => {
    mkdirSync(CLIENTS, { recursive: true });
    writeFileSync(join(CLIENTS, "package.json"), JSON.stringify({ private: true, type: "module" }));
    await run("npm", ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", PROBOT], { cwd: CLIENTS });
    const { privateKey } = generateKeyPairSync("rsa", {
      modulusLength: 2_048,
      privateKeyEncoding: { type: "pkcs1", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    writeFileSync(
      join(CLIENTS, "app.js"),
      `
import { createServer } from "node:http";
import { createNodeMiddleware, createProbot } from "probot";
const say = (line) => console.log(JSON.stringify(line));
const app = (bot) => {
  bot.on("issues.edited", async ({ id, payload }) => say({ edited: payload.issue.title, id }));
  bot.on("star.created", async ({ id }) => say({ starred: true, id }));
  bot.onAny(async ({ name, id }) => say({ any: name, id }));
};
const probot = createProbot({ overrides: { appId: 1, privateKey: process.env.KEY, secret: process.env.SECRET, logLevel: "fatal" } });
const server = createServer(await createNodeMiddleware(app, { probot, webhooksPath: "/api/github/webhooks" }));
server.listen(0, "127.0.0.1", () => say({ port: server.address().port }));
`,
    );
    const child = spawn(process.execPath, [join(CLIENTS, "app.js")], {
      env: { ...inherited, KEY: privateKey, SECRET: "of Probot" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const lines: Record<string, unknown>[] = [];
    let failed = "";
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line.startsWith("{")) lines.push(JSON.parse(line));
    });
    child.stderr.on("data", (text) => {
      failed += text;
    });
    await until("Probot listens", async () => {
      if (child.exitCode !== null) throw new Error(failed);
      return lines.some(({ port }) => port !== undefined);
    });
    const port = lines.find((line) => line.port !== undefined)?.port;
    const made = await fetch(`${world.url}/repos/${world.first}/hooks`, {
      method: "POST",
      headers: { authorization: `token ${token}`, "user-agent": "test" },
      body: JSON.stringify({
        events: ["*"],
        config: { url: `http://127.0.0.1:${port}/api/github/webhooks`, content_type: "json", secret: "of Probot" },
      }),
    });
    expect(made.status).toBe(201);
    const { body: issue } = await world.get(`/repos/${world.first}/issues/1`);
    const updated_at = new Date(Date.now() + 3_600_000).toISOString();
    const guids = [
      await tell(world, {
        event: "issues",
        payload: {
          action: "edited",
          issue: { ...(issue as object), title: "by Probot", updated_at },
          changes: {},
          repository,
        },
      }),
      await starred(),
    ];
    await until(
      "Probot has heard both",
      async () => lines.filter(({ any }) => any !== "ping" && any !== undefined).length >= 2,
    );
    expect(lines).toContainEqual({ edited: "by Probot", id: guids[0] });
    expect(lines).toContainEqual({ starred: true, id: guids[1] });
    expect(failed).toBe("");
    printFigures("hook clients", { client: "Probot" });
  });
});
