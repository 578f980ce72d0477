/**
 * The simulator as a process. One line of JSON on stdout when it listens: `{"ready":true,"url":…,"token":…,…}`.
 * It ends on SIGTERM, SIGINT, or when the process that spawned it with an IPC channel goes away.
 */

import { randomBytes } from "node:crypto";
import { totalmem } from "node:os";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { generateWorld } from "./generate/generate.ts";
import type { CodeSizes } from "./generate/generate-code.ts";
import { loadHistory } from "./generate/histories.ts";
import type { QuotaLimits } from "./quota/quota.ts";
import { openSimulator } from "./simulator.ts";
import type { AppInput } from "./world/apps.ts";
import { SettableClock } from "./world/clock.ts";
import { trusted } from "./world/json.ts";
import { World } from "./world/world.ts";

const USAGE = `Usage: node src/simulator/main.ts [options]     (each option also as SIMULATOR_<NAME> in the environment)
  --port N            default: any free port
  --host ADDRESS      default: 127.0.0.1
  --seed N            default: 1
  --repositories N    generate a world with so many repositories
  --issues N          … and so many issues
  --pulls N           … and so many pull requests (default: half as many)
  --code JSON         … with check runs, branches and releases in each, e.g. {"branches":300,"releases":200}; {} is a few;
                      deployments and runs of workflows only when it names them: {"deployments":50,"workflowRuns":50}
  --history FILE      load a real history (.json or .json.gz); may be given with a generated world
  --live RATE         changes a second, from the start
  --token T           default: a random one
  --login L           whose token it is; default: octocat
  --limits JSON       limits other than the service's, e.g. {"core":15000,"restPointsPerMinute":null}; null is no limit
  --apps JSON         GitHub Apps: one or an array of {"slug", "id", "clientId", "keys": [PEM], "permissions", "events",
                      "webhook": {"url", "secret"}, "installations": [{"account", "repositories"}]}; without keys a
                      pair is made and the private one printed
  --html-url URL      base of html_url; default: https://github.com`;

const OPTIONS = [
  "port",
  "host",
  "seed",
  "repositories",
  "issues",
  "pulls",
  "code",
  "history",
  "live",
  "token",
  "login",
  "limits",
  "apps",
  "html-url",
] as const;
type Option = (typeof OPTIONS)[number];

// A world of a million issues does not fit into V8's default heap.
setFlagsFromString(`--max-old-space-size=${Math.floor((totalmem() / 1_048_576) * 0.75)}`);

const given = readOptions();
const problems: string[] = [];
const numberOf = (name: Option, otherwise: number): number => {
  const value = given[name] === undefined ? otherwise : Number(given[name]);
  if (!(value >= 0)) problems.push(`--${name} should be a number that is not negative, not "${given[name]}"`);
  return value;
};
const port = numberOf("port", 0);
const seed = numberOf("seed", 1);
const repositories = numberOf("repositories", given.issues === undefined ? 0 : 1);
const issues = numberOf("issues", repositories * 100);
const pulls = given.pulls === undefined ? undefined : numberOf("pulls", 0);
const live = numberOf("live", 0);
const limits = readLimits(given.limits);
const apps = readApps(given.apps);
const code = readCode(given.code);
if (problems.length > 0) {
  console.error(`Cannot start the simulator:\n  ${problems.join("\n  ")}\n${USAGE}`);
  process.exit(1);
}

const world = new World({ seed, clock: new SettableClock() });
if (repositories > 0)
  generateWorld(world, {
    seed,
    repositories,
    issues,
    ...(pulls === undefined ? {} : { pulls }),
    ...(code ? { code } : {}),
  });
if (given.history) await loadHistory(world, given.history);

const token = given.token ?? `ghp_${randomBytes(18).toString("hex")}`;
const login = given.login ?? "octocat";
const simulator = await openSimulator({
  world,
  seed,
  port,
  host: given.host ?? "127.0.0.1",
  tokens: [{ token, login, repositories: "all" }],
  quota: { limits },
  ...(given["html-url"] === undefined ? {} : { htmlUrl: given["html-url"] }),
});
const madeApps = makeApps();
if (live > 0) simulator.startLive({ ratePerSecond: live, seed });

const names = [...world.repositories.values()].map((repository) => world.fullName(repository));
console.log(
  JSON.stringify({
    ready: true,
    url: simulator.url,
    graphqlUrl: `${simulator.url}/graphql`,
    token,
    login,
    repositories: names,
    ...(madeApps.length > 0 ? { apps: madeApps } : {}),
  }),
);

const stop = () => {
  // A second signal ends it at once.
  process.once("SIGINT", () => process.exit(130));
  void simulator.close().then(() => {
    if (process.connected) process.disconnect?.();
  });
};
process.once("SIGTERM", stop);
process.once("SIGINT", stop);
if (process.channel) process.once("disconnect", stop);

function readOptions(): Partial<Record<Option, string>> {
  const options = Object.fromEntries(
    [...OPTIONS, "help"].map((name) => [name, { type: name === "help" ? "boolean" : "string" } as const]),
  );
  try {
    const { values } = parseArgs({ options });
    if (values.help) {
      console.log(USAGE);
      process.exit(0);
    }
    // Object.fromEntries forgets the names, which are those of OPTIONS.
    const fromEnvironment = OPTIONS.map(
      (name) => [name, process.env[`SIMULATOR_${name.toUpperCase().replace("-", "_")}`]] as const,
    );
    return { ...Object.fromEntries(fromEnvironment.filter(([, value]) => value)), ...values } as Partial<
      Record<Option, string>
    >;
  } catch (error) {
    console.error(`Cannot start the simulator: ${reasonOf(error)}\n${USAGE}`);
    process.exit(1);
  }
}

function readLimits(text: string | undefined): Partial<QuotaLimits> {
  if (text === undefined) return {};
  try {
    const json = trusted<Record<string, number | null>>(JSON.parse(text));
    return Object.fromEntries(Object.entries(json).map(([name, value]) => [name, value ?? Number.POSITIVE_INFINITY]));
  } catch (error) {
    problems.push(`--limits should be JSON: ${reasonOf(error)}`);
    return {};
  }
}

function readCode(text: string | undefined): CodeSizes | undefined {
  if (text === undefined) return undefined;
  try {
    return trusted<CodeSizes>(JSON.parse(text));
  } catch (error) {
    problems.push(`--code should be JSON: ${reasonOf(error)}`);
    return undefined;
  }
}

function readApps(text: string | undefined): readonly AppInput[] {
  if (text === undefined) return [];
  try {
    return trusted<AppInput[]>([JSON.parse(text)].flat());
  } catch (error) {
    problems.push(`--apps should be JSON: ${reasonOf(error)}`);
    return [];
  }
}

function makeApps(): object[] {
  try {
    return apps.map((input) => {
      const { app, privateKey } = simulator.apps.create(input);
      const { id, clientId, slug } = app;
      const installations = simulator.apps.of(app).map((installation) => installation.id);
      return { id, clientId, slug, installations, ...(privateKey === null ? {} : { privateKey }) };
    });
  } catch (error) {
    console.error(`Cannot start the simulator: --apps: ${reasonOf(error)}\n${USAGE}`);
    process.exit(1);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
