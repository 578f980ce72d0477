import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { stripVTControlCharacters } from "node:util";

/** Longer than any test file takes without a bug. A planted bug may also let a test wait in vain. */
const LONGEST_MS = 15 * 60_000;
const TEST_TIMEOUT_MS = 180_000;
const POLL_TIMEOUT_MS = 30_000;

export interface Failure {
  file: string;
  /** The file and the name of the test. */
  test: string;
  /** The message of the failure. */
  message: string;
}

/** The part of vitest's JSON report that is read here. */
interface Report {
  testResults: {
    name: string;
    status: string;
    message: string;
    assertionResults: { status: string; fullName: string; failureMessages?: string[] }[];
  }[];
}

/**
 * Runs these test files of a copy, or all files where none is named, until one fails. Answers the failure; null: there
 * is none.
 */
export async function findFailure(
  root: string,
  files: readonly string[],
  without: readonly string[] = [],
): Promise<Failure | null> {
  const folder = mkdtempSync(join(tmpdir(), "tain-finding-"));
  const report = join(folder, "report.json");
  const args = [
    ...[join(root, "node_modules", "vitest", "vitest.mjs"), "run", "--root", root, ...files, "--bail", "1"],
    // These tests look for the places of the bugs in the sources themselves, so a planted bug would fail them.
    ...["test/plants/**", ...without].flatMap((file) => ["--exclude", file]),
    ...["--reporter", "json", "--outputFile", report, "--testTimeout", String(TEST_TIMEOUT_MS)],
    ...["--hookTimeout", String(TEST_TIMEOUT_MS), "--expect.poll.timeout", String(POLL_TIMEOUT_MS)],
  ];
  // The run has a process group of its own. So a run that hangs ends together with all that it has started.
  const child = spawn(process.execPath, args, { cwd: root, stdio: "ignore", detached: true });
  const stop = () => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  };
  process.once("exit", stop);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    stop();
  }, LONGEST_MS);
  try {
    const [code] = await once(child, "exit");
    if (code === 0) return null;
    if (isLate)
      return { file: files[0] ?? "", test: files.join(", ") || "the tests", message: "They did not come to an end" };
    return failureIn(JSON.parse(readFileSync(report, "utf8")), root);
  } finally {
    clearTimeout(timer);
    process.off("exit", stop);
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * The first test of a report that failed, or the file whose preparation did. Pure.
 * @throws Error when the report tells of no failure
 */
export function failureIn({ testResults }: Report, root: string): Failure {
  for (const { name, assertionResults } of testResults) {
    const failed = assertionResults.find(({ status }) => status === "failed");
    if (!failed) continue;
    const file = relative(root, name);
    return { file, test: `${file}: ${failed.fullName}`, message: firstLine(failed.failureMessages?.[0]) };
  }
  const unprepared = testResults.find(({ status }) => status === "failed");
  if (!unprepared) throw new Error("The tests failed, and their report names none that did");
  const file = relative(root, unprepared.name);
  return { file, test: `${file}, before its tests`, message: firstLine(unprepared.message) };
}

function firstLine(text = ""): string {
  return stripVTControlCharacters(text.split("\n")[0] ?? "").slice(0, 200);
}
