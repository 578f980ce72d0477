import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Published } from "../../src/api/description.ts";
import { restOperations } from "../../src/api/rest/operations.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 1, issues: 2 });
}, 60_000);
afterAll(() => world?.[Symbol.asyncDispose]());

const FILE = new URL("../../src/api/published-operations.json", import.meta.url);

// biome-ignore lint/suspicious/noExplicitAny: a description is looked into without a type of its own.
type Described = any;

/** What the service's description says of the operations that we serve. */
function publishedOperations(): Record<string, Published> {
  const file = createRequire(import.meta.url)
    .resolve("@octokit/openapi/package.json")
    .replace(/package\.json$/, "generated/api.github.com.deref.json");
  const { paths } = JSON.parse(readFileSync(file, "utf8")) as { paths: Record<string, Record<string, Described>> };
  const found: Record<string, Published> = {};
  const forms = new Map(Object.keys(paths).map((path) => [path.replace(/\{[^}]*\}/g, "{}"), path]));
  for (const { path, route } of restOperations().routes) {
    const below = route.run.of === "repository" ? `/repos/{}/{}${path === "/" ? "" : path}` : path;
    const template = forms.get(below.replace(/:\w+/g, "{}"));
    const operation = template && paths[template]?.[route.method.toLowerCase()];
    if (!operation) continue;
    const body = operation.requestBody?.content?.["application/json"]?.schema;
    found[`${route.method} ${template}`] = {
      operationId: operation.operationId,
      summary: operation.summary,
      tag: operation.tags[0],
      parameters: (operation.parameters ?? []).map(({ name, in: where, required, description, schema }: Described) => ({
        name,
        in: where,
        ...(required ? { required } : {}),
        ...(description ? { description } : {}),
        schema: schema ?? {},
      })),
      ...(body ? { body } : {}),
      responses: Object.fromEntries(
        Object.entries(operation.responses).map(([status, { description }]: [string, Described]) => [
          status,
          description,
        ]),
      ),
    };
  }
  return found;
}

test("what is said of the operations is what the service says (UPDATE=1 writes it anew; then format it)", () => {
  const expected = publishedOperations();
  if (process.env.UPDATE === "1") writeFileSync(FILE, `${JSON.stringify(expected, null, 2)}\n`);
  expect(JSON.parse(readFileSync(FILE, "utf8"))).toEqual(expected);
});

test("every operation that is served is described, and no other", async () => {
  const { status, headers, body } = await world.get("/-/openapi.json", { token: null });
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(headers.get("access-control-allow-origin")).toBe("*");
  const described = Object.entries(body.paths as Record<string, Record<string, Described>>).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => [method.toUpperCase(), path] as const),
  );
  const { routes } = restOperations();
  expect(described).toHaveLength(routes.length);
  expect(described).toContainEqual(["GET", "/repos/{owner}/{repo}/issues/{issue_number}"]);
  for (const [method, path] of described.filter(([method]) => method === "GET")) {
    const { body: answer, status: code } = await world.get(path.replace(/\{\w+\}/g, "0"));
    expect(String(answer?.message ?? ""), `${method} ${path} (${code})`).not.toContain("does not serve");
  }
  for (const [, methods] of Object.entries(body.paths as Record<string, Record<string, Described>>)) {
    for (const operation of Object.values(methods)) {
      expect(operation.externalDocs.url).toMatch(/^https:\/\/docs\.github\.com\/rest\//);
      expect(Object.keys(operation.responses).length).toBeGreaterThan(0);
    }
  }
});

test("the page for people names every operation and asks nothing of anybody else", async () => {
  const { status, headers, text } = await world.get("/-/docs", { token: null });
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(text.match(/<details>/g)).toHaveLength(restOperations().routes.length);
  expect(text).not.toMatch(/<script|<img|<link|src=|@import|url\(/);
  expect(headers.get("x-ratelimit-used")).toBeNull();
});
