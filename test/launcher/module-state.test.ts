/**
 * A module holds no state: what changes belongs to an object that is passed. What a module works out at load is never
 * written again, and its type says so. What browsers run is left out: there a module is as old as its one page.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../docs/markdown.ts";

/** Declarations of a module begin a line, since Biome formats it. */
const DECLARED = /^(?:export )?(let|var|const) (\w+|[[{].*?[\]}])(?:: ([\s\S]+?))? =\s+([\s\S]*?;)$/gm;
/** Values that are collections. */
const COLLECTION = /^(\[|Array\b|Object\.(keys|values|entries|fromEntries)\b|new (Map|Set|Array)\b)/;
const READONLY = /^(Readonly(Map|Set|Array)?<|readonly )/;
/** Ends of values that are no collection after all, or that declare themselves fixed. */
const FIXED = /( as const( satisfies [^;]+)?| as readonly [^;]+|\.join\("[^"]*"\));$/;
/** What is made with `new` and does not change. */
const UNCHANGING = /^new (RegExp|URL|Date)\(/;

/** Other objects of a module, and why they hold no state. */
const objects: Record<string, string> = {
  "db/sql.ts DIALECT": "filled when it is made",
  "src/api/dialect/markdown-thread.ts markdown": "the module is a thread of its own",
  "src/api/forward/mirror-reads.ts EVERY_RIGHT": "its type is read-only",
  "src/api/forward/service-routes.ts TREE": "filled when it is made",
  "src/health/plain-text.ts LOOPBACK": "filled when it is made",
  "src/health/plain-text.ts NEAR": "filled when it is made",
  "src/operations/traces.ts propagator": "has no fields",
};

interface Declared {
  keyword: string;
  name: string;
  type: string;
  value: string;
}

const sources = globSync("{db,src,workers}/**/*.ts", { cwd: projectRoot })
  .filter((path) => !path.startsWith("src/simulator/"))
  .map((path) => ({ path, text: readFileSync(join(projectRoot, path), "utf8") }));

function declaredIn(text: string): Declared[] {
  return Array.from(text.matchAll(DECLARED), ([, keyword = "", name = "", type = "", value = ""]) => ({
    keyword,
    name,
    type,
    value,
  }));
}

/** Whether a declaration may change, or be changed, after load. */
function mayChange({ keyword, name, type, value }: Declared): boolean {
  if (keyword !== "const") return true;
  if (READONLY.test(type)) return false;
  // A dictionary, whatever it is filled with.
  if (/^(Partial<)?Record</.test(type)) return true;
  // Names for the parts of a value, which are judged where the value is made.
  if (/^[[{]/.test(name)) return false;
  return COLLECTION.test(value) ? !FIXED.test(value) : value.startsWith("new ") && !UNCHANGING.test(value);
}

test("no module has a variable, or a collection that may be changed after load", () => {
  const found = sources.flatMap(({ path, text }) =>
    declaredIn(text).flatMap((one) => (mayChange(one) ? [`${path} ${one.name}`] : [])),
  );
  expect(found.toSorted()).toEqual(Object.keys(objects));
});

/** Writes to what a name of the module stands for. A local variable of the same name counts, too. */
function writesTo(name: string): RegExp {
  const free = `(?<![\\w.#"'])${name}`;
  const part = "(?:\\.\\w+|\\[[^\\]\\n]+\\])";
  const assigned = `${free}${part}+ [-+*/|&?]{0,2}=(?![=>])|${free}${part}*(?:\\+\\+|--)`;
  const changed = `${free}\\.(?:set|add|delete|clear|push|pop|shift|unshift|splice|sort|reverse|fill|getOrInsert\\w*)\\(`;
  return new RegExp(`${assigned}|${changed}|(?:Object\\.assign\\(|delete )${free}\\b`);
}

/** Real time and true chance, and why. All else takes them from the context, or measures how long something takes. */
const real: Record<string, [text: string, why: string]> = {
  "db/announcement.ts": ["Math.random", "it waits for other connections before there is a context"],
  "db/apply.ts": ["Math.random", "migrations have no context"],
  "db/database.ts": ["new Date()", "a pool of its own, as a test opens it, has no context"],
  "db/migrate.ts": ["Math.random, Math.random", "migrations have no context"],
  "src/cli/follow/connection.ts": ["Date.now()", "the service names a moment, and the command has no context"],
  "src/cli/follow/follow.ts": ["Math.random", "the command has no context"],
  "src/cli/mcp/http.ts": ["new Date()", "the command has no context"],
  "src/cli/up/process-tree.ts": ["Math.random", "programs are started before there is a context"],
  "src/operations/redis.ts": ["Math.random", "connections are opened before there is a context"],
  "src/stores.ts": ["new Date(), Math.random", "the context gets them here"],
  "src/sync/deliveries/apply.ts": ["new Date()", "spans go by the machine's clock"],
  "src/sync/problems/failed-jobs.ts": ["Date.now(), Date.now()", "BullMQ dates jobs by real time"],
  "src/sync/schedules.ts": ["Date.now()", "BullMQ plans by real time"],
  "workers/retry-policy.ts": ["Date.now(), Date.now()", "BullMQ counts delays by real time"],
};

test("time and chance come through the context, but where a reason is written", () => {
  const found = sources.flatMap(({ path, text }): [string, string][] => {
    const met = text.match(/\bDate\.now\(\)|\bnew Date\(\)|\bMath\.random\b|\bTemporal\.Now\b/g);
    return met ? [[path, met.join(", ")]] : [];
  });
  expect(Object.fromEntries(found)).toEqual(
    Object.fromEntries(Object.entries(real).map(([path, [text]]) => [path, text])),
  );
});

test("no function writes to what its module has or imports, and no class has a field that all instances share", () => {
  const found = sources.flatMap(({ path, text }) => {
    // Tables of the schema stand in statements by the same names, where `=` compares.
    const imported = Array.from(text.matchAll(/^import \{([^}]*)\} from "(?!.*\/schema\.ts")/gm), ([, names = ""]) =>
      names.replaceAll(/type \w+/g, ""),
    );
    const names = [...imported, ...declaredIn(text).map(({ name }) => name)].flatMap((one) => one.match(/\w+/g) ?? []);
    const written = names.filter((name) => writesTo(name).test(text));
    const shared = text.match(/^\s+(?:(?:private|protected|public) )?static (?!(?:async )?[*#]?\w+\().*/gm) ?? [];
    return [...written, ...shared].map((one) => `${path} ${one.trim()}`);
  });
  expect(found).toEqual([]);
});
