import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { hasTest, projectRoot, readPage } from "./markdown.ts";

const run = promisify(execFile);
const page = readPage("docs/security.md");
/** Up to where the page turns from claims to advice. */
const [claims = ""] = page.split("## Before others can reach it");

/** The tests that a part of the page names. */
function namedIn(part: string): { file: string; title: string }[] {
  return [...part.replace(/\n {2}/g, " ").matchAll(/`(test\/[\w/.-]+\.test\.ts)`: "([^"]+)"/g)].map(
    ([, file = "", title = ""]) => ({ file, title }),
  );
}

const shown = namedIn(claims);

test.each(shown)("$file has the test $title", ({ file, title }) => expect(hasTest(file, title)).toBe(true));

test("each claim names one", () => {
  const lists = claims.split("\n").filter((line) => !line.startsWith("|"));
  expect(claims.match(/^- /gm)).toHaveLength(namedIn(lists.join("\n")).length);
});

test("each cell of the table by credential names one", () => {
  const [, table = ""] = claims.split("## By credential");
  const rows = (table.split("## ")[0] ?? "").split("\n").filter((line) => /^\| (?!---|who has)/.test(line));
  expect(rows.length).toBeGreaterThanOrEqual(14);
  for (const row of rows) {
    const [who = "", ...cells] = row.split(" | ");
    expect([who, ...cells.map((cell) => namedIn(cell).length)]).toEqual([who, 1, 1]);
  }
});

interface Locked {
  version: string;
  integrity?: string;
  resolved?: string;
}
const { packages } = JSON.parse(readFileSync(join(projectRoot, "package-lock.json"), "utf8")) as {
  packages: Record<string, Locked>;
};

test("every package is pinned by the hash of its bytes", () => {
  const locked = Object.entries(packages).filter(([path]) => path !== "");
  expect(locked.length).toBeGreaterThan(100);
  expect(locked.filter(([, { integrity }]) => !integrity?.startsWith("sha512-"))).toEqual([]);
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(
    readFileSync(join(projectRoot, "package.json"), "utf8"),
  ) as Record<string, Record<string, string>>;
  const wished = Object.values({ ...dependencies, ...devDependencies, ...optionalDependencies });
  expect(wished.filter((version) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
});

test("no package runs a script of its own at installation", async () => {
  const { stdout } = await run("npm", ["config", "get", "ignore-scripts"], { cwd: projectRoot });
  expect(stdout.trim()).toBe("true");
});

test("an image is named by its digest", () => {
  const program = readFileSync(join(projectRoot, "scripts/redis-program.mjs"), "utf8");
  const images = program.match(/"[\w.-]+\/[\w./-]+:[\w.-]+(@sha256:[0-9a-f]+)?"/g) ?? [];
  expect(images).toHaveLength(1);
  expect(images[0]).toMatch(/@sha256:[0-9a-f]{64}"$/);
});

test("the list of parts says which of them run in production", async () => {
  const [, command = ""] = /^(npm sbom .*)$/m.exec(page) ?? [];
  const { stdout } = await run("npm", command.split(" ").slice(1), { cwd: projectRoot });
  const { components } = JSON.parse(stdout) as {
    components: { name: string; properties: { name: string }[]; hashes?: object[] }[];
  };
  const running = components
    .filter(({ properties }) => !properties.some(({ name }) => name === "cdx:npm:package:development"))
    .map(({ name }) => name);
  const { dependencies = {} } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));
  expect(running).toEqual(expect.arrayContaining(Object.keys(dependencies)));
  expect(running).not.toContain("vitest");
  expect(components.filter(({ hashes }) => !hashes?.length)).toEqual([]);
});
