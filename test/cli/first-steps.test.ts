import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv, promisify, stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { withSettings } from "../../src/cli/init/settings-file.ts";
import { parseConfig } from "../../src/config.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import { inherited, UPSTREAM_TOKEN } from "../support/config.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { Run } from "./tain.ts";

const run = promisify(execFile);
const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

let world: TestWorld;
beforeAll(async () => {
  world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 2, pulls: 1 }),
  });
});
afterAll(() => world[Symbol.asyncDispose]());

/** A directory of somebody who begins. */
async function emptyPlace(): Promise<{ place: string; file: string; env: NodeJS.ProcessEnv }> {
  const place = await mkdtemp(join(tmpdir(), "tain-first-"));
  onTestFinished(() => rm(place, { recursive: true }));
  return { place, file: join(place, ".env"), env: { ...inherited, TAIN_HOME: join(place, ".tain"), PORT: "0" } };
}

/** Types each line once the question before it is asked, and answers what was shown. */
async function type(
  command: readonly string[],
  { place, env }: { place: string; env: NodeJS.ProcessEnv },
  lines: readonly [question: string, answer: string][],
): Promise<{ code: number; shown: string }> {
  const child = spawn(command[0] ?? "", command.slice(1), { cwd: place, env, stdio: ["pipe", "pipe", "pipe"] });
  let shown = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      shown += text;
    });
  let from = 0;
  for (const [question, answer] of lines) {
    await until(`it asks: ${question}`, () => {
      if (child.exitCode !== null) throw new Error(`It has ended and said:\n${shown}`);
      return plainly(shown).includes(question, from);
    });
    from = plainly(shown).indexOf(question, from) + question.length;
    child.stdin.write(`${answer}\n`);
  }
  child.stdin.end();
  const [code] = child.exitCode === null ? await once(child, "close") : [child.exitCode];
  return { code, shown: plainly(shown) };
}

const plainly = (text: string) => stripVTControlCharacters(text).replaceAll("\r", "");

const hasTerminal = await run("script", ["--version"]).then(
  () => true,
  () => false,
);

/** The whole of `tain init`; `script` gives it a terminal. */
function initIn(terminal: boolean): string[] {
  return terminal
    ? ["script", "-qec", `${process.execPath} ${main} init`, "/dev/null"]
    : [process.execPath, main, "init"];
}

test("init says of each answer what is wrong with it, asks again, and writes what the processes can start with", async () => {
  const { place, file, env } = await emptyPlace();
  const { config } = world.ctx;
  const { code, shown } = await type(
    initIn(false),
    { place, env },
    [
      ["REST address:", "https://github.com"],
      ["It is the website, not the API", world.simulator.url],
      ["A token for it", "no-such-token"],
      ["is rejected: it is revoked, expired or wrong", UPSTREAM_TOKEN],
      ["What to mirror", "not a name"],
      ["not is neither owner/name nor owner/*", "nobody/nothing"],
      ["Upstream does not show nobody/nothing", world.first],
      ["Postgres, as", "postgres://tain:wrong@127.0.0.1:1/tain"],
      ["Postgres cannot be used", config.databaseUrl],
      ["Redis, as", "127.0.0.1:6379"],
      ["is not an address that begins with redis:// or rediss://", config.redisUrl],
      ["The address by which", "http://127.0.0.1:1"],
      ["cannot be reached from here", ""],
      ["The address by which", ""],
    ]
      .map(([question = "", answer = ""]): [string, string] => [question, answer])
      .slice(0, 13),
  );
  expect({ code, shown }).toMatchObject({ code: 0 });

  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const written = parseEnv(await readFile(file, "utf8"));
  expect(written).toMatchObject({
    UPSTREAM_URL: world.simulator.url,
    UPSTREAM_TOKEN,
    REPOSITORIES: world.first.toLowerCase(),
    DATABASE_URL: config.databaseUrl,
    REDIS_URL: config.redisUrl,
    PUBLIC_URL: "http://127.0.0.1:1",
  });
  expect(parseConfig(written)).toMatchObject({ upstreamTokens: [UPSTREAM_TOKEN] });
  for (const secret of [written.WEBHOOK_SECRET ?? "", written.OPERATOR_TOKEN ?? ""]) {
    expect(secret.length).toBeGreaterThan(30);
    expect(shown).not.toContain(secret);
  }
});

