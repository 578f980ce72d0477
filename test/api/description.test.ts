import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { extractPublished, publishedText } from "../../scripts/generate/published.ts";
import { inline } from "../../src/api/description/prose.ts";
import { wholePath } from "../../src/api/description/published.ts";
import { apiSchema } from "../../src/api/graphql/schema.ts";
import { REST_OPERATIONS } from "../../src/api/operations.ts";
import { escapedHtml } from "../../src/http/html.ts";
import { json } from "../../src/http/reply.ts";
import { Router } from "../../src/http/router.ts";
import { problemsOf } from "../simulator/openapi.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// biome-ignore lint/suspicious/noExplicitAny: the document is looked into as what it is, JSON
type Json = any;

let world: ApiWorld;
let served: Answered;
let document: Json;
let page: Answered;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 2, issues: 40 });
  served = await askAt(world.url, "GET", "/-/openapi.json");
  document = served.body;
  page = await askAt(world.url, "GET", "/-/docs");
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Every object within a value, with the keys that lead to it. */
function* objectsIn(value: Json, at: string[] = []): Generator<[string[], Json]> {
  if (typeof value !== "object" || value === null) return;
  yield [at, value];
  for (const [key, inner] of Object.entries(value)) yield* objectsIn(inner, [...at, key]);
}

function resolved(value: Json): Json {
  if (!value?.$ref) return value;
  return resolved(
    value.$ref
      .slice(2)
      .split("/")
      .reduce((at: Json, key: string) => at?.[key], document),
  );
}

const operations = (): { path: string; method: string; operation: Json }[] =>
  Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods)
      .filter(([method]) => method !== "servers")
      .map(([method, operation]) => ({ path, method, operation })),
  );

test("what is published of our routes is up to date (else: node scripts/generate/published.ts)", () => {
  const stored = readFileSync(new URL("../../src/api/description/published.json", import.meta.url), "utf8");
  // Compared as a truth value: the difference of two files of this size says nothing to anybody.
  expect(stored === publishedText(extractPublished())).toBe(true);
});

