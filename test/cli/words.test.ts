import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { deliveries } from "../../src/cli/deliveries/deliveries.ts";
import { paceBetween, paceLine } from "../../src/cli/repositories/backfill-pace.ts";
import { type Command, chooseAction, listOf, parseArguments, UsageError } from "../../src/cli/terminal/command.ts";
import { completed, type Instance } from "../../src/cli/terminal/instance.ts";
import { counted, openOutput, spanOf, tableLines } from "../../src/cli/terminal/output.ts";
import { readNames, readPatterns } from "../../src/cli/terminal/patterns.ts";
import { token } from "../../src/cli/token.ts";
import { writes } from "../../src/cli/writes.ts";
import { inherited } from "../support/config.ts";
import { tain as tainHere } from "./tain-on.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

const HERE: NodeJS.ProcessEnv = { ...inherited, TAIN_HOME: "/nonexistent/tain" };

/** Runs `tain` without stores: the commands here must not need any. */
function tain(args: string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [main, ...args], { env: { ...HERE, ...env } }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === "number" ? error.code : error ? -1 : 0, stdout, stderr });
    });
  });
}

test.each([
  [
    ["frob"],
    "There is no command frob; the commands are init, up, web, worker, scheduler, add, remove, status, quota, backfill, audit, follow, mcp, deliveries, jobs, hooks, app, targets, token, sql, export, readers, audit-log, writes, migrate and doctor",
  ],
  [
    ["--frob"],
    "There is no option --frob; the commands are init, up, web, worker, scheduler, add, remove, status, quota, backfill, audit, follow, mcp, deliveries, jobs, hooks, app, targets, token, sql, export, readers, audit-log, writes, migrate and doctor",
  ],
  [["status", "--frob"], "tain status has no option --frob; it has --json and --help"],
  [["add", "demo"], "demo is neither owner/name nor owner/*: the owner is missing, or the name"],
])("tain %j is answered with what was wrong and what would be right, and status 2", async (args, message) => {
  expect(await tainHere(args, HERE)).toEqual({ code: 2, stdout: "", stderr: `tain: ${message}\n` });
});

const command: Command = {
  name: "remove",
  about: "",
  takes: "PATTERN…",
  flags: { purge: "" },
  values: { since: { takes: "TIME", about: "" } },
  run: async () => 0,
};

test.each([
  [["a/b", "--purg"], "tain remove has no option --purg; it has --purge, --since, --json and --help"],
  [["a/b", "-x"], "tain remove has no option -x; it has --purge, --since, --json and --help"],
  [["a/b", "--constructor"], "tain remove has no option --constructor; it has --purge, --since, --json and --help"],
  [["a/b", "--purge=yes"], "--purge takes no value: write it alone"],
  [["a/b", "--json="], "--json takes no value: write it alone"],
  [["a/b", "--since"], "--since needs a value: --since TIME"],
  [["a/b", "--since="], "--since needs a value: --since TIME"],
  [["a/b", "--since", "--purge"], "--since needs a value: --since TIME"],
  [["a/b", "--since", "1h", "--since=2h"], "--since is given twice: give it once"],
])("the arguments %j make no sense, and it is said why", (args, message) => {
  expect(() => parseArguments(command, args)).toThrow(new UsageError(message));
});

const groups = { deliveries, token, writes };