test.skipIf(!hasTerminal)(
  "in a terminal init shows no secret that is typed, replaces nothing unasked, and keeps what it does not ask for (skipped without script)",
  async () => {
    const { place, file, env } = await emptyPlace();
    const before = "# mine\nSTALE_AFTER=7m\nWEBHOOK_SECRET=0123456789abcdef0123\nREPOSITORIES=old/one\n";
    await writeFile(file, before);
    const refused = await type(initIn(true), { place, env }, [["Change its settings?", ""]]);
    expect(refused.code).toBe(1);
    expect(await readFile(file, "utf8")).toBe(before);

    const { code, shown } = await type(initIn(true), { place, env }, [
      ["Change its settings?", "y"],
      ["REST address:", world.simulator.url],
      ["A token for it", UPSTREAM_TOKEN],
      ["What to mirror", world.first],
      ["Postgres, as", ""],
      ["Redis, as", ""],
      ["The address by which", ""],
    ]);
    expect({ code, shown }).toMatchObject({ code: 0 });
    expect(shown).toContain(`${world.simulator.url} answers`);
    expect(shown).not.toContain(UPSTREAM_TOKEN);
    const text = await readFile(file, "utf8");
    expect(text).toMatch(/^# mine\nSTALE_AFTER=7m\nWEBHOOK_SECRET=0123456789abcdef0123\nREPOSITORIES=/);
    expect(parseEnv(text)).toMatchObject({ REPOSITORIES: world.first.toLowerCase(), UPSTREAM_TOKEN });
    expect(text).not.toContain("DATABASE_URL");
  },
);

test("init writes nothing when the answers end too early", async () => {
  const { place, file, env } = await emptyPlace();
  const { code, shown } = await type(initIn(false), { place, env }, [["REST address:", world.simulator.url]]);
  expect(code).toBe(1);
  expect(shown).toContain("There are no more answers: nothing was written");
  await expect(stat(file)).rejects.toThrow("ENOENT");
});

test("app create makes an App by one click: upstream's page, the code, key and secret in files, settings for both", async () => {
  const { place, file, env } = await emptyPlace();
  await writeFile(file, "STALE_AFTER=7m\n");
  const settings = { ...env, UPSTREAM_URL: world.simulator.url, PUBLIC_URL: "https://tain.example.com" };
  const command = new Run(["app", "create", "--name", "Our mirror", "--file", file], settings);
  const [, page = ""] = await command.said(/(http:\/\/127\.0\.0\.1:\d+\/)/);

  // The browser: our page, its button, upstream's page, and back.
  const html = await (await fetch(page)).text();
  const [, action = ""] = /<form method="post" action="([^"]+)"/.exec(html) ?? [];
  const [, manifest = ""] = /name="manifest" value="([^"]+)"/.exec(html) ?? [];
  const json = manifest.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&amp;", "&");
  expect(JSON.parse(json)).toMatchObject({
    default_permissions: { metadata: "read", issues: "read", pull_requests: "read" },
    hook_attributes: { url: "https://tain.example.com/webhooks", active: true },
  });
  const clicked = await fetch(action, {
    method: "POST",
    body: new URLSearchParams({ manifest: json }),
    redirect: "manual",
  });
  expect(clicked.status).toBe(302);
  const back = new URL(clicked.headers.get("location") ?? "");

  const forged = new URL(back);
  forged.searchParams.set("state", "0".repeat(48));
  expect((await fetch(forged)).status).toBe(403);
  expect((await fetch(back)).status).toBe(200);
  const { code, stdout, stderr } = await command.exited;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });

  const written = parseEnv(await readFile(file, "utf8"));
  const app = world.simulator.apps.byIssuer(written.APP_ID ?? "");
  expect(app).toMatchObject({ name: "Our mirror", hook: { url: "https://tain.example.com/webhooks" } });
  expect(written.STALE_AFTER).toBe("7m");
  for (const path of [file, written.APP_PRIVATE_KEY_FILE ?? "", written.WEBHOOK_SECRET_FILE ?? ""])
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  const key = await readFile(written.APP_PRIVATE_KEY_FILE ?? "", "utf8");
  expect(key).toContain("BEGIN RSA PRIVATE KEY");
  expect(stdout).not.toContain(key.slice(40, 80));
  expect(stdout).toContain(`/apps/our-mirror/installations/new`);
  expect((await readFile(written.WEBHOOK_SECRET_FILE ?? "", "utf8")).trim()).toBe(app?.hook.secret);

  // The key is the App's: doctor's examination shows it, by the settings that were written.
  const doctor = await new Run(["doctor", "--json"], {
    ...settings,
    ...written,
    DATABASE_URL: world.ctx.config.databaseUrl,
    REDIS_URL: world.ctx.config.redisUrl,
  }).exited;
  expect(doctor.stdout).toContain("knows the GitHub App Our mirror");

  const again = await new Run(["app", "create", "--file", file], settings).exited;
  expect({ code: again.code, stderr: again.stderr }).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("There is an App already (APP_ID)"),
  });
  expect(place).not.toBe("");
});

test("a code is exchanged once, and a manifest that upstream refuses is refused in its words", async () => {
  const ask = async (manifest: object, path = "/settings/apps/new") =>
    await fetch(`${world.simulator.url}${path}?state=s`, {
      method: "POST",
      body: new URLSearchParams({ manifest: JSON.stringify(manifest) }),
      redirect: "manual",
    });
  const made = await ask({ name: "Once", url: "https://example.com", redirect_url: "http://127.0.0.1:1/back" });
  const back = new URL(made.headers.get("location") ?? "");
  expect([back.origin, back.searchParams.get("state")]).toEqual(["http://127.0.0.1:1", "s"]);
  const convert = async () =>
    await fetch(`${world.simulator.url}/app-manifests/${back.searchParams.get("code")}/conversions`, {
      method: "POST",
    });
  const first = await convert();
  expect([first.status, first.headers.get("x-ratelimit-resource")]).toEqual([201, "integration_manifest"]);
  const app = (await first.json()) as object;
  expect(Object.keys(app)).toHaveLength(16);
  // Without hook_attributes there is no webhook, and no event.
  expect(app).toMatchObject({ slug: "once", webhook_secret: null, events: [] });
  expect((await convert()).status).toBe(404);

  const refused = await ask({ name: "Once", redirect_url: "http://127.0.0.1:1/back" });
  expect([refused.status, await refused.text()]).toEqual([422, "Url can't be blank"]);
  const elsewhere = await ask(
    { url: "https://example.com", redirect_url: "http://x/" },
    "/organizations/none/settings/apps/new",
  );
  expect(elsewhere.status).toBe(422);
});

test("a setting keeps its line, what is taken out goes, and every value is read back as it was", () => {
  const values = { A_B: "x y", C_D: "it's", E_F: 'say "no"', G_H: "a#b", I_J: "" };
  const text = withSettings("# first\nC_D=old\nZ=1\nK_L=gone\n", { ...values, K_L: undefined });
  expect(text).toMatch(/^# first\nC_D="it's"\nZ=1\nA_B=/);
  expect(parseEnv(text)).toEqual({ ...values, Z: "1" });
});
