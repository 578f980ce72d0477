import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { withSettings } from "../../src/cli/init/settings-file.ts";
import { parseConfig } from "../../src/config.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { Run } from "./tain.ts";
import { tain } from "./tain-on.ts";
import { atPipe, BACKSPACE, CTRL_C, emptyPlace, hasTerminal, inTerminal } from "./typing.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 2, pulls: 1 }),
  });
});
afterAll(() => world[Symbol.asyncDispose]());

/** A website that a person may take for an API: it answers pages, and no JSON. */
async function openWebsite(): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer((_, response) => void response.writeHead(404).end("<h1>Not found</h1>"));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
}

test("init says of each answer what is wrong with it, asks again, and writes what the processes can start with", async () => {
  const place = await emptyPlace();
  const { config } = world.ctx;
  await using website = await openWebsite();
  const { code, shown } = await atPipe(["init"], place, [
    ["REST address:", "https://github.com"],
    ["It is the website, not the API", "http://127.0.0.1:1"],
    [
      "http://127.0.0.1:1 does not answer: GET /rate_limit: upstream cannot be reached (connect ECONNREFUSED",
      website.url,
    ],
    ["is no API's address", world.simulator.url],
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
  ]);
  expect({ code, shown }).toMatchObject({ code: 0 });

  expect((await stat(place.file)).mode & 0o777).toBe(0o600);
  const written = parseEnv(await readFile(place.file, "utf8"));
  expect(written).toMatchObject({
    UPSTREAM_URL: world.simulator.url,
    UPSTREAM_TOKEN,
    REPOSITORIES: world.first.toLowerCase(),
    DATABASE_URL: config.databaseUrl,
    REDIS_URL: config.redisUrl,
    PUBLIC_URL: "http://127.0.0.1:1",
  });
  expect(parseConfig(written)).toMatchObject({ upstreamTokens: [UPSTREAM_TOKEN] });
  for (const name of ["WEBHOOK_SECRET", "ENCRYPTION_KEY", "OPERATOR_TOKEN"]) {
    const secret = written[name] ?? "";
    expect(secret.length).toBeGreaterThan(30);
    expect(shown).not.toContain(secret);
  }
});

test.skipIf(!hasTerminal)(
  "in a terminal init shows no secret that is typed, bears typing errors, replaces nothing unasked, and keeps what it does not ask for (skipped without script)",
  async () => {
    const place = await emptyPlace();
    const before = "# mine\nAUDIT_PERIOD=7m\nWEBHOOK_SECRET=0123456789abcdef0123\nREPOSITORIES=old/one\n";
    await writeFile(place.file, before);
    const refused = await inTerminal(["init"], place, [
      ["Change its settings?", "perhaps"],
      ["Answer y or n", ""],
    ]);
    expect(refused.code).toBe(1);
    const left = await inTerminal(["init"], place, [
      ["Change its settings?", "y"],
      ["REST address:", world.simulator.url],
      ["A token for it", { key: CTRL_C }],
    ]);
    expect({ code: left.code, shown: left.shown }).toMatchObject({
      code: 1,
      shown: expect.stringContaining("Interrupted: nothing was written"),
    });
    expect(await readFile(place.file, "utf8")).toBe(before);

    const { config } = world.ctx;
    const [wrongToken, wrongWord] = ["ghp_thatIsNobodys", "aWordThatIsWrong"];
    const database = config.databaseUrl;
    const { code, shown } = await inTerminal(["init"], place, [
      ["Change its settings?", "y"],
      ["REST address:", `${world.simulator.url}x${BACKSPACE}`],
      ["A token for it", wrongToken],
      ["is rejected: it is revoked, expired or wrong", `${UPSTREAM_TOKEN}!!${BACKSPACE}${BACKSPACE}`],
      ["What to mirror", "one-word"],
      ["one-word is neither owner/name nor owner/*", `${world.first}/${BACKSPACE}`],
      ["Postgres, as", "mysql://me@127.0.0.1/tain"],
      ["is not an address that begins with postgres://", `postgres://me:${wrongWord}@127.0.0.1:1/tain`],
      ["Postgres cannot be used", database],
      ["Redis, as", `redis://:${wrongWord}@127.0.0.1:1`],
      ["Redis cannot be used", ""],
      ["The address by which", "tain.example.com"],
      ["is not an address", "http://127.0.0.1:1"],
      ["cannot be reached from here", "never"],
      ["Answer y or n", "n"],
      ["Then give another", ""],
    ]);
    expect({ code, shown }).toMatchObject({ code: 0 });
    expect(shown).toContain(`${world.simulator.url} answers`);
    for (const secret of [UPSTREAM_TOKEN, wrongToken, wrongWord, database]) expect(shown).not.toContain(secret);
    const text = await readFile(place.file, "utf8");
    expect(text).toMatch(/^# mine\nAUDIT_PERIOD=7m\nWEBHOOK_SECRET=0123456789abcdef0123\nREPOSITORIES=/);
    expect(parseEnv(text)).toMatchObject({
      REPOSITORIES: world.first.toLowerCase(),
      UPSTREAM_TOKEN,
      DATABASE_URL: database,
    });
    for (const name of ["REDIS_URL", "PUBLIC_URL"]) expect(text).not.toContain(name);
  },
);

test.skipIf(!hasTerminal)(
  "in a terminal app create is left by Ctrl-C, and makes an App; init takes it, and asks again for an id or a key that is not its (skipped without script)",
  async () => {
    const place = await emptyPlace();
    const settings = { ...place, env: { ...place.env, UPSTREAM_URL: world.simulator.url } };
    const create = ["app", "create", "--name", "Typed"];
    const left = await inTerminal(create, settings, [["press its button", { key: CTRL_C }]]);
    expect(left).toMatchObject({ code: 1, shown: expect.stringContaining("Interrupted: no App was made") });
    await expect(stat(place.file)).rejects.toThrow("ENOENT");

    const made = await inTerminal(create, settings, [
      [
        "/\n",
        async (shown) => {
          const [, page = ""] = /(http:\/\/127\.0\.0\.1:\d+\/)/.exec(shown) ?? [];
          expect((await fetch((await pressButton(page)).back)).status).toBe(200);
        },
      ],
      ["PUBLIC_URL is not set: the App will have no webhook", async () => {}],
    ]);
    expect({ code: made.code, shown: made.shown }).toMatchObject({ code: 0 });
    const app = parseEnv(await readFile(place.file, "utf8"));
    expect(made.shown).not.toContain("BEGIN RSA PRIVATE KEY");

    const { code, shown } = await inTerminal(["init"], place, [
      ["Change its settings?", "y"],
      ["REST address:", world.simulator.url],
      ["A token for it", "app"],
      ["The App's id:", "424242"],
      ["The file of its private key:", join(place.place, "nothing.pem")],
      ["nothing.pem", app.APP_PRIVATE_KEY_FILE ?? ""],
      ["Upstream shows no such GitHub App", app.APP_ID ?? ""],
      ["The file of its private key:", ""],
      ["knows the GitHub App Typed", world.first],
      ["Whether the App sees them shows once Tain runs", async () => {}],
      ["Postgres, as", ""],
      ["Redis, as", ""],
      ["The address by which", ""],
    ]);
    expect({ code, shown }).toMatchObject({ code: 0 });
    const written = parseEnv(await readFile(place.file, "utf8"));
    const { APP_ID, APP_PRIVATE_KEY_FILE } = app;
    expect(written).toMatchObject({
      APP_ID,
      APP_PRIVATE_KEY_FILE,
      REPOSITORIES: world.first.toLowerCase(),
      UPSTREAM_URL: world.simulator.url,
    });
    expect(Object.keys(written)).not.toContain("UPSTREAM_TOKEN");
  },
);

test("init writes nothing when the answers end too early", async () => {
  const place = await emptyPlace();
  const { code, shown } = await atPipe(["init"], place, [["REST address:", world.simulator.url]]);
  expect(code).toBe(1);
  expect(shown).toContain("There are no more answers: nothing was written");
  await expect(stat(place.file)).rejects.toThrow("ENOENT");
});

/** Presses the button of our page, as a browser does. Answers where upstream's page sends the browser back. */
async function pressButton(page: string): Promise<{ manifest: unknown; back: URL }> {
  const html = await (await fetch(page)).text();
  const [, action = ""] = /<form method="post" action="([^"]+)"/.exec(html) ?? [];
  const [, escaped = ""] = /name="manifest" value="([^"]+)"/.exec(html) ?? [];
  const manifest = escaped.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&amp;", "&");
  const pressed = await fetch(action, {
    method: "POST",
    body: new URLSearchParams({ manifest }),
    redirect: "manual",
  });
  expect(pressed.status).toBe(302);
  return { manifest: JSON.parse(manifest), back: new URL(pressed.headers.get("location") ?? "") };
}