test.each([
  [["deliveries"], "tain deliveries needs to know what to do: list, show or replay"],
  [["deliveries", "toString"], 'tain deliveries does not know "toString": write list, show or replay after it'],
  [["deliveries", "list", "x"], 'tain deliveries list takes no arguments: "x" has no meaning here'],
  [["deliveries", "list", "--status", "lost"], "--status lost is no status: write pending, applied, ignored or failed"],
  [["deliveries", "list", "--limit", "1e3"], "--limit 1e3 is not a number from 1 to 1000"],
  [
    ["deliveries", "list", "--since=yesterday"],
    "--since is not a duration: yesterday (write 30s, 5m, 24h, 7d or plain seconds)",
  ],
  [["deliveries", "show"], "tain deliveries show needs one GUID or id: `tain deliveries list` has them"],
  [
    ["deliveries", "replay"],
    "tain deliveries replay needs to know which: GUIDs or ids (`tain deliveries list` has them), or --failed",
  ],
  [
    ["deliveries", "replay", "a", "--failed"],
    "--failed replays all that have failed: name deliveries, or write --failed, not both",
  ],
  [
    ["token", "create", "--permissions", "issues:write", "--write"],
    "--permissions says what it may write: leave out --write, or --permissions",
  ],
  [
    ["token", "create", "--permissions", "issues:admin"],
    '--permissions does not know "issues:admin": write metadata:read, issues:read, issues:write, pull_requests:read, pull_requests:write, checks:read, statuses:read, contents:read, deployments:read, actions:read or hooks:write',
  ],
  [
    ["token", "create", "--permissions", "issues:read,issues:write"],
    "--permissions names issues twice: write it once, as read or as write",
  ],
  [["writes"], "tain writes needs to know what to do: list"],
  [["writes", "list", "--repo", "octo"], "octo is not owner/name: the owner is missing, or the name"],
  [["writes", "list", "--limit", "0"], "--limit 0 is not a number from 1 to 1000"],
  [["token", "revoke"], "tain token revoke needs names or ids (`tain token list` has them), or --all in their place"],
  [["token", "revoke", "ghp_notOurs"], "That is neither the name nor the id of a token: `tain token list` shows them"],
  ...["CI", "-ci", "ci bot", "ci_bot", "a".repeat(40), "tain_abc"].map((name): [string[], string] => [
    ["token", "create", `--name=${name}`],
    `--name takes 1 to 39 of a-z, 0-9 and hyphens, and no hyphen first; such as ci-bot, and not ${JSON.stringify(name)}`,
  ]),
  [["token", "create", "--name", "0123456789ab"], "--name takes no 12 hexadecimal digits: those are the id of a token"],
])("tain %j makes no sense, and it is said why before any store is needed", async ([name, ...args], message) => {
  const run = async () => {
    const group = groups[name as keyof typeof groups];
    const { command, args: rest } = chooseAction(group, args);
    return await command.run(
      { ...parseArguments(command, rest), env: {}, resources: new AsyncDisposableStack() },
      openOutput({ json: true }, process),
    );
  };
  await expect(run()).rejects.toThrow(new UsageError(message));
});

test("a value stands behind its option or after an equals sign, and may be negative or contain one", () => {
  for (const args of [
    ["a/b", "--since", "-1=h"],
    ["--since=-1=h", "a/b"],
  ])
    expect(parseArguments(command, args)).toEqual({
      words: ["a/b"],
      flags: new Set(),
      values: new Map([["since", "-1=h"]]),
    });
});

test("flags stand anywhere, and what follows -- is no flag", () => {
  expect(parseArguments(command, ["a/b", "--json", "c/d", "--", "--purge"])).toEqual({
    words: ["a/b", "c/d", "--purge"],
    flags: new Set(["json"]),
    values: new Map(),
  });
  const { takes: _, ...bare } = command;
  expect(() => parseArguments(bare, ["octo/demo"])).toThrow(
    new UsageError('tain remove takes no arguments: "octo/demo" has no meaning here'),
  );
});

test.each([
  [[], "tain add needs to know what: owner/name, or owner/* in quotes for all of an owner's"],
  [["/demo"], "/demo is neither owner/name nor owner/*"],
  [
    ["https://github.com/octo/demo.git"],
    "https://github.com/octo/demo.git is neither owner/name nor owner/*: write octo/demo",
  ],
  [["git@github.com:octo/demo.git"], "git@github.com:octo/demo.git is neither owner/name nor owner/*: write octo/demo"],
])("%j is no pattern, and it is said what is", (words, message) => {
  expect(() => readPatterns("add", words)).toThrow(new UsageError(message));
});

test("patterns are told apart without their letters' case; a command for single repositories takes no owner/*", () => {
  expect(readPatterns("add", ["Octo/Demo", "octo/demo", "octo/*"])).toEqual(["octo/demo", "octo/*"]);
  expect(() => readNames(["octo/*"])).toThrow(new UsageError("octo/* is not owner/name"));
});

