// Which room may import which. Imports of types count too: a type that leads in a circle joins rooms just as a value does.
import { readdir, readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { CHECKOUT } from "./checkout.mjs";

const ROOT = ["src/version.ts", "src/json.ts", "src/failure.ts"];
const BASE = [...ROOT, "src/config.ts", "src/config", "src/operations", "db", "src/stores.ts"];
const OPEN = [...BASE, "src/queues", "src/context.ts"];
const PRODUCTION = [...OPEN, "src/http", "src/upstream", "src/mirror", "src/inbox"];

/** @typedef {Map<string, string[]>} Graph Each file's imports, by its path. */

/**
 * A room, and what it may import beside itself. "*": everything. The longest name that fits a file is its room.
 * @type {Record<string, string[]>}
 */
const ARROWS = {
  "src/simulator": [],
  "src/version.ts": [],
  "src/json.ts": [],
  "src/failure.ts": [],
  "src/config": ["src/failure.ts"],
  "src/config.ts": ["src/failure.ts", "src/config"],
  "src/operations": ["src/version.ts", "src/failure.ts", "src/config.ts", "src/config", "db"],
  db: ["src/version.ts", "src/failure.ts", "src/config.ts"],
  "src/stores.ts": ["src/config.ts", "src/operations", "db"],
  "src/queues": BASE,
  "src/http": ["src/config.ts", "src/operations"],
  "src/upstream": BASE,
  "src/context.ts": [...BASE, "src/queues", "src/upstream", "src/mirror"],
  "src/mirror": BASE,
  "src/inbox": OPEN,
  "src/events": OPEN,
  "src/receiver": [...OPEN, "src/http", "src/inbox"],
  "src/sync": [...OPEN, "src/upstream", "src/mirror", "src/inbox", "src/events"],
  "src/api": [...OPEN, "src/http", "src/upstream", "src/mirror", "src/events"],
  "src/health": [...PRODUCTION, "src/sync"],
  "src/operator": [...PRODUCTION, "src/events", "src/sync", "src/api", "src/health"],
  "src/web.ts": [...PRODUCTION, "src/receiver", "src/api", "src/health", "src/operator"],
  "src/cli": [...PRODUCTION, "src/events", "src/receiver", "src/sync", "src/api", "src/health"],
  workers: [
    ...[...PRODUCTION, "src/events", "src/receiver", "src/sync", "src/api", "src/health"],
    "workers/commands.ts",
  ],
  // What an operator asks for on the page is a command: this worker runs it as a terminal does.
  "workers/commands.ts": [...PRODUCTION, "src/cli/asked.ts", "workers"],
  "src/cli/asked.ts": [...OPEN, "src/cli"],
  "scripts/generate": ["src/config", "src/api"],
  scripts: [],
  bench: ["*"],
  test: ["*"],
};

/**
 * Every import that the table does not allow, and every circle, in words. `files`: texts by path. Pure.
 * @param {ReadonlyMap<string, string>} files
 */
export function faultyImports(files) {
  /** @type {Graph} */
  const graph = new Map();
  for (const [path, text] of files) graph.set(path, [...new Set(importsOf(path, text))]);
  const wrong = [...graph].flatMap(([from, imports]) =>
    imports.filter((to) => !isAllowed(from, to)).map((to) => `${from} must not import ${to}`),
  );
  return [...wrong, ...circles(graph).map((circle) => `A circle: ${circle.join(" → ")}`)];
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
  return own === other || allowed.includes(other);
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
  const faults = faultyImports(await sources());
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  process.exitCode = faults.length === 0 ? 0 : 1;
}