describe("the OpenAPI document", () => {
  test("has each route that is served, and no other", () => {
    const routes = REST_OPERATIONS.map((served) => ({
      method: served.route.method,
      path: wholePath(served),
      handle: () => json(200, served.path),
    }));
    const router = new Router(routes);
    const described = operations().filter(({ path }) => path !== "/graphql");
    const matched = described.map(({ path, method }) => {
      const found = router.find(method.toUpperCase(), path.replace(/\{\w+\}/g, "1"));
      expect(found, `${method} ${path}`).not.toBeNull();
      return found?.handle;
    });
    expect(new Set(matched)).toEqual(new Set(routes.map(({ handle }) => handle)));
    expect(matched.length).toBe(routes.length);
  });

  test("refers to nothing that it does not hold, and holds nothing that nothing refers to", () => {
    const referred = new Set<string>();
    for (const [at, object] of objectsIn(document)) {
      if (typeof object.$ref !== "string") continue;
      expect(resolved(object), `${at.join("/")}: ${object.$ref}`).toBeDefined();
      referred.add(object.$ref);
    }
    const held = ["schemas", "parameters", "responses", "headers"].flatMap((kind) =>
      Object.keys(document.components[kind]).map((name) => `#/components/${kind}/${name}`),
    );
    expect(held.filter((one) => !referred.has(one))).toEqual([]);
  });

  test("declares each parameter once, and of a path those that its template has", () => {
    for (const { path, method, operation } of operations()) {
      const parameters = (operation.parameters ?? []).map(resolved);
      const names = parameters.map(({ in: where, name }: Json) => `${where} ${name}`);
      expect(new Set(names).size, `${method} ${path}`).toBe(names.length);
      const inPath = parameters.filter(({ in: where }: Json) => where === "path");
      expect(inPath.map(({ name }: Json) => `{${name}}`).sort()).toEqual((path.match(/\{\w+\}/g) ?? []).sort());
      for (const parameter of parameters)
        expect(parameter.schema, `${method} ${path} ${parameter.name}`).toBeTypeOf("object");
      for (const { required } of inPath) expect(required).toBe(true);
    }
  });

  test("names each operation once, and says what it answers and in which case else", () => {
    const names = operations().map(({ operation }) => operation.operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const { path, method, operation } of operations()) {
      const statuses = Object.keys(operation.responses);
      expect(statuses, `${method} ${path}`).toContain("default");
      expect(
        statuses.some((status) => /^[23]\d\d$/.test(status)),
        `${method} ${path}`,
      ).toBe(true);
      for (const response of Object.values(operation.responses))
        expect(resolved(response).description).toBeTypeOf("string");
      for (const scheme of (operation.security ?? document.security).flatMap(Object.keys))
        expect(Object.keys(document.components.securitySchemes)).toContain(scheme);
    }
  });

  test("is of 3.1, where a type says that null is one", () => {
    expect(document.openapi).toMatch(/^3\.1\.\d$/);
    expect(document.info).toMatchObject({ title: expect.any(String), version: expect.any(String) });
    const kinds = new Set<string>();
    for (const [at, object] of objectsIn(document.components.schemas)) {
      if (at.at(-1) === "properties" || at.length < 1) continue;
      expect(object, at.join("/")).not.toHaveProperty("nullable");
      for (const type of [object.type ?? []].flat()) if (typeof type === "string") kinds.add(type);
    }
    expect([...kinds].sort()).toEqual(["array", "boolean", "integer", "null", "number", "object", "string"]);
  });

  test("says of answers what they are", async () => {
    const { fullName } = world.repositories[0] ?? { fullName: "" };
    const [owner, repo] = fullName.split("/");
    const [issue] = (await world.get(`/repos/${fullName}/issues`)).body;
    const values: Record<string, string | undefined> = { owner, repo, issue_number: String(issue.number) };
    const asked = operations().filter(
      ({ path, method }) =>
        method === "get" &&
        /^\/(user|repos)\b/.test(path) &&
        (path.match(/\{\w+\}/g) ?? []).every((name) => name.slice(1, -1) in values),
    );
    expect(asked.length).toBeGreaterThan(10);
    for (const { path, operation } of asked) {
      for (const version of ["2022-11-28", "2026-03-10"]) {
        const headers = { "x-github-api-version": version };
        const answer = await world.get(
          path.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? ""),
          { headers },
        );
        const { content = {} } = resolved(operation.responses[String(answer.status)]) ?? {};
        const schema = content["application/json"]?.schema;
        if (schema) expect(problemsOf(document, schema, answer.body), `${path} ${version}`).toEqual([]);
      }
    }
  });

  test("names the headers that answers have", async () => {
    const { fullName } = world.repositories[0] ?? { fullName: "" };
    const { headers } = await world.get(`/repos/${fullName}/issues`);
    const [list] = operations().filter(({ operation }) => operation.operationId === "issues/list-for-repo");
    const named = Object.keys(list?.operation.responses["200"].headers).filter((name) => headers.has(name));
    expect(named).toEqual(expect.arrayContaining(["ETag", "X-RateLimit-Limit", "X-GitHub-Request-Id", "Warning"]));
  });

  test("does not name what is refused", () => {
    expect(served.text).not.toContain('"issue_field_values","in"');
    const [list] = operations().filter(({ operation }) => operation.operationId === "issues/list-for-repo");
    expect(list?.operation.parameters.map(resolved).map(({ name }: Json) => name)).not.toContain("issue_field_values");
  });
});

