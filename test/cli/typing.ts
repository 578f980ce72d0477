import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify, stripVTControlCharacters } from "node:util";
import { onTestFinished } from "vitest";
import { inherited } from "../support/config.ts";
import { until } from "../support/patience.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

/** The keys, as terminals send them. */
export const BACKSPACE = "\x7f";
export const CTRL_C = "\x03";

/** `script` of util-linux gives a command a terminal of its own. */
export const hasTerminal = await promisify(execFile)("script", ["--version"]).then(
  () => true,
  () => false,
);

interface Place {
  place: string;
  /** The settings that will be there. */
  file: string;
  env: NodeJS.ProcessEnv;
}

/** The directory of a person who starts with Tain. */
export async function emptyPlace(): Promise<Place> {
  const place = await mkdtemp(join(tmpdir(), "tain-first-"));
  onTestFinished(() => rm(place, { recursive: true }));
  return { place, file: join(place, ".env"), env: { ...inherited, TAIN_HOME: join(place, ".tain"), PORT: "0" } };
}

/** What a person does once they read `shown`: types a line, presses a key that ends no line, or something else. */
export type Step = readonly [shown: string, does: string | { key: string } | ((shown: string) => Promise<void>)];

/** Does each step once the command shows what it waits for, and answers what was shown in all. */
export async function atPipe(args: readonly string[], place: Place, steps: readonly Step[]) {
  return await play([process.execPath, main, ...args], "\n", place, steps);
}

/** The same in a terminal. The lines must hold nothing that a shell would read in its own way. */
export async function inTerminal(args: readonly string[], place: Place, steps: readonly Step[]) {
  // A shell between the terminal and the command would be interrupted as well.
  const command = ["exec", process.execPath, main, ...args].join(" ");
  return await play(["script", "--quiet", "--return", "--command", command, "/dev/null"], "\r", place, steps);
}

async function play(
  [program = "", ...args]: readonly string[],
  enter: string,
  { place, env }: Place,
  steps: readonly Step[],
): Promise<{ code: number; shown: string }> {
  const child = spawn(program, args, { cwd: place, env, stdio: ["pipe", "pipe", "pipe"] });
  let shown = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      shown += text;
    });
  let from = 0;
  for (const [awaited, does] of steps) {
    const isOver = () => child.exitCode !== null || plainly(shown).includes(awaited, from);
    const fault = await until(`it shows "${awaited}"`, isOver).catch((error: Error) => error.message);
    if (fault || !plainly(shown).includes(awaited, from))
      throw new Error(`${fault ?? `It has ended before it showed "${awaited}"`}. What it has shown:\n${shown}`);
    from = plainly(shown).indexOf(awaited, from) + awaited.length;
    if (typeof does === "function") await does(plainly(shown));
    else child.stdin.write(typeof does === "string" ? does + enter : does.key);
  }
  child.stdin.end();
  const [code] = child.exitCode === null ? await once(child, "close") : [child.exitCode];
  return { code, shown: plainly(shown) };
}

const plainly = (text: string) => stripVTControlCharacters(text).replaceAll("\r", "");
