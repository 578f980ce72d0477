import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../docs/markdown.ts";

const STORES = /\b(insert into|update \w+( \w+)? set|delete from|(merge|save|store|note|fetchAndStore)[A-Z]\w*\()/;

test("no function that is named as one that reads stores anything", () => {
  const storing = globSync("{db,src,workers}/**/*.ts", { cwd: projectRoot })
    .filter((path) => !path.startsWith("src/simulator/"))
    .flatMap((path) => functionsOf(readFileSync(join(projectRoot, path), "utf8")).map((one) => ({ path, ...one })))
    .filter(({ name, body }) => /^(read|find|count|load)(?!AndStore)([A-Z]|$)/.test(name) && STORES.test(body))
    .map(({ path, name }) => `${path} ${name}`);
  expect(storing).toEqual([]);
});

/** Functions of a module. */
function functionsOf(text: string): { name: string; body: string }[] {
  const found = text.matchAll(/^(?:export )?(?:async )?function\*? (\w+)(.*?)^\}/gms);
  return Array.from(found, ([, name = "", body = ""]) => ({ name, body }));
}
