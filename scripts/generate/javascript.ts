import { execFile } from "node:child_process";
import { cp, glob, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** What other people's programs import, with its types: the tables, and the views for readers. */
const DESCRIPTIONS = ["src/schema.ts", "db/schema/views.ts"];

/**
 * The entry files of the npm package: `tain`, the processes that `tain up` starts, the demonstration's upstream, and the
 * descriptions of the database.
 */
const ENTRIES = [
  ...DESCRIPTIONS,
  "src/cli/main.ts",
  "src/web.ts",
  "workers/main.ts",
  "workers/scheduler.ts",
  "workers/one.ts",
  "db/migrate.ts",
  "src/simulator/main.ts",
];

/** Files that no import names: the program makes their names at run time. And the licence of one of the files. */
const MORE = ["db/migrations", "db/roles", "src/api/description/published.LICENSE", "src/operator/browser"];

const CHECKOUT = fileURLToPath(new URL("../../", import.meta.url));

/** A module or a file beside it, as our sources name one. */
const REFERENCE = /"(\.{1,2}\/[^"\n]+\.[a-z]+)"/g;

/** One file of the package, by its path in the checkout. `text`: JavaScript; null: the file is taken as it is. */
export interface Emitted {
  path: string;
  text: string | null;
  /** The npm packages and parts of Node.js that it imports. */
  packages: string[];
}

/** All files that the entries need: modules, with their types removed, and the other files that these modules read. */
export async function emitted(): Promise<Emitted[]> {
  const files = new Map<string, Emitted>();
  for (const waiting = [...ENTRIES]; waiting.length > 0; ) {
    const path = waiting.pop() ?? "";
    if (files.has(path)) continue;
    if (!path.endsWith(".ts")) {
      files.set(path, { path, text: null, packages: [] });
      continue;
    }
    // Types are replaced by blanks. Lines and columns stay the same, so stack traces match the sources without a source
    // map.
    const stripped = stripTypeScriptTypes(await readFile(join(CHECKOUT, path), "utf8"));
    const found = [...stripped.matchAll(REFERENCE)].map(([, name = ""]) => posix.join(posix.dirname(path), name));
    for (const each of found) if (await isFile(each)) waiting.push(each);
    const text = stripped.replaceAll(REFERENCE, (whole, name: string) =>
      name.endsWith(".ts") ? `"${name.slice(0, -3)}.js"` : whole,
    );
    const imports = stripped.matchAll(/^(?:import|export)\b[^;"]*?from "([^."][^"]*)"|import\("([^."][^"]*)"\)/gm);
    files.set(path, { path, text, packages: [...imports].map(([, one, other]) => one ?? other ?? "") });
  }
  return [...files.values()];
}

async function isFile(path: string): Promise<boolean> {
  return await stat(join(CHECKOUT, path)).then(
    (found) => found.isFile(),
    () => false,
  );
}

/** Writes these files to a directory, which is emptied first. */
export async function emit(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true });
  for (const { path, text } of await emitted()) {
    const target = join(directory, path.replace(/\.ts$/, ".js"));
    await mkdir(dirname(target), { recursive: true });
    await (text === null ? cp(join(CHECKOUT, path), target) : writeFile(target, text));
  }
  await declare(directory);
  for (const path of MORE) await cp(join(CHECKOUT, path), join(directory, path), { recursive: true });
}

/** Writes the types of the descriptions beside their modules. */
async function declare(directory: string): Promise<void> {
  const options = ["--ignoreConfig", "--declaration", "--emitDeclarationOnly", "--skipLibCheck", "--target", "esnext"];
  const modules = ["--module", "nodenext", "--allowImportingTsExtensions", "--types", "node", "--rootDir", CHECKOUT];
  const compiler = join(CHECKOUT, "node_modules/typescript/bin/tsc");
  const args = [
    compiler,
    ...options,
    ...modules,
    "--outDir",
    directory,
    ...DESCRIPTIONS.map((path) => join(CHECKOUT, path)),
  ];
  await promisify(execFile)(process.execPath, args, { cwd: CHECKOUT });
  for await (const path of glob("**/*.d.ts", { cwd: directory })) {
    const text = await readFile(join(directory, path), "utf8");
    await writeFile(join(directory, path), text.replaceAll(/(["'])(\.{1,2}\/[^"'\n]+)\.ts\1/g, "$1$2.js$1"));
  }
}

if (import.meta.main) await emit(join(CHECKOUT, "dist"));
