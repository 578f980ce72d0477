/** `npm run proofs` runs what takes too long for every change, and writes down each figure beside its bound. */

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createWriteStream, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs, stripVTControlCharacters, styleText } from "node:util";
import { pageOf, shown, wanted } from "./page.ts";
import { type Command, isMet, linesOf, type Proof } from "./proof.ts";
import { proofs } from "./proofs.ts";
import { knownResult, type Result, type Running, runProof } from "./runs.ts";

const USAGE = `Usage: npm run proofs [NAME…] [-- options]
  --list    what there is, how long each takes, and which are met on these sources
  --again   also run what is met on these sources
  --page    write docs/proofs.md anew and run nothing`;

const checkout = fileURLToPath(new URL("../../", import.meta.url));
const folder = join(checkout, ".tain", "proofs");
const page = join(checkout, "docs", "proofs.md");
/** Files whose changes cannot change the outcome of a proof. */
const PROSE = [":!docs", ":!*.md"];

const git = (...args: string[]) => execFileSync("git", args, { cwd: checkout, encoding: "utf8" }).trim();

/**
 * The commit, and whether another version runs the same sources. Uncommitted changes become part of the version's name.
 */
function versionOfSources(): Pick<Running, "version" | "isSame"> {
  const commit = git("rev-parse", "--short", "HEAD");
  const isChanged = git("status", "--porcelain", "--", ".", ...PROSE) !== "";
  const isSame = (other: string) =>
    !isChanged &&
    spawnSync("git", ["diff", "--quiet", other, commit, "--", ".", ...PROSE], { cwd: checkout }).status === 0;
  return { version: isChanged ? `${commit} and changes` : commit, isSame };
}

class InterruptedError extends Error {
  override name = "InterruptedError";
}

/** Runs the launcher, and writes what it prints to the proof's log. */
function runCommand(stopping: AbortSignal): Running["run"] {
  return async ({ args, env }: Command, { name }: Proof) => {
    const startedAt = performance.now();
    // The command has a process group of its own. So Ctrl-C reaches it only once, through this program.
    const child = spawn(process.execPath, [join(checkout, "scripts", "run.mjs"), ...args], {
      cwd: checkout,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const stop = () => void child.kill("SIGTERM");
    stopping.addEventListener("abort", stop);
    const log = createWriteStream(logOf(name), { flags: "a" });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      log.write(text);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => log.write(text));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("close", resolve);
      child.once("error", reject);
    });
    log.end();
    stopping.removeEventListener("abort", stop);
    if (stopping.aborted) throw new InterruptedError(`${name} was interrupted`);
    const seconds = (performance.now() - startedAt) / 1_000;
    return { hasPassed: code === 0, seconds, lines: linesOf(stripVTControlCharacters(output)) };
  };
}

function logOf(name: string): string {
  return join(folder, `${name}.log`);
}

function say({ name, seconds, version, figures }: Result): void {
  console.log(`${styleText("bold", name)} on ${version}, ${seconds.toLocaleString("en")} s`);
  for (const figure of figures) {
    const verdict = isMet(figure) ? styleText("green", "met") : styleText("red", "not met");
    const judged = figure.bound === null && isMet(figure) ? "" : `, bound ${wanted(figure.bound)}: ${verdict}`;
    const of = figure.of === undefined ? "" : `${figure.of}: `;
    console.log(`  ${of}${figure.what}: ${shown(figure)}${judged}`);
  }
}

async function list(running: Pick<Running, "folder" | "isSame">): Promise<void> {
  for (const proof of proofs) {
    const result = await knownResult(proof, running);
    const state = result
      ? result.isMet
        ? styleText("green", "met on these sources")
        : "begun, or not met"
      : "not run";
    console.log(`${styleText("bold", proof.name)}  about ${proof.minutes} minutes, ${state}\n  ${proof.proves}`);
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: "boolean" },
    again: { type: "boolean", default: false },
    page: { type: "boolean" },
    help: { type: "boolean" },
  },
});
const unknown = positionals.filter((name) => !proofs.some((proof) => proof.name === name));
const sources = versionOfSources();
if (values.help) console.log(USAGE);
else if (values.list) await list({ folder, ...sources });
else if (values.page) writeFileSync(page, pageOf(proofs, [], readPage()));
else if (unknown.length > 0) {
  console.error(`There is no proof ${unknown.join(", ")}: ${proofs.map(({ name }) => name).join(", ")}\n\n${USAGE}`);
  process.exitCode = 2;
} else {
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());
  mkdirSync(folder, { recursive: true });
  const run = runCommand(stopping.signal);
  const results: Result[] = [];
  for (const proof of proofs) {
    if (positionals.length > 0 && !positionals.includes(proof.name)) continue;
    const { name, minutes } = proof;
    rmSync(logOf(name), { force: true });
    console.log(`${name}: about ${minutes} minutes; what it prints is in ${relative(checkout, logOf(name))}`);
    const tell = (ended: number, of: number) => void (of > 1 && console.log(`  ${ended} of ${of} runs have ended`));
    try {
      const result = await runProof(proof, {
        folder,
        ...sources,
        again: values.again,
        now: () => new Date(),
        run,
        tell,
      });
      results.push(result);
      say(result);
      writeFileSync(page, pageOf(proofs, results, readPage()));
    } catch (error) {
      if (!(error instanceof InterruptedError)) throw error;
      console.log(`${error.message}; npm run proofs ${name} goes on`);
      process.exitCode = 1;
      break;
    }
  }
  if (results.some((result) => !result.isMet)) process.exitCode = 1;
}

function readPage(): string {
  try {
    return readFileSync(page, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}
