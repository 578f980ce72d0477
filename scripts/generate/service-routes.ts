import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

// Writes `service-routes.json`: every path that the service publishes, with its methods. `*` stands for a segment, `**`
// for any number of them. Run it after @octokit/openapi was updated:
//   node scripts/generate/service-routes.ts

interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  "x-multi-segment"?: boolean;
}
interface Description {
  paths: Record<string, Record<string, { parameters?: Parameter[] }>>;
  components: { parameters: Record<string, Parameter> };
}

/** @throws Error when the description is not installed */
export function extractServiceRoutes(): { source: string; routes: Record<string, string> } {
  const resolve = createRequire(import.meta.url).resolve;
  const folder = resolve("@octokit/openapi/package.json").replace(/package\.json$/, "");
  // The documented shapes of these files. TypeScript cannot check a file's contents.
  const { version } = JSON.parse(readFileSync(`${folder}package.json`, "utf8")) as { version: string };
  const all = JSON.parse(readFileSync(`${folder}generated/api.github.com.json`, "utf8")) as Description;
  const routes: Record<string, string> = {};
  for (const [path, operations] of Object.entries(all.paths)) {
    const parameters = Object.values(operations)
      .flatMap((operation) => operation.parameters ?? [])
      .map((one) => (one.$ref ? all.components.parameters[one.$ref.replace(/.*\//, "")] : one));
    const isLong = (name: string) => parameters.some((one) => one?.name === name && one["x-multi-segment"]);
    const form = path.replace(/\{(\w+)\}/g, (_whole, name: string) => (isLong(name) ? "**" : "*"));
    // Skips paths with two names in one segment: the same path with one name for the whole segment is published too.
    if (/[^/*]\*|\*[^/*]/.test(form)) continue;
    const methods = [...(routes[form]?.split(" ") ?? []), ...Object.keys(operations).map((one) => one.toUpperCase())];
    routes[form] = [...new Set(methods)].join(" ");
  }
  const source = `@octokit/openapi ${version}, made from github/rest-api-description, under the MIT license (published.LICENSE)`;
  return { source, routes };
}

if (import.meta.main) {
  const file = new URL("../../src/api/description/service-routes.json", import.meta.url);
  writeFileSync(file, `${JSON.stringify(extractServiceRoutes(), null, 2)}\n`);
}