describe.each(["/-/openapi.json", "/-/docs"])("%s", (path) => {
  test("is for everybody, and costs nothing", async () => {
    const before = await askAt(world.url, "GET", "/rate_limit");
    const answer = await askAt(world.url, "GET", path, { headers: { authorization: "Bearer of-nobody" } });
    expect(answer.status).toBe(200);
    expect((await askAt(world.url, "GET", "/rate_limit")).body.resources.core.used).toBe(
      before.body.resources.core.used,
    );
  });

  test("shows the address by which it was asked, and PUBLIC_URL in its stead", async () => {
    expect((await askAt(world.url, "GET", path)).text).toContain(world.url);
    const behind = await world.openSibling({ PUBLIC_URL: "https://mirror.example/it's&\"here" });
    const { text } = await askAt(behind, "GET", path);
    expect(text).not.toContain(behind);
    expect(text).not.toMatch(/\.invalid/);
    if (path === "/-/docs") expect(text).toContain("https://mirror.example/it&#39;s&amp;&quot;here");
    else expect(JSON.parse(text).servers[0].url).toBe("https://mirror.example/it's&\"here");
  });

  test("is 304 to a caller that has it, and to a HEAD its length", async () => {
    const { headers, text } = await askAt(world.url, "GET", path);
    const etag = headers.get("etag") ?? "";
    const again = await askAt(world.url, "GET", path, { headers: { "if-none-match": etag } });
    expect(again).toMatchObject({ status: 304, text: "" });
    const head = await askAt(world.url, "HEAD", path, { headers: { "accept-encoding": "identity" } });
    expect(head.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
  });
});

describe("the page", () => {
  test("has the README's line for gh, and for HTTPS the one that needs no proxy", async () => {
    const ghIn = ({ text }: Answered) => /<h3>gh<\/h3>\s*<pre[^>]*><code>(.*?)<\/code>/s.exec(text)?.[1];
    const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
    const line = /^http_proxy=.* gh issue list .*$/m.exec(readme)?.[0] ?? "none";
    expect(ghIn(page)).toBe(line.replace("http://127.0.0.1:8080", world.url));
    const behind = await world.openSibling({ PUBLIC_URL: "https://mirror.example" });
    expect(ghIn(await askAt(behind, "GET", "/-/docs"))).toBe(
      "GH_HOST=mirror.example GH_ENTERPRISE_TOKEN=$TOKEN gh issue list -R OWNER/NAME",
    );
  });

  test("loads nothing and runs nothing", () => {
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/=]{44}';/);
    expect(page.text.match(/<(script|img|link|iframe|form)|\son\w+=|\sstyle=|@import|\burl\(/i)).toBeNull();
  });

  test("shows each operation with its parameters, and each type of GraphQL", () => {
    for (const { path, method, operation } of operations()) {
      if (path === "/graphql") continue;
      const id = operation.operationId.replace(/[^\w-]+/g, "-");
      const shown = page.text.slice(page.text.indexOf(`<details id="${id}">`)).split("</details>")[0] ?? "";
      const [summary = ""] = shown.split("</summary>");
      expect(summary.replace(/<[^>]*>/g, "")).toContain(`${method.toUpperCase()} ${path} `);
      for (const { name, in: where } of operation.parameters.map(resolved))
        if (where !== "header") expect(shown, `${method} ${path}`).toContain(`<code>${name}</code>`);
    }
    const types = Object.keys(apiSchema().getTypeMap()).filter(
      (name) => !/^(__|String$|Boolean$|Int$|Float$|ID$)/.test(name),
    );
    for (const name of types) expect(page.text).toContain(`<details id="type-${name}"`);
  });

  test("has no link to what it does not have, and no id twice", () => {
    const ids = [...page.text.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const anchors = [...page.text.matchAll(/href="#([^"]*)"/g)].map(([, id]) => id);
    expect(anchors.filter((id) => !ids.includes(id))).toEqual([]);
    expect(anchors.length).toBeGreaterThan(5);
  });

  test("says which tokens are taken and what they may do, as it was set", async () => {
    expect(page.text).toContain("5,000 requests an hour");
    expect(page.text).toContain("What is not listed here is asked of the mirrored service");
    const settings = { AUTH_MODE: "upstream", RATE_LIMIT_USER: "0", RATE_LIMIT_ANONYMOUS: "7", PASS_THROUGH: "off" };
    const other = await world.openSibling(settings);
    const { text } = await askAt(other, "GET", "/-/docs");
    expect(text).toContain("What is not listed here is not served");
    expect(text).not.toContain("tain token create");
    expect(text).toContain("<td>no limit</td>");
    expect(text).toContain("<td>7 requests an hour</td>");
  });
});

describe("prose", () => {
  test.each([
    ['`a < b` & "c"', "<code>a &lt; b</code> &amp; &quot;c&quot;"],
    [
      "see [this](https://example.com/a?b=1&c)",
      'see <a href="https://example.com/a?b=1&amp;c" rel="noreferrer">this</a>',
    ],
    ["[here](/rest/issues)", '<a href="https://docs.github.com/rest/issues" rel="noreferrer">here</a>'],
    ["[x](javascript:alert(1))", "[x](javascript:alert(1))"],
    ["<script>alert('x')</script>", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"],
    ['[x](https://a/"onclick="b)', '<a href="https://a/&quot;onclick=&quot;b" rel="noreferrer">x</a>'],
    ["**bold** and *", "<strong>bold</strong> and *"],
  ])("%s", (markdown, html) => {
    expect(inline(markdown)).toBe(html);
  });

  test("text stays what it is", () => expect(escapedHtml(`&<>"'`)).toBe("&amp;&lt;&gt;&quot;&#39;"));
});

test("a request under a name that is no host is a bad one", async () => {
  const { request } = await import("node:http");
  const status = await new Promise((settle, fail) => {
    const asked = request(`${world.url}/-/docs`, { headers: { host: "a b" } }, (answer) => {
      answer.resume();
      settle(answer.statusCode);
    });
    asked.on("error", fail).end();
  });
  expect(status).toBe(400);
});
