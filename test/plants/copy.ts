import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Plant, planted } from "./plant.ts";

/** Folders that a copy shares with the checkout, and folders that it leaves out. */
const SHARED = new Set(["node_modules", ".tain"]);
const LEFT_OUT = new Set([".git", "var", "coverage"]);

/** A throw-away copy of the sources, to put bugs in. */
export interface Copy extends Disposable {
  readonly root: string;
  /**
   * Puts the bug in. Disposing takes it out again.
   * @throws Error when the sources no longer hold the text to replace
   * @throws SyntaxError when the planted file cannot be parsed
   */
  plant(plant: Plant): Disposable;
}

export function openCopy(checkout: string): Copy {
  const root = mkdtempSync(join(tmpdir(), "tain-planted-"));
  const dispose = () => rmSync(root, { recursive: true, force: true });
  try {
    for (const name of readdirSync(checkout)) {
      if (SHARED.has(name)) symlinkSync(join(checkout, name), join(root, name));
      else if (!LEFT_OUT.has(name)) cpSync(join(checkout, name), join(root, name), { recursive: true });
    }
  } catch (error) {
    dispose();
    throw error;
  }
  return {
    root,
    plant: (plant) => {
      const path = join(root, plant.file);
      const text = readFileSync(path, "utf8");
      const bugged = planted(text, plant);
      // A file that cannot be parsed would fail every test, and so would prove nothing.
      if (path.endsWith(".ts")) stripTypeScriptTypes(bugged);
      writeFileSync(path, bugged);
      return { [Symbol.dispose]: () => writeFileSync(path, text) };
    },
    [Symbol.dispose]: dispose,
  };
}
