import { cp, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The entry files of the npm package: `tain`, the processes that `tain up` starts, and the demonstration's upstream.
 */
const ENTRIES = [
  "src/cli/main.ts",
  "src/web.ts",
  "workers/main.ts",
  "workers/scheduler.ts",
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
  for (const path of MORE) await cp(join(CHECKOUT, path), join(directory, path), { recursive: true });
}

if (import.meta.main) await emit(join(CHECKOUT, "dist"));
