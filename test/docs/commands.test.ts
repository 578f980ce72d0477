import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { registerHook } from "../../src/cli/hooks/repository-hooks.ts";
import { greeting } from "../../src/cli/up/greeting.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { findId } from "../../src/upstream/hooks/hooks.ts";
import { tain } from "../cli/tain-on.ts";
import { hasGh } from "../conformance/gh-runs.ts";
import { inherited } from "../support/config.ts";
import { openTestDatabase } from "../support/database.ts";
import { until } from "../support/patience.ts";
import { openWorld } from "../support/world.ts";
import { blocksOf, codeSpansOf, pages, projectRoot, readPage } from "./markdown.ts";

const run = promisify(execFile);
const { scripts } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

interface Written {
  page: string;
  command: string;
}

/**
 * Every command of the pages: each line of a block marked `sh`, and what is set as code in a sentence and begins like
 * one.
 */
const commands: Written[] = pages.flatMap((page) => {
  const text = readPage(page);
  const blocks = blocksOf(text).filter(({ language }) => language === "sh");
  const lines = blocks.flatMap((block) => block.text.split("\n")).filter((line) => line.trim() !== "");
  const spans = codeSpansOf(text).filter((span) => /^(npm|node|tain|psql|curl) /.test(span));
  return [...new Set([...lines, ...spans])].map((command) => ({ page, command }));
});

test("there are commands to check", () => {
  expect(commands.filter(({ page }) => page === "README.md").length).toBeGreaterThan(8);
});

test("no block is marked by a name that no test knows", () => {
  const known = ["", "sh", "sql", "sql role", "sql logins", "sql operator", "sql superuser", "ts"];
  expect(
    pages
      .flatMap((page) => blocksOf(readPage(page)).map(({ language }) => language))
      .filter((name) => !known.includes(name)),
  ).toEqual([]);
});

