// The launcher of all programs: `node scripts/run.mjs <command>`. It needs only Node 20 and no packages, since it
// installs those.
import { adoptStoreFiles } from "./store-files.mjs";
import { Refusal, say } from "./voice.mjs";

const USAGE = `Usage: node scripts/run.mjs <command> [arguments]

  start [arguments]   npm start: the mirror, with an embedded Postgres and Redis unless
                      DATABASE_URL and REDIS_URL name others
  test [arguments]    npm test: vitest, with stores that are opened when a file needs them, and thrown away afterwards
  bench [arguments]   npm run bench: the benchmarks, with such stores
  simulate [arguments]
                      npm run simulate: seeds of changes and faults, and whether the mirror becomes
                      equal to upstream after them
  proofs [name…]      npm run proofs: what takes too long for every change, each figure beside its bound
  plants [name…]      npm run plants: small bugs in a copy of the sources, and which test finds each
  migration --name NAME
                      npm run migration: the next migration, by what has changed in the schema's description
  emit                what npm run package packs: the sources as JavaScript, in dist
  check               npm run check: types, lint, format, import arrows, dead code
  advisories          a part of npm run verify: whether the registry knows of faults in the packages of production
  tain <command>      npm run tain: the command line, on the running instance

State is kept in TAIN_HOME (.tain). TAIN_REDIS_FROM=path|deb|docker|valkey allows one source of Redis only.
TAIN_POSTGRES=15|16|17 takes that Postgres instead of our own: Debian's where it is installed, or npm's.
TAIN_POSTGRES_BUFFERS=512MB is what Postgres keeps pages in, instead of 128MB.
`;

/**
 * The commands. Each returns the exit code.
 * @type {Record<string, (args: string[]) => Promise<number>>}
 */
const COMMANDS = {
  start: async (args) => (await import("./start.mjs")).start(args),
  test: async (args) => (await import("./with-stores.mjs")).test(args),
  bench: async (args) => (await import("./with-stores.mjs")).bench(args),
  simulate: async (args) => (await import("./with-stores.mjs")).simulate(args),
  proofs: async (args) => (await import("./with-stores.mjs")).proofs(args),
  plants: async (args) => (await import("./with-stores.mjs")).plants(args),
  migration: async (args) => (await import("./with-stores.mjs")).migration(args),
  emit: async (args) => (await import("./with-stores.mjs")).emit(args),
  check: async () => (await import("./check.mjs")).check(),
  advisories: async () => (await import("./advisories.mjs")).advisories(),
  tain: async (args) => (await import("./tain.mjs")).tain(args),
};

const [name, ...args] = process.argv.slice(2);
const command = name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
if (name === "--help" || name === "-h") {
  process.stdout.write(USAGE);
} else if (!command) {
  process.stderr.write(`${name === undefined ? "No command" : `Unknown command: ${name}`}\n\n${USAGE}`);
  process.exitCode = 2;
} else {
  try {
    if (process.platform === "win32") throw new Refusal("Windows is not supported: use WSL, docker or another machine");
    adoptStoreFiles(process.env);
    process.exitCode = await command(args);
  } catch (error) {
    if (error instanceof Error && error.name === "AbortError") say("interrupted");
    else if (error instanceof Refusal) say(error.message);
    else console.error(error);
    process.exitCode = 1;
  }
  // Remaining sockets and timers only watch processes, and would keep the launcher alive.
  process.exit();
}