test("every command has help that says what it takes and which options it has", async () => {
  const { code, stdout } = await tain([]);
  expect(code).toBe(0);
  const names = [...stdout.matchAll(/^ {2}(\w+) {2,}\S/gm)].map(([, name]) => name as string);
  expect(names).toEqual([
    "init",
    "up",
    "web",
    "worker",
    "scheduler",
    "add",
    "remove",
    "status",
    "quota",
    "backfill",
    "audit",
    "follow",
    "mcp",
    "deliveries",
    "jobs",
    "hooks",
    "app",
    "targets",
    "token",
    "sql",
    "export",
    "readers",
    "writes",
    "migrate",
    "doctor",
  ]);
  const helps = await Promise.all(names.map(async (name) => ({ name, help: await tainHere([name, "--help"], HERE) })));
  for (const { name, help } of helps) {
    expect(help, name).toMatchObject({ code: 0, stderr: "" });
    expect(help.stdout).toMatch(new RegExp(`^Usage: tain ${name} `));
    for (const option of ["--json", "--help"]) expect(help.stdout).toContain(`  ${option} `);
  }
  expect((await tainHere(["help", "add"], HERE)).stdout).toBe((await tainHere(["add", "-h"], HERE)).stdout);
  expect((await tainHere(["--version"], HERE)).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test("before the first start a command says how to begin", async () => {
  const message =
    "tain: Tain has not run in /nonexistent/tain yet: begin with `npm start`, or set UPSTREAM_URL and UPSTREAM_TOKEN\n";
  expect(await tain(["status"])).toEqual({ code: 1, stdout: "", stderr: message });
});

test("up refuses what it cannot know how to run, before anything is started", async () => {
  const production = await tain(["up"], { NODE_ENV: "production" });
  expect(production).toEqual({
    code: 1,
    stdout: "",
    stderr:
      "tain: With NODE_ENV=production there is no demonstration: set DATABASE_URL, REDIS_URL, UPSTREAM_URL and UPSTREAM_TOKEN\n",
  });
  const half = await tain(["up"], { UPSTREAM_TOKEN: "ghp_secretOfSomebody" });
  expect(half.code).toBe(1);
  expect(half.stderr).toMatch(
    /^tain: UPSTREAM_TOKEN is set and UPSTREAM_URL is not: set it to https:\/\/api\.github\.com/,
  );
  expect(half.stderr).not.toContain("ghp_secretOfSomebody");
});

test("up reports every problem of the settings at once", async () => {
  const { code, stderr } = await tain(["up"], {
    PORT: "eighty",
    DATABASE_URL: "mysql://x",
    UPSTREAM_URL: "github.com",
    REPOSITORIES: "octo",
  });
  expect(code).toBe(1);
  const names = ["PORT", "DATABASE_URL", "REDIS_URL", "UPSTREAM_URL", "UPSTREAM_TOKEN", "REPOSITORIES"];
  expect(
    stderr
      .trim()
      .split("\n")
      .map((line) => line.trim().split(" ")[0]),
  ).toEqual(["tain:", ...names]);
});

test("a store that is not there is a sentence, without its password and without a stack; TAIN_DEBUG shows the stack", async () => {
  const env = {
    DATABASE_URL: "postgres://me:s3cret-word@127.0.0.1:1/x",
    REDIS_URL: "redis://127.0.0.1:1",
    UPSTREAM_URL: "http://127.0.0.1:1",
    UPSTREAM_TOKEN: "t",
    PORT: "0",
  };
  const { code, stderr } = await tain(["up"], env);
  expect(code).toBe(1);
  expect(stderr).toBe(
    "tain: Postgres cannot be used (connect ECONNREFUSED 127.0.0.1:1): see that DATABASE_URL is right and the server runs\n",
  );
  expect((await tain(["up"], { ...env, TAIN_DEBUG: "1" })).stderr).toMatch(/\n {4}at /);
});

const instance: Instance = {
  apiUrl: "http://127.0.0.1:8080",
  token: "t",
  webhookUrl: "http://127.0.0.1:8080/webhooks",
  webhookSecret: "of the instance",
  encryptionKey: null,
  operatorToken: null,
  upstreamUrl: "https://api.github.com",
  upstreamToken: "token of the instance",
  repositories: [],
};

test("a command takes from the instance what the environment leaves out, but shows its token to no other upstream", () => {
  expect(completed({}, instance)).toMatchObject({
    UPSTREAM_URL: instance.upstreamUrl,
    UPSTREAM_TOKEN: instance.upstreamToken,
    WEBHOOK_SECRET: "of the instance",
  });
  expect(completed({ UPSTREAM_TOKEN: "mine", WEBHOOK_SECRET: "ours" }, instance)).toMatchObject({
    UPSTREAM_URL: instance.upstreamUrl,
    UPSTREAM_TOKEN: "mine",
    WEBHOOK_SECRET: "ours",
  });
  expect(completed({ UPSTREAM_URL: "https://evil.example" }, instance)).not.toHaveProperty("UPSTREAM_TOKEN");
});

test("spans, counts, lists and tables read as a person writes them", () => {
  expect([0, 400, 4_000, 90_000, 3_600_000, 7_500_000, 100_000_000].map(spanOf)).toEqual([
    "0s",
    "0s",
    "4s",
    "1m 30s",
    "1h",
    "2h 5m",
    "1d 3h",
  ]);
  expect([counted(1, "page"), counted(2_412, "page"), counted(0, "copy", "copies")]).toEqual([
    "1 page",
    "2,412 pages",
    "0 copies",
  ]);
  expect([listOf(["a"]), listOf(["a", "b"]), listOf(["a", "b", "c"])]).toEqual(["a", "a and b", "a, b and c"]);
  expect(
    tableLines(
      ["A", "LONG"],
      [
        ["xxx", "1"],
        ["y", ""],
      ],
    ).split("\n"),
  ).toEqual(["A    LONG", "xxx  1", "y"]);
});

test("the pace is what was read between two looks; without an end in access no time to go is invented", () => {
  const before = { at: 0, pages: 10, expectedPages: 100, resources: 1_000 };
  const now = { at: 5_000, pages: 20, expectedPages: 100, resources: 2_000 };
  expect(paceBetween(before, now)).toEqual({ resourcesPerSecond: 200, remainingMs: 40_000 });
  expect(paceBetween(before, { ...now, expectedPages: null })).toEqual({ resourcesPerSecond: 200, remainingMs: null });
  expect(paceBetween(before, { ...before, at: 5_000 })).toBe(null);
  expect(paceLine(now, paceBetween(before, now))).toBe("2,000 resources in 20 of 100 pages, 200/s, about 40s to go");
  expect(paceLine({ ...now, expectedPages: null }, null)).toBe("2,000 resources in 20 pages");
});

test.each(["token list", "status", "jobs list", "hooks list"])(
  "tain %s without its Postgres says what to see to, and not where in the code",
  async (command) => {
    const settings = {
      ...{ DATABASE_URL: "postgres://tain@127.0.0.1:1/tain", REDIS_URL: "redis://127.0.0.1:1" },
      ...{ UPSTREAM_URL: "http://127.0.0.1:1", UPSTREAM_TOKEN: "t" },
    };
    const { code, stderr } = await tainHere(command.split(" "), { ...HERE, ...settings });
    expect([code, stderr]).toEqual([
      1,
      "tain: Postgres cannot be used (connect ECONNREFUSED 127.0.0.1:1): see that DATABASE_URL is right and the server runs\n",
    ]);
  },
);

test("what shows the quota loads nothing of the queues, which would take longer than the rest", async () => {
  const hook = `import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
    process.on("exit", () => console.log(JSON.stringify(loaded)));`;
  const settings = {
    ...{ DATABASE_URL: "postgres://tain@127.0.0.1:1/tain", REDIS_URL: "redis://127.0.0.1:1" },
    ...{ UPSTREAM_URL: "http://127.0.0.1:1", UPSTREAM_TOKEN: "t" },
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}`,
  };
  const { stdout } = await tain(["quota"], settings);
  const loaded: string[] = JSON.parse(stdout);
  expect(loaded.filter((url) => url.includes("/pg/")).length).toBeGreaterThan(0);
  expect(loaded.filter((url) => url.includes("/bullmq/"))).toEqual([]);
});
