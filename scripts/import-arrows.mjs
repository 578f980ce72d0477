// Which room (a folder, or a file) may import which. Imports of types count too, since they couple rooms as values do.
import { readdir, readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { CHECKOUT } from "./checkout.mjs";

/** The rooms that "base" stands for. A row with "base" may import all of these, used or not. */
const BASE = [
  ...["src/version.ts", "src/json.ts", "src/sent-json.ts", "src/failure.ts"],
  ...["src/config.ts", "src/config", "src/operations", "src/waits", "src/work", "db", "src/schema.ts"],
];

/** @typedef {Map<string, string[]>} Graph Each file's imports, by its path. */

/**
 * A room, and what it may import beside itself. "*": everything. An arrow that no file uses is a fault. The longest
 * name that fits a file is its room.
 * @type {Record<string, string[]>}
 */
const ARROWS = {
  "src/simulator": [],
  "src/version.ts": [],
  "src/json.ts": [],
  "src/sent-json.ts": ["src/json.ts"],
  "src/failure.ts": [],
  "src/config": [],
  // The release process reads its database's address without a configuration.
  "src/config/secret-files.ts": ["src/failure.ts"],
  "src/config.ts": ["src/failure.ts", "src/config", "src/config/secret-files.ts"],
  "src/operations": ["src/version.ts", "src/failure.ts", "src/config.ts", "src/config", "src/waits", "db"],
  // The waits between attempts, and for a store or a collector, are counted in the same way everywhere.
  "src/waits": [],
  "src/work": ["src/failure.ts", "src/operations", "db"],
  db: ["src/version.ts", "src/failure.ts", "src/config/secret-files.ts", "src/waits"],
  "src/stores.ts": ["src/config.ts", "src/operations", "src/waits", "db"],
  "src/queues": ["base", "src/stores.ts"],
  "src/http": ["src/operations"],
  "src/upstream": ["base", "src/stores.ts"],
  "src/context.ts": ["base", "src/stores.ts", "src/queues", "src/upstream", "src/mirror"],
  "src/kinds": ["base"],
  // The schema, for people who query the mirror.
  "src/schema.ts": ["db", "src/kinds"],
  "src/mirror": ["base", "src/kinds"],
  "src/inbox": ["base", "src/context.ts", "src/queues"],
  "src/events": ["base", "src/kinds", "src/context.ts", "src/queues"],
  "src/receiver": ["base", "src/context.ts", "src/http", "src/inbox"],
  "src/sync": [
    "base",
    "src/kinds",
    "src/context.ts",
    "src/queues",
    "src/upstream",
    "src/mirror",
    "src/inbox",
    "src/events",
  ],
  // Which route answers what.
  "src/api": [
    ...["base", "src/kinds", "src/context.ts", "src/http", "src/mirror", "src/events", "src/api/call"],
    ...["src/api/callers", "src/api/dialect", "src/api/streams", "src/api/description"],
    ...["src/api/rest", "src/api/graphql", "src/api/feed", "src/api/forward", "src/api/edge"],
  ],
  "src/api/dialect": ["base", "src/kinds", "src/context.ts", "src/http", "src/upstream", "src/mirror"],
  // What a call is, to whichever door it comes.
  "src/api/call": [
    ...["base", "src/kinds", "src/context.ts", "src/http", "src/mirror"],
    ...["src/api/callers", "src/api/dialect", "src/api/forward"],
  ],
  // What a caller has registered ends with their rights.
  "src/api/callers": [
    "base",
    "src/kinds",
    "src/context.ts",
    "src/http",
    "src/upstream",
    "src/mirror",
    "src/events",
    "src/api/dialect",
  ],
  "src/api/record": ["base", "src/context.ts", "src/upstream", "src/api/call", "src/api/callers", "src/api/dialect"],
  // How writes are sent and stored, for REST, mutations and forwarded writes.
  "src/api/writes": [
    ...["base", "src/kinds", "src/upstream", "src/mirror"],
    ...["src/api/call", "src/api/callers", "src/api/dialect", "src/api/record"],
  ],
  "src/api/forward": [
    ...["base", "src/kinds", "src/context.ts", "src/http", "src/upstream", "src/mirror"],
    ...["src/api/call", "src/api/callers", "src/api/dialect", "src/api/record", "src/api/writes"],
  ],
  "src/api/streams": ["base", "src/http", "src/events", "src/api/call", "src/api/callers"],
  "src/api/rest": [
    ...["base", "src/kinds", "src/queues", "src/http", "src/upstream", "src/mirror", "src/events"],
    ...["src/api/call", "src/api/callers", "src/api/dialect", "src/api/record", "src/api/writes", "src/api/forward"],
  ],
  "src/api/graphql": [
    ...["base", "src/kinds", "src/http", "src/upstream", "src/mirror", "src/events", "src/api/call", "src/api/callers"],
    ...["src/api/dialect", "src/api/record", "src/api/writes", "src/api/forward", "src/api/streams"],
  ],
  "src/api/feed": [
    ...["base", "src/kinds", "src/http", "src/mirror", "src/events"],
    ...["src/api/call", "src/api/callers", "src/api/dialect", "src/api/streams"],
  ],
  "src/api/edge": [
    ...["base", "src/context.ts", "src/http", "src/upstream"],
    ...["src/api/call", "src/api/dialect", "src/api/forward", "src/api/graphql"],
  ],
  "src/api/description": ["base", "src/http", "src/api/call", "src/api/dialect", "src/api/rest", "src/api/graphql"],
  "src/health": ["base", "src/context.ts", "src/queues", "src/http", "src/upstream", "src/inbox", "src/sync"],
  "src/operator": [
    ...["base", "src/context.ts", "src/queues", "src/http", "src/upstream"],
    ...["src/inbox", "src/events", "src/sync", "src/api/callers", "src/api/dialect", "src/health"],
  ],
  "src/web.ts": [
    ...["base", "src/context.ts", "src/http", "src/upstream"],
    ...["src/receiver", "src/api", "src/health", "src/operator"],
  ],
  "src/cli": [
    ...["base", "src/stores.ts", "src/context.ts", "src/queues", "src/http", "src/upstream", "src/mirror"],
    ...["src/inbox", "src/events", "src/sync", "src/api/call", "src/api/callers", "src/api/record", "src/health"],
  ],
  workers: [
    ...["base", "src/context.ts", "src/queues", "src/upstream"],
    ...["src/inbox", "src/events", "src/sync", "src/api/record", "src/health", "workers/commands.ts"],
  ],
  // The three processes in one, for `tain up`, which it also does the work of.
  "workers/one.ts": ["base", "src/context.ts", "src/web.ts", "src/cli", "workers"],
  // Operators ask for commands on the operator's page, and this worker runs them as a terminal does.
  "workers/commands.ts": ["base", "src/queues", "src/cli/asked.ts", "workers"],
  "src/cli/asked.ts": ["base", "src/context.ts", "src/queues", "src/cli"],
  "scripts/generate": ["src/config", "src/api", "src/api/description", "src/api/graphql", "src/schema.ts", "db"],
  scripts: [],
  bench: ["*"],
  test: ["*"],
};

/**
 * Every import that the table does not allow, and every circle of files or folders, in words. Pure.
 * `files`: texts by path.
 * @param {ReadonlyMap<string, string>} files
 */
export function faultyImports(files) {
  const graph = graphOf(files);
  const wrong = [...graph].flatMap(([from, imports]) =>
    imports.filter((to) => !isAllowed(from, to)).map((to) => `${from} must not import ${to}`),
  );
  const homeless = [...graph.keys()]
    .filter((path) => /^(src|db|workers)\//.test(path) && roomOf(path) === null)
    .map((path) => `${path} is in no room: say in ARROWS what it may import`);
  const knots = circles(graph).map((circle) => `A circle: ${circle.join(" → ")}`);
  const rooms = circles(foldersOf(graph)).map((circle) => `A circle of folders: ${circle.join(" → ")}`);
  return [...wrong, ...homeless, ...knots, ...rooms];
}

/**
 * Every arrow of the table that no file uses, in words. Pure.
 * @param {ReadonlyMap<string, string>} files
 */
export function unusedArrows(files) {
  const used = new Set(
    [...graphOf(files)].flatMap(([from, imports]) => imports.map((to) => `${roomOf(from)} → ${roomOf(to)}`)),
  );
  return Object.entries(ARROWS).flatMap(([room, allowed]) =>
    allowed
      .filter((to) => to !== "*" && to !== "base" && !used.has(`${room} → ${to}`))
      .map((to) => `${room} may import ${to}, and no file does`),
  );
}

/**
 * @param {ReadonlyMap<string, string>} files
 * @returns {Graph}
 */
function graphOf(files) {
  return new Map([...files].map(([path, text]) => [path, [...new Set(importsOf(path, text))]]));
}

/**
 * The imports between folders. A file beside the folders of `src` stands for itself.
 * @param {Graph} files
 * @returns {Graph}
 */
function foldersOf(files) {
  /** @type {(path: string) => string} */
  const folderOf = (path) => (posix.dirname(path) === "src" ? path : posix.dirname(path));
  /** @type {Graph} */
  const folders = new Map();
  for (const [from, imports] of files) {
    // Tests and benchmarks are no rooms.
    if (!/^(src|db|workers|scripts)\//.test(from)) continue;
    const own = folderOf(from);
    const others = imports.filter((to) => files.has(to)).map(folderOf);
    folders.set(
      own,
      [...new Set([...(folders.get(own) ?? []), ...others])].filter((to) => to !== own),
    );
  }
  return folders;
}

/**
 * Files by their path, packages by their name.
 * @param {string} path
 * @param {string} text
 */
function importsOf(path, text) {
  const found = text.matchAll(/^(?:import|export)\b[^;"]*?from "([^"]+)"|^import "([^"]+)"|import\("([^"]+)"\)/gm);
  return [...found]
    .map(([, from, bare, dynamic = ""]) => from ?? bare ?? dynamic)
    .map((each) => (each.startsWith(".") ? posix.join(posix.dirname(path), each) : each));
}

/**
 * @param {string} from
 * @param {string} to
 */
function isAllowed(from, to) {
  const own = roomOf(from);
  if (own === null || to.startsWith("node:")) return true;
  const allowed = ARROWS[own] ?? [];
  if (allowed.includes("*")) return true;
  const other = roomOf(to);
  // The launcher runs before dependencies are installed.
  if (other === null) return own !== "scripts";
  return own === other || allowed.includes(other) || (allowed.includes("base") && BASE.includes(other));
}

/** @param {string} path */
function roomOf(path) {
  const rooms = Object.keys(ARROWS).filter((room) => path === room || path.startsWith(`${room}/`));
  return rooms.sort((one, other) => other.length - one.length)[0] ?? null;
}

/**
 * One circle of each knot of files. A depth-first search meets each knot at least once.
 * @param {Graph} graph
 */
function circles(graph) {
  /** @type {Map<string, "open" | "done">} */
  const state = new Map();
  /** @type {string[][]} */
  const found = [];
  /** @type {(path: string, way: string[]) => void} */
  const visit = (path, way) => {
    state.set(path, "open");
    for (const next of graph.get(path) ?? []) {
      if (state.get(next) === "open") found.push([...way.slice(way.indexOf(next)), path, next]);
      else if (!state.has(next)) visit(next, [...way, path]);
    }
    state.set(path, "done");
  };
  for (const path of graph.keys()) if (!state.has(path)) visit(path, []);
  return found;
}

/** Our sources by path below the checkout. */
async function sources() {
  /** @type {Map<string, string>} */
  const files = new Map();
  for (const top of ["src", "db", "workers", "scripts", "bench", "test"]) {
    for (const entry of await readdir(join(CHECKOUT, top), { recursive: true, withFileTypes: true })) {
      if (!/\.(ts|mjs)$/.test(entry.name)) continue;
      const whole = join(entry.parentPath, entry.name);
      files.set(whole.slice(CHECKOUT.length).replace(/^\//, ""), await readFile(whole, "utf8"));
    }
  }
  return files;
}

if (process.argv[1] === import.meta.filename) {
  const files = await sources();
  const faults = [...faultyImports(files), ...unusedArrows(files)];
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  process.exitCode = faults.length === 0 ? 0 : 1;
}
