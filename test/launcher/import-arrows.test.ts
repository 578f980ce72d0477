import { dirname, relative } from "node:path";
import { expect, test } from "vitest";
import { faultyImports, unusedArrows } from "../../scripts/import-arrows.mjs";

// The module that imports, what it imports, and whether the arrows of docs/architecture.md allow it.
const arrows: [from: string, to: string, allowed: boolean][] = [
  ["src/cli/", "src/sync/it.ts", true],
  ["src/cli/", "src/api/record/it.ts", true],
  ["src/cli/", "workers/it.ts", false],
  ["src/cli/", "src/web.ts", false],
  ["src/cli/", "src/simulator/it.ts", false],
  ["workers/", "src/sync/it.ts", true],
  ["workers/", "src/operations/it.ts", true],
  ["workers/", "src/cli/it.ts", false],
  ["workers/commands.ts", "src/cli/asked.ts", true],
  ["workers/commands.ts", "src/cli/it.ts", false],
  ["src/web.ts", "src/operator/it.ts", true],
  ["src/operator/", "src/api/callers/it.ts", true],
  ["src/operator/", "src/api/rest/it.ts", false],
  ["src/operator/", "src/cli/it.ts", false],
  ["src/api/", "src/operator/it.ts", false],
  ["workers/", "src/simulator/it.ts", false],
  ["src/api/", "src/http/it.ts", true],
  ["src/api/", "src/mirror/it.ts", true],
  ["src/api/", "src/api/rest/it.ts", true],
  ["src/api/rest/", "src/api/call/it.ts", true],
  ["src/api/rest/", "src/api/it.ts", false],
  ["src/api/call/", "src/api/rest/it.ts", false],
  ["src/api/rest/", "src/upstream/it.ts", true],
  ["src/api/rest/", "src/api/forward/it.ts", true],
  ["src/api/rest/", "src/api/graphql/it.ts", false],
  ["src/api/graphql/", "src/api/rest/it.ts", false],
  ["src/api/forward/", "src/api/rest/it.ts", false],
  ["src/api/forward/", "src/api/writes/it.ts", true],
  ["src/api/writes/", "src/api/forward/it.ts", false],
  ["src/api/", "db/it.ts", true],
  ["src/api/", "src/receiver/it.ts", false],
  ["src/api/", "src/cli/it.ts", false],
  ["src/receiver/", "src/http/it.ts", true],
  ["src/receiver/", "src/inbox/it.ts", true],
  ["src/receiver/", "src/sync/it.ts", false],
  ["src/inbox/", "src/queues/it.ts", true],
  ["src/inbox/", "src/receiver/it.ts", false],
  ["src/http/", "src/api/it.ts", false],
  ["src/http/", "db/it.ts", false],
  ["src/sync/", "src/upstream/it.ts", true],
  ["src/sync/", "src/mirror/it.ts", true],
  ["src/sync/", "src/inbox/it.ts", true],
  ["src/sync/", "src/api/it.ts", false],
  ["src/sync/", "workers/it.ts", false],
  ["src/upstream/", "db/it.ts", true],
  ["src/upstream/", "src/stores.ts", true],
  ["src/upstream/", "src/context.ts", false],
  ["src/upstream/", "src/mirror/it.ts", false],
  ["src/upstream/", "src/sync/it.ts", false],
  ["src/mirror/", "db/it.ts", true],
  ["src/mirror/", "src/upstream/it.ts", false],
  ["src/mirror/", "src/sync/it.ts", false],
  ["db/", "src/config.ts", false],
  ["db/", "src/version.ts", true],
  ["db/", "src/failure.ts", true],
  ["src/failure.ts", "src/config.ts", false],
  ["db/", "src/stores.ts", false],
  ["db/", "src/mirror/it.ts", false],
  ["src/operations/", "src/config.ts", true],
  ["src/operations/", "src/mirror/it.ts", false],
  ["src/operations/", "src/work/it.ts", false],
  ["src/operations/", "src/waits/it.ts", true],
  ["src/waits/", "src/operations/it.ts", false],
  ["db/", "src/waits/it.ts", true],
  ["src/work/", "src/operations/it.ts", true],
  ["src/work/", "src/mirror/it.ts", false],
  ["src/mirror/", "src/work/it.ts", true],
  ["src/simulator/", "src/simulator/other.ts", true],
  ["src/simulator/", "src/mirror/it.ts", false],
  ["src/simulator/", "src/config.ts", false],
  ["src/simulator/", "db/it.ts", false],
  ["src/simulator/", "workers/it.ts", false],
  ["src/config.ts", "src/sync/it.ts", false],
  ["src/version.ts", "src/config.ts", false],
  ["src/context.ts", "src/upstream/it.ts", true],
  ["src/context.ts", "src/simulator/it.ts", false],
  ["test/", "src/simulator/it.ts", true],
  ["scripts/probe.mjs", "scripts/other.mjs", true],
  ["scripts/probe.mjs", "src/config.ts", false],
  ["scripts/generate/", "src/config/settings.ts", true],
];

