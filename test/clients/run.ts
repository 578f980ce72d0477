import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LONG_TEST_MS } from "../support/bounds.ts";
import type { ClientsWorld } from "./clients-world.ts";

/** What a program printed; it must have succeeded. */
export function printed(
  at: Pick<ClientsWorld, "env" | "home">,
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  cwd = at.home,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...at.env, ...env }, cwd, timeout: LONG_TEST_MS, maxBuffer: 64 * 1024 * 1024 };
    execFile(program, args, options, (error, out, err) => {
      if (error === null) resolve(out);
      else reject(new Error(`${program} ${args.join(" ")}\n${out}\n${err}`, { cause: error }));
    });
  });
}

/** The file of a program of npm's. */
export function binOf(folder: string, name: string): string {
  const place = join(folder, "node_modules", name);
  const { bin } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  return join(place, typeof bin === "string" ? bin : bin[name]);
}
