import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface Plant {
  /** What the mirror then does wrong. */
  about: string;
  file: string;
  /** The text of the sources, and what takes its place. */
  replaces: readonly (readonly [string, string])[];
}

/** Bugs that the simulation must find. They are put into a copy of the sources; the mirror has no switch for them. */
export const plants: Record<string, Plant> = {
  "no-tie-rule": {
    about: "of two observations of one second, the one that was seen last stands, and nobody is asked",
    file: "src/mirror/store/merge-rule.ts",
    replaces: [['  return "tied";\n}', '  return a.seenAt > b.seenAt ? "newer" : "older";\n}']],
  },
};

/** A copy of the sources with a bug in it; disposing removes it. @throws Error when the sources no longer hold its place */
export function openPlanted(checkout: string, name: string): { root: string } & Disposable {
  const plant = plants[name];
  if (!plant) throw new Error(`There is no bug "${name}" to plant`);
  const root = mkdtempSync(join(tmpdir(), "tain-planted-"));
  const dispose = () => rmSync(root, { recursive: true, force: true });
  try {
    for (const part of ["src", "workers", "db", "package.json"])
      cpSync(join(checkout, part), join(root, part), { recursive: true });
    symlinkSync(join(checkout, "node_modules"), join(root, "node_modules"));
    let text = readFileSync(join(root, plant.file), "utf8");
    for (const [from, to] of plant.replaces) {
      if (text.split(from).length !== 2)
        throw new Error(`${plant.file} does not hold once what "${name}" replaces: ${from}`);
      text = text.replace(from, () => to);
    }
    writeFileSync(join(root, plant.file), text);
  } catch (error) {
    dispose();
    throw error;
  }
  return { root, [Symbol.dispose]: dispose };
}
