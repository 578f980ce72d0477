import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

// The module that imports, what it imports, and whether the design's arrows allow it.
const arrows: [from: string, to: string, allowed: boolean][] = [
  ["src/cli/", "src/sync/it.ts", true],
  ["src/cli/", "src/api/it.ts", true],
  ["src/cli/", "workers/it.ts", false],
  ["src/cli/", "src/simulator/it.ts", false],
  ["workers/", "src/sync/it.ts", true],
  ["workers/", "src/operations/it.ts", true],
  ["workers/", "src/cli/it.ts", false],
  ["workers/", "src/simulator/it.ts", false],
  ["src/api/", "src/mirror/it.ts", true],
  ["src/api/", "src/upstream/it.ts", true],
  ["src/api/", "db/it.ts", true],
  ["src/api/", "src/receiver/it.ts", false],
  ["src/api/", "src/cli/it.ts", false],
  ["src/receiver/", "db/it.ts", true],
  ["src/receiver/", "src/sync/it.ts", false],
  ["src/sync/", "src/upstream/it.ts", true],
  ["src/sync/", "src/mirror/it.ts", true],
  ["src/sync/", "src/api/it.ts", false],
  ["src/sync/", "workers/it.ts", false],
  ["src/upstream/", "db/it.ts", true],
  ["src/upstream/", "src/context.ts", true],
  ["src/upstream/", "src/mirror/it.ts", false],
  ["src/upstream/", "src/sync/it.ts", false],
  ["src/mirror/", "db/it.ts", true],
  ["src/mirror/", "src/upstream/it.ts", false],
  ["src/mirror/", "src/sync/it.ts", false],
  ["db/", "src/config.ts", true],
  ["db/", "src/mirror/it.ts", false],
  ["src/operations/", "src/config.ts", true],
  ["src/operations/", "src/mirror/it.ts", false],
  ["src/simulator/", "src/simulator/other.ts", true],
  ["src/simulator/", "src/mirror/it.ts", false],
  ["src/simulator/", "src/config.ts", false],
  ["src/simulator/", "db/it.ts", false],
  ["src/simulator/", "workers/it.ts", false],
  ["src/config.ts", "src/sync/it.ts", false],
  ["src/context.ts", "src/simulator/it.ts", false],
  ["test/", "src/simulator/it.ts", true],
  ["scripts/probe.mjs", "src/config.ts", false],
];

let project: string;
let reports: { rule: string; file: string }[];

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "tain-arrows-"));
  await cp(join(root, "biome.json"), join(project, "biome.json"));
  await symlink(join(root, "node_modules"), join(project, "node_modules"));
  await put(".gitignore", "node_modules\n");
  for (const [index, [from, to]] of arrows.entries()) await put(probe(index, from), importOf(probe(index, from), to));
  await put("src/sync/chicken.ts", 'import { egg } from "./egg.ts";\nexport const chicken = () => egg;\n');
  await put("src/sync/egg.ts", 'import { chicken } from "./chicken.ts";\nexport const egg = () => chicken;\n');

  const biome = join(root, "node_modules", ".bin", "biome");
  const args = ["lint", "--reporter=json", "--max-diagnostics=none", "."];
  const { stdout } = await promisify(execFile)(biome, args, { cwd: project }).catch(
    (failed: { stdout: string }) => failed,
  );
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { category: string; location: { path: unknown } }[] };
  reports = diagnostics.map(({ category, location }) => ({ rule: category, file: JSON.stringify(location.path) }));
});
afterAll(() => rm(project, { recursive: true, force: true }));

test.each(arrows.map((arrow, index) => [...arrow, index] as const))(
  "%s importing %s: allowed is %s",
  (from, _to, allowed, index) => {
    const refused = reports.some(
      ({ rule, file }) => rule === "lint/style/noRestrictedImports" && file.includes(probe(index, from)),
    );
    expect(refused).toBe(!allowed);
  },
);

test("import cycles are refused", () => {
  const cyclic = reports.filter(({ rule }) => rule === "lint/suspicious/noImportCycles").map(({ file }) => file);
  expect(cyclic.join()).toMatch(/chicken\.ts/);
  expect(cyclic.join()).toMatch(/egg\.ts/);
});

/** A file of its own for each arrow, a folder deeper for every other one. */
function probe(index: number, from: string): string {
  if (!from.endsWith("/")) return from;
  return index % 2 === 0 ? `${from}probe-${index}.ts` : `${from}deeper/probe-${index}.ts`;
}

function importOf(file: string, target: string): string {
  const path = relative(dirname(file), target);
  return `import { it } from "${path.startsWith(".") ? path : `./${path}`}";\n\nexport const seen = it;\n`;
}

async function put(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(project, file)), { recursive: true });
  await writeFile(join(project, file), text);
}
