import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { names as benchmarkNames } from "../../bench/names.ts";
import { pageOf } from "./page.ts";
import { type Line, linesOf, numberAt, type Proof } from "./proof.ts";
import { proofs } from "./proofs.ts";
import { knownResult, type Running, runProof } from "./runs.ts";

const checkout = fileURLToPath(new URL("../../", import.meta.url));

/** A proof of two commands, each of which prints a cost. */
const proof: Proof = {
  name: "cost",
  proves: "It costs little.",
  minutes: 1,
  commands: [{ args: ["test", "first"] }, { args: ["test", "second"], env: { TAIN_LARGE: "1" } }],
  figures: (lines) => [
    { what: "of the first", measured: numberAt(lines[0], "cost"), bound: { atMost: 10 } },
    { what: "of the second", measured: numberAt(lines[1], "cost"), bound: { atMost: 10 } },
  ],
};

/** A runner with a folder of its own. The test says what it answers for each command: a cost, or no line at all. */
async function openRunner() {
  const folder = await mkdtemp(join(tmpdir(), "tain-proofs-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const ran: string[] = [];
  const answers: Record<string, { cost?: number; fails?: boolean; interrupts?: boolean }> = {};
  const running: Running = {
    folder,
    version: "aaaaaaa",
    isSame: (version) => version === running.version,
    again: false,
    now: () => new Date("2026-01-02T03:04:05Z"),
    run: async ({ args }) => {
      const name = args[1] ?? "";
      ran.push(name);
      const { cost = 5, fails = false, interrupts = false } = answers[name] ?? {};
      if (interrupts) throw new Error("interrupted");
      return { hasPassed: !fails, seconds: 60, lines: [{ cost }] };
    },
  };
  return { running, ran, answers };
}

test("an interrupted proof goes on at the command that had not ended", async () => {
  const { running, ran, answers } = await openRunner();
  answers.second = { interrupts: true };
  await expect(runProof(proof, running)).rejects.toThrow("interrupted");
  delete answers.second;
  const result = await runProof(proof, running);
  expect(ran).toEqual(["first", "second", "second"]);
  expect(result).toMatchObject({ isMet: true, attempts: 1, seconds: 120, version: "aaaaaaa" });
});

test("a proof that is met is not run again on the same sources, unless it is asked for or its commands are others", async () => {
  const { running, ran } = await openRunner();
  await runProof(proof, running);
  expect((await runProof(proof, running)).isMet).toBe(true);
  expect(ran).toHaveLength(2);
  await runProof(proof, { ...running, again: true });
  expect(ran).toHaveLength(4);
  await runProof({ ...proof, commands: proof.commands.slice(0, 1) }, running);
  expect(ran).toHaveLength(5);
  await runProof(proof, { ...running, version: "bbbbbbb", isSame: (version) => version === "bbbbbbb" });
  expect(ran).toHaveLength(7);
});

test("of a proof that failed what failed is run again, and the page tells of the attempt", async () => {
  const { running, ran, answers } = await openRunner();
  answers.second = { fails: true };
  const failed = await runProof(proof, running);
  expect(failed).toMatchObject({ isMet: false, attempts: 1 });
  expect(pageOf([proof], [failed], "")).toContain(
    "**Not met** on aaaaaaa, 2026-01-02, 120 s:\n\n- **runs that passed 1 (≥2)**; of the first 5 (≤10)",
  );
  delete answers.second;
  const passed = await runProof(proof, running);
  expect(ran).toEqual(["first", "second", "second"]);
  expect(passed).toMatchObject({ isMet: true, attempts: 2 });
  expect(pageOf([proof], [passed], "")).toContain("**Met** on aaaaaaa, 2026-01-02, 120 s, after 2 attempts:");
});

test("a figure beyond its bound, or one that nothing printed, is not met, although all tests passed", async () => {
  const { running, ran, answers } = await openRunner();
  answers.first = { cost: 11 };
  const beyond = await runProof(proof, running);
  expect(beyond.isMet).toBe(false);
  expect(pageOf([proof], [beyond], "")).toContain("- **of the first 11 (≤10)**; of the second 5 (≤10)");
  const silent = { ...running, again: true, run: async () => ({ hasPassed: true, seconds: 1, lines: [] }) };
  const unsaid = await runProof(proof, silent);
  expect(unsaid.isMet).toBe(false);
  expect(pageOf([proof], [unsaid], "")).toContain("**of the first nothing (≤10)**");
  expect(await knownResult(proof, running)).toMatchObject({ isMet: false });
  // No single command is to blame, so all run again.
  delete answers.first;
  await runProof(proof, running);
  expect(ran).toEqual(["first", "second", "first", "second"]);
});

test("a figure of which nothing was promised is told without a verdict, and has to be printed", async () => {
  const { running } = await openRunner();
  const telling: Proof = {
    ...proof,
    figures: (lines) => [{ what: "what it cost", measured: numberAt(lines[0], "cost"), bound: null }],
  };
  const told = await runProof(telling, running);
  expect(told.isMet).toBe(true);
  const page = pageOf([telling], [told], "");
  expect(page).toContain("s:\n\n- what it cost 5\n");
  expect(pageOf([telling], [], page)).toBe(page);
  const silent = { ...running, again: true, run: async () => ({ hasPassed: true, seconds: 1, lines: [] }) };
  expect((await runProof(telling, silent)).isMet).toBe(false);
});

test.each(proofs.map((one) => [one.name, one] as const))("no bound of %s is met by everything", (_, { figures }) => {
  expect(figures([]).filter(({ bound }) => bound !== null && "atLeast" in bound && bound.atLeast <= 0)).toEqual([]);
});

test("the page keeps what an earlier run has measured of other proofs", async () => {
  const { running } = await openRunner();
  const other = { ...proof, name: "other" };
  const both = [proof, other];
  const first = pageOf(both, [await runProof(proof, running)], "");
  expect(first).toContain(
    "**Met** on aaaaaaa, 2026-01-02, 120 s:\n\n- of the first 5 (≤10); of the second 5 (≤10)\n\n## `other`",
  );
  expect(first).toMatch(/## `other`\n\n.*\n\nNot run yet\.\n$/);
  const second = pageOf(both, [await runProof(other, { ...running, version: "bbbbbbb" })], first);
  expect(second.match(/^\*\*Met\*\* on \w+/gm)).toEqual(["**Met** on aaaaaaa", "**Met** on bbbbbbb"]);
  expect(second).not.toContain("Not run yet");
  const described = both.map((one) => ({ ...one, proves: "It costs nothing." }));
  expect(pageOf(described, [], second)).toBe(second.replaceAll("It costs little.", "It costs nothing."));
});

test("figures are the lines of JSON between all else that is printed", () => {
  const output = 'RUN v5\n{ not: json }\n{"figures":"kills","readTwice":[1,0]}\n[1]\n ✓ passed\n{"drift":0}\n';
  expect(linesOf(output)).toEqual([{ figures: "kills", readTwice: [1, 0] }, { drift: 0 }] satisfies Line[]);
});

test("seeds count once each, and a seed that hangs or differs is not hidden by others", () => {
  const seeds = proofs.find(({ name }) => name === "seeds");
  const outcome = { drift: 0, missed: 0, crashes: [], hang: null };
  const lines = Array.from({ length: 200 }, (_, at) => ({ ...outcome, seed: at + 1 }));
  const measured = (of: readonly Line[]) => seeds?.figures(of).map((figure) => figure.measured);
  expect(measured(lines)).toEqual([200, 0, 0, 0, 0]);
  expect(measured([...lines.slice(1), { ...outcome, seed: 1, hang: "jobs", drift: 2, crashes: ["web"] }])).toEqual([
    200, 2, 0, 1, 1,
  ]);
  expect(measured([])).toEqual([0, null, null, null, null]);
});

test("what proofs run exists, and each benchmark is among it", () => {
  const commands = proofs.flatMap((each) => each.commands);
  const files = commands.flatMap(({ args: [verb, file = ""] }) => (verb === "test" ? [file] : []));
  expect(files.filter((file) => !existsSync(join(checkout, file)))).toEqual([]);
  expect(benchmarkNames.filter((name) => !existsSync(join(checkout, "bench", `${name}.ts`)))).toEqual([]);
  expect(new Set(proofs.map(({ name }) => name)).size).toBe(proofs.length);
});

test("figures of one case stand in one line", async () => {
  const { running } = await openRunner();
  const cases: Proof = {
    ...proof,
    figures: (lines) => [
      { what: "a read", of: "calm", measured: numberAt(lines[0], "cost"), bound: { atMost: 10 } },
      { what: "a read", of: "storm", measured: numberAt(lines[1], "cost"), bound: { atMost: 10 } },
      { what: "a write", of: "calm", measured: numberAt(lines[0], "cost"), bound: null },
    ],
  };
  const page = pageOf([cases], [await runProof(cases, running)], "");
  expect(page).toContain("- calm: a read 5 (≤10); a write 5\n- storm: a read 5 (≤10)\n");
});

test("docs/proofs.md has a section for each proof, as the command would write it", () => {
  const page = readFileSync(join(checkout, "docs/proofs.md"), "utf8");
  expect(pageOf(proofs, [], page)).toBe(page);
});

test("the command lists the proofs, and refuses one that it does not know", async () => {
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, [join(checkout, "test/proofs/main.ts"), ...args]);
  const { stdout } = await run("--list");
  for (const { proves } of proofs) expect(stdout).toContain(proves);
  await expect(run("floor", "ceiling")).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining("There is no proof ceiling"),
  });
});