test("app create makes an App by one click: upstream's page, the code, key and secret in files, settings for both", async () => {
  const { file, env } = await emptyPlace();
  await writeFile(file, "AUDIT_PERIOD=7m\n");
  const settings = { ...env, UPSTREAM_URL: world.simulator.url, PUBLIC_URL: "https://tain.example.com" };
  const command = new Run(["app", "create", "--name", "Our mirror", "--file", file], settings);
  const [, page = ""] = await command.said(/(http:\/\/127\.0\.0\.1:\d+\/)/);

  const { manifest, back } = await pressButton(page);
  expect(manifest).toMatchObject({
    default_permissions: { metadata: "read", issues: "read", pull_requests: "read" },
    hook_attributes: { url: "https://tain.example.com/webhooks", active: true },
  });

  for (const state of ["0".repeat(48), "é".repeat(48), ""]) {
    const forged = new URL(back);
    forged.searchParams.set("state", state);
    expect((await fetch(forged)).status).toBe(403);
  }
  expect((await fetch(back)).status).toBe(200);
  const { code, stdout, stderr } = await command.exited;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });

  const written = parseEnv(await readFile(file, "utf8"));
  const app = world.simulator.apps.byIssuer(written.APP_ID ?? "");
  expect(app).toMatchObject({ name: "Our mirror", hook: { url: "https://tain.example.com/webhooks" } });
  expect(written.AUDIT_PERIOD).toBe("7m");
  for (const path of [file, written.APP_PRIVATE_KEY_FILE ?? "", written.WEBHOOK_SECRET_FILE ?? ""])
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  const key = await readFile(written.APP_PRIVATE_KEY_FILE ?? "", "utf8");
  expect(key).toContain("BEGIN RSA PRIVATE KEY");
  expect(stdout).not.toContain(key.slice(40, 80));
  expect(stdout).toContain(`/apps/our-mirror/installations/new`);
  expect((await readFile(written.WEBHOOK_SECRET_FILE ?? "", "utf8")).trim()).toBe(app?.hook.secret);

  // The key is the App's: doctor's examination shows it, by the settings that were written.
  const doctor = await tain(["doctor", "--json"], {
    ...settings,
    ...written,
    DATABASE_URL: world.ctx.config.databaseUrl,
    REDIS_URL: world.ctx.config.redisUrl,
  });
  expect(doctor.stdout).toContain("knows the GitHub App Our mirror");

  const again = await tain(["app", "create", "--file", file], settings);
  expect({ code: again.code, stderr: again.stderr }).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("There is an App already (APP_ID)"),
  });
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