test.each(commands)("$page: $command", async ({ command }) => {
  const words = command.match(/'[^']*'|"[^"]*"|\S+/g) ?? [];
  const [program, ...rest] = words.map((word) => word.replace(/^(['"])(.*)\1$/, "$2"));
  switch (program) {
    case "npm":
      return await checkNpm(rest);
    case "tain":
      return await checkTain(rest);
    case "node":
      if (rest[0] === "src/cli/main.ts") return await checkTain(rest.slice(1));
      expect(existsSync(join(projectRoot, rest[0] ?? "")), `${rest[0]} exists`).toBe(true);
      return;
    case "export": {
      const name = rest[0]?.split("=")[0];
      expect(Object.values(SETTINGS).map((setting) => setting.name)).toContain(name);
      return;
    }
    case "npx":
      expect(rest[0]).toBe("tain");
      return await checkTain(rest.slice(1));
    // Of the ways to deploy; test/deploy holds their files against schemas.
    case "buildah":
    case "docker":
    case "helm":
    case "kubectl":
    case "install":
    case "systemctl": {
      const files = rest.filter((word) => /^(?:deploy\/|\.env)/.test(word) && word !== ".env");
      for (const file of files) expect(existsSync(join(projectRoot, file)), `${file} exists`).toBe(true);
      return;
    }
    case "cd":
    case "chmod":
    case "git":
    case "ln":
    case "printf":
      return;
    case "TOKEN=$(node":
    case "curl":
    case "http_proxy=http://127.0.0.1:8080":
      return; // Run below.
    default:
      throw new Error(`This test does not know how to check ${program}`);
  }
});

async function checkNpm([verb = "", ...rest]: string[]): Promise<void> {
  // npm's own. What publishes a release needs a registry.
  if (verb === "publish" || verb === "audit") return;
  if (verb === "ci" || verb === "sbom" || verb === "install" || verb === "pack") return;
  if (verb === "start" || verb === "test") {
    expect(scripts).toHaveProperty(verb);
    return;
  }
  expect(verb).toBe("run");
  const [script = "", separator, ...args] = rest;
  expect(scripts).toHaveProperty(script);
  if (script !== "tain" || args.length === 0) return;
  expect(separator, "npm takes options for itself unless -- stands before them").toBe("--");
  await checkTain(args);
}

const helps = new Map<string, Promise<string>>();

/** What the command itself says; it fails for one that does not exist. */
function helpOf(name: string): Promise<string> {
  let help = helps.get(name);
  if (!help) {
    help = tain([name, "--help"], inherited).then(({ code, stdout }) => {
      expect({ name, code }).toEqual({ name, code: 0 });
      return stdout;
    });
    helps.set(name, help);
  }
  return help;
}

/** The command exists, and its help has each option and takes words if some are given. */
async function checkTain([name = "", ...args]: string[]): Promise<void> {
  if (name.startsWith("-")) return;
  const stdout = await helpOf(name);
  for (const option of args.filter((arg) => arg.startsWith("--")))
    expect(stdout).toMatch(new RegExp(`^ +${option}\\b`, "m"));
  const takesValue = (option = "") => new RegExp(`^ +${option} [A-Z]+\\b`, "m").test(stdout);
  const words = args.filter((arg, at) => !arg.startsWith("-") && !takesValue(args[at - 1]));
  const takesWords = !new RegExp(`^Usage: tain ${name} \\[options\\]$`, "m").test(stdout);
  if (words.length > 0) expect(takesWords, `tain ${name} takes arguments`).toBe(true);
}

const fill = ({ world: upstream }: Simulator) =>
  void generateWorld(upstream, { seed: 7, repositories: 1, issues: 20, pulls: 5 });

const hasCurl = await run("curl", ["--version"]).then(
  () => true,
  () => false,
);

test("the README shows what a start prints: where the token is taken from, and the requests", () => {
  const address = "http://127.0.0.1:8080";
  const instance = {
    apiUrl: address,
    token: "tain_secret",
    webhookUrl: `${address}/webhooks`,
    webhookSecret: "",
    encryptionKey: "",
    operatorToken: "",
    upstreamUrl: "http://127.0.0.1:1",
    upstreamToken: "",
    repositories: [{ owner: "OWNER", name: "NAME" }],
  };
  const file = "./.tain/instance.json";
  const said = greeting({ instance, file, hasSimulator: true, isReached: true });
  const printed = said.split("\n").filter((line) => /^ {2}(curl |TOKEN=|http_proxy=)/.test(line));
  const shown = commands.filter(
    ({ page, command }) => page === "README.md" && /^(curl |TOKEN=|http_proxy=)/.test(command),
  );
  expect(shown.map(({ command }) => command)).toEqual(printed.map((line) => line.trim()));
  expect(said).not.toContain("tain_secret");
});

describe("what is run", () => {
  test.skipIf(!hasGh)(
    "the README's line for gh, to a mirror that nothing but its address leads to (skipped without gh)",
    async () => {
      await using world = await openWorld({ fill });
      const fullName = world.first;
      await world.mirror(fullName);
      const [line] = commands.filter(({ page, command }) => page === "README.md" && command.startsWith("http_proxy="));
      const asked = line?.command.replace("http://127.0.0.1:8080", world.url).replace("OWNER/NAME", fullName);
      const home = await mkdtemp(join(tmpdir(), "tain-"));
      const env = { ...process.env, HOME: home, GH_CONFIG_DIR: home, TOKEN: world.token, GH_NO_UPDATE_NOTIFIER: "1" };
      const { stdout } = await run("sh", ["-c", asked ?? "false"], { env });
      const open = [...world.simulator.world.repositories.values()]
        .find((one) => world.simulator.world.fullName(one) === fullName)
        ?.rows.byNumber.filter((issue) => issue && issue.pull === null && issue.state === "open");
      expect(open?.length).toBeGreaterThan(0);
      expect(stdout.trim().split("\n")).toHaveLength(Math.min(30, open?.length ?? 0));
    },
  );

  test.skipIf(!hasCurl)("the README's three requests, as a shell would send them (skipped without curl)", async () => {
    await using world = await openWorld({ fill });
    const fullName = world.first;
    await world.mirror(fullName);
    const requests = commands.filter(({ page, command }) => page === "README.md" && command.startsWith("curl "));
    expect(requests.length).toBe(3);
    // As a start leaves it.
    const home = await mkdtemp(join(tmpdir(), "tain-"));
    await mkdir(join(home, ".tain"));
    await writeFile(join(home, ".tain/instance.json"), JSON.stringify({ token: world.token }));
    const taken = commands.find(({ page, command }) => page === "README.md" && command.startsWith("TOKEN="));
    const [listed, created, queried] = await Promise.all(
      requests.map(async ({ command }) => {
        const line = command.replace("http://127.0.0.1:8080", world.url).replace("OWNER/NAME", fullName);
        const { stdout } = await run("sh", ["-c", `${taken?.command}\n${line} --silent --show-error`], { cwd: home });
        return JSON.parse(stdout);
      }),
    );
    expect(listed).toHaveLength(3);
    expect(created).toMatchObject({ title: "Hello from the mirror", state: "open" });
    expect(queried).toMatchObject({
      data: { viewer: { login: "mirror-owner", repositories: { nodes: [{ nameWithOwner: fullName }] } } },
    });
    expect(queried).not.toHaveProperty("errors");
  });

  test("what upstream is asked to send is what the documentation lists and the operator is told", async () => {
    await using world = await openWorld({ fill, workers: false });
    const [owner = "", name = ""] = world.first.split("/");
    const id = await findId(world.ctx.upstream, `/repos/${world.first}`);
    expect(await registerHook(world.ctx, { id, owner, name }, "http://127.0.0.1:9/webhooks")).toBeNull();
    const [hook] = [...world.simulator.world.hooks.values()];
    const [sentence = ""] = /Followed events:[^.]*\./.exec(readPage("docs/following.md")) ?? [];
    expect([...sentence.matchAll(/`(\w+)`/g)].map(([, event]) => event).sort()).toEqual(
      [...(hook?.events ?? [])].sort(),
    );
  });

  test("the migration, on a database that has it already", async () => {
    await using database = await openTestDatabase();
    await run(process.execPath, ["db/migrate.ts"], {
      cwd: projectRoot,
      env: { ...process.env, DATABASE_URL: database.url },
    });
  });

  test("what the operator asks and does in SQL: the reason of a failed delivery, trying it again, who wrote, revoking tokens", async () => {
    const [failures, retry, writers, revoke] = blocksOf(readPage("docs/operations.md")).filter(
      ({ language }) => language === "sql operator",
    );
    await using world = await openWorld();
    const { db } = world.ctx;
    const [made] = await db.query<{ id: string }>(sql`
      insert into deliveries (hook_id, guid, event, payload, status, attempts, reason, received_at, settled_at)
        values (1, 'a-guid-of-a-delivery', 'star', '{}', 'failed', 8, 'the moon was full',
          now() - interval '1 minute', now()) returning id`);

    const shown = await db.query(sql.script(failures?.text ?? ""));
    expect(shown).toMatchObject([{ id: made?.id, event: "star", attempts: 8, reason: "the moon was full" }]);

    await db.query(sql.script(retry?.text ?? ""));
    await world.ctx.queues.maintenance.add("dispatch", {}); // As the scheduler asks every two seconds.
    await until("the delivery is settled anew", async () => {
      const [delivery] = await db.query<{ status: string }>(sql`select status from deliveries`);
      return delivery?.status === "ignored";
    });

    await db.query(sql`
      insert into writes (begun_at, token_of, token, user_id, method, path, request_id)
        values (now(), 'upstream', 'f00', 1, 'PATCH', '/repos/owner/name/issues/1', 'R'),
          (now(), 'own', 'f01', 1, 'PATCH', '/repos/owner/name/issues/11', 'R')`);
    expect(await db.query(sql.script(writers?.text ?? ""))).toMatchObject([{ token: "f00", outcome: "unknown" }]);

    expect((await world.get("/user")).status).toBe(200);
    await db.query(sql.script(revoke?.text ?? ""));
    await until("the token is refused", async () => (await world.get("/user")).status === 401);
  });
});