test.each(arrows)("%s importing %s: allowed is %s", (from, to, allowed) => {
  // A folder's files may lie deeper in it.
  const files = from.endsWith("/") ? [`${from}probe.ts`, `${from}deeper/probe.ts`] : [from];
  for (const file of files) {
    const faults = faultyImports(new Map([[file, importOf(file, to)]]));
    expect(faults).toEqual(allowed ? [] : [`${file} must not import ${to}`]);
  }
});

test("an import of a type counts, and so do one written over several lines, one that exports, and one at run time", () => {
  for (const text of [
    'import type { it } from "../api/it.ts";\n',
    'import {\n  type it,\n  other,\n} from "../api/it.ts";\n',
    'export { it } from "../api/it.ts";\n',
    'import "../api/it.ts";\n',
    'const it = await import("../api/it.ts");\n',
  ])
    expect(faultyImports(new Map([["src/sync/probe.ts", text]]))).toEqual([
      "src/sync/probe.ts must not import src/api/it.ts",
    ]);
});

test("a file that is in no room is refused, since it could import anything", () => {
  expect(faultyImports(new Map([["src/probe.ts", ""]]))).toEqual([
    "src/probe.ts is in no room: say in ARROWS what it may import",
  ]);
});

test("an arrow that no file uses is refused", () => {
  const unused = "src/receiver may import src/inbox, and no file does";
  expect(unusedArrows(new Map())).toContain(unused);
  const files = new Map([["src/receiver/probe.ts", importOf("src/receiver/probe.ts", "src/inbox/it.ts")]]);
  expect(unusedArrows(files)).not.toContain(unused);
});

test("the launcher may use no package, since it runs before they are installed", () => {
  const files = new Map([["scripts/probe.mjs", 'import pg from "pg";\nimport { join } from "node:path";\n']]);
  expect(faultyImports(files)).toEqual(["scripts/probe.mjs must not import pg"]);
});

test("a circle is refused, also where it is one of types", () => {
  const files = new Map([
    ["src/sync/chicken.ts", 'import type { Egg } from "./egg.ts";\nexport interface Chicken {}\n'],
    ["src/sync/egg.ts", 'import { it } from "./nest.ts";\nexport interface Egg {}\n'],
    ["src/sync/nest.ts", 'import type { Chicken } from "./chicken.ts";\nexport const it = 1;\n'],
  ]);
  expect(faultyImports(files)).toEqual([
    "A circle: src/sync/chicken.ts → src/sync/egg.ts → src/sync/nest.ts → src/sync/chicken.ts",
  ]);
});

test("a circle of folders is refused, although no file is in one", () => {
  const files = new Map([
    ["src/sync/reads/pages.ts", 'import { it } from "../marks/marks.ts";\n'],
    ["src/sync/marks/marks.ts", "export const it = 1;\n"],
    ["src/sync/marks/due.ts", 'import { it } from "../reads/pages-left.ts";\n'],
    ["src/sync/reads/pages-left.ts", "export const it = 1;\n"],
  ]);
  expect(faultyImports(files)).toEqual(["A circle of folders: src/sync/reads → src/sync/marks → src/sync/reads"]);
});

test("files beside the folders of src stand for themselves, files beside other folders do not", () => {
  const files = new Map([
    ["src/context.ts", 'import { it } from "./mirror/reader.ts";\n'],
    ["src/mirror/reader.ts", 'import { it } from "./read/lists.ts";\nimport { other } from "../json.ts";\n'],
    ["src/mirror/read/lists.ts", "export const it = 1;\n"],
    ["src/json.ts", "export const other = 1;\n"],
  ]);
  expect(faultyImports(files)).toEqual([]);
  files.set("src/mirror/read/lists.ts", 'import { it } from "../bots.ts";\n');
  files.set("src/mirror/bots.ts", "export const it = 1;\n");
  expect(faultyImports(files)).toEqual(["A circle of folders: src/mirror → src/mirror/read → src/mirror"]);
});

function importOf(file: string, target: string): string {
  const path = relative(dirname(file), target);
  return `import { it } from "${path.startsWith(".") ? path : `./${path}`}";\n`;
}
