import { existsSync, globSync, readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { RETIRED_SETTINGS } from "../../src/config/retired.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { QUEUE_NAMES } from "../../src/queues/queues.ts";
import { VERSION } from "../../src/version.ts";
import { codeSpansOf, pages, projectRoot, proseOf, readPage } from "./markdown.ts";

const sources = globSync("{src,workers,db,scripts,test,bench,deploy}/**/*.{ts,mjs,sql}", { cwd: projectRoot });

describe.each(pages)("%s", (page) => {
  const text = readPage(page);

  test("each link inside the project leads to a page, and to a heading of it", () => {
    const broken: string[] = [];
    for (const [, target = ""] of proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : relative(projectRoot, join(projectRoot, dirname(page), path));
      if (!existsSync(join(projectRoot, file))) broken.push(target);
      else if (anchor !== undefined && !headingsOf(readPage(file)).includes(anchor)) broken.push(target);
    }
    expect(broken).toEqual([]);
  });

  test("each file that it names exists", () => {
    const named = codeSpansOf(text).filter((span) =>
      /^(src|workers|db|scripts|test|docs|bench|deploy)\/[\w./*-]*$/.test(span),
    );
    expect(named.filter((path) => globSync(path, { cwd: projectRoot }).length === 0)).toEqual([]);
  });

  test("each file named without its folder is in the folder that was named last, or the only one of its name", () => {
    let folder = "";
    const lost: string[] = [];
    for (const span of codeSpansOf(text)) {
      if (/^(src|workers|db|scripts|test|bench|deploy|docs)(\/[\w.-]+)*\/?$/.test(span))
        folder = /\.\w+$/.test(span) ? dirname(span) : span.replace(/\/$/, "");
      else if (/^[\w./-]+\.(ts|mjs|sql)$/.test(span)) {
        const found = sources.filter((path) => `/${path}`.endsWith(`/${span}`));
        const isThere =
          found.length === 1 || found.some((path) => dirname(path) === folder || path === `${folder}/${span}`);
        if (!isThere) lost.push(`${span} after ${folder}: ${found.join(" ") || "no such file"}`);
      }
    }
    expect(lost).toEqual([]);
  });

  test("each setting that it names exists", () => {
    const known = [
      ...Object.keys(RETIRED_SETTINGS),
      ...Object.values(SETTINGS).flatMap((setting) =>
        "secret" in setting ? [setting.name, `${setting.name}_FILE`] : [setting.name],
      ),
      // Settings of clients.
      "DANGER_GITHUB_API_BASE_URL",
      "GHE_HOST",
      "GH_HOST",
      "GITHUB_API_URL",
      "GITHUB_HOST",
      "GHE_PROTOCOL",
      "GITHUB_ENTERPRISE_ENDPOINT",
      "HOOK_CLIENTS",
      "KEEP_CORPORA",
      "METRICS_MINUTES",
      "NODE_COMPILE_CACHE",
      "NODE_ENV",
      "NODE_EXTRA_CA_CERTS",
      // OpenTelemetry's own.
      "OTEL_EXPORTER_OTLP_HEADERS",
      "OTEL_RESOURCE_ATTRIBUTES",
      "OTEL_SERVICE_NAME",
      "OTEL_TRACES_SAMPLER",
      "OTEL_TRACES_SAMPLER_ARG",
      // A type of error, not a setting.
      "RESOURCE_LIMITS_EXCEEDED",
      "SNAPSHOT_STEPS",
      "TAIN_DEBUG",
      "TAIN_COUNTS",
      "TAIN_LARGE",
      "TAIN_LONG_PART",
      "TAIN_LISTEN",
      "NODE_OPTIONS",
      "TAIN_POSTGRES",
      "TAIN_POSTGRES_BUFFERS",
      "TAIN_REDIS_FROM",
      "TAIN_TOKEN",
      "TEST_DATABASE_URL",
      "TEST_REDIS_URL",
      "UPKEEP_REPOSITORIES",
    ];
    const named = codeSpansOf(text).map((span) => /^([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(=.*)?$/.exec(span)?.[1]);
    expect(named.filter((name) => name !== undefined && !known.includes(name))).toEqual([]);
  });
});

test("the decisions are numbered without a gap and listed", () => {
  const files = readdirSync(join(projectRoot, "docs/decisions"))
    .filter((name) => name !== "README.md")
    .sort();
  expect(files.map((name) => Number(name.slice(0, 4)))).toEqual(files.map((_, at) => at + 1));
  const listed = [...readPage("docs/decisions/README.md").matchAll(/^\d+\. \[(.*)\]\((.*)\)$/gm)];
  expect(listed.map(([, , file]) => file)).toEqual(files);
  for (const [, title, file] of listed)
    expect(readPage(`docs/decisions/${file}`).split("\n")[0]).toMatch(new RegExp(`^# \\d+\\. ${title}$`));
});

test.each(readdirSync(join(projectRoot, "docs/decisions")).filter((name) => name !== "README.md"))(
  "%s says context, choice and cost",
  (name) => {
    const text = readPage(`docs/decisions/${name}`);
    for (const part of ["**Context.**", "**Choice.**", "**Cost.**"]) expect(text).toContain(part);
  },
);

describe("the architecture", () => {
  const text = readPage("docs/architecture.md");

  test("shows every module of src/, and none that is not there", () => {
    const shown = [...text.matchAll(/^ {2}([\w.-]+(?:\/|\.ts)) /gm)].map(([, name]) => name);
    const there = readdirSync(join(projectRoot, "src"), { withFileTypes: true }).map((entry) =>
      entry.isDirectory() ? `${entry.name}/` : entry.name,
    );
    expect(shown.sort()).toEqual(there.sort());
  });

  test("names a test, or says that there is none, for each of the fifteen properties", () => {
    const list = text.slice(text.indexOf("\n## Properties"));
    const properties = list.split(/^(?=\d+\. )/m).slice(1);
    expect(properties.map((property) => Number.parseInt(property, 10))).toEqual(
      Array.from({ length: 15 }, (_, at) => at + 1),
    );
    for (const property of properties) expect(property).toMatch(/`test\/[\w./-]+\.test\.ts`/);
  });

  test.each([
    ["A delivery to its commit.", 20],
    ["A read that was asked twice before.", 6],
    ["A first read.", 18],
    ["A GraphQL query.", 18],
  ])("the walk '%s' names at most %i files, and each exists", (walk, most) => {
    // The names are counted: the files that decide something. What the work enters besides is not.
    const text = readPage("docs/architecture.md");
    const start = text.indexOf(`**${walk}**`);
    expect(start).toBeGreaterThan(0);
    const named = codeSpansOf(text.slice(start, text.indexOf("\n\n", start))).filter((span) => span.endsWith(".ts"));
    // A name without a path lies beside the file that was named last.
    const files: string[] = [];
    for (const name of named) files.push(name.includes("/") ? name : join(dirname(files.at(-1) ?? ""), name));
    expect(files.filter((file) => !existsSync(join(projectRoot, file)))).toEqual([]);
    expect(new Set(files).size).toBeLessThanOrEqual(most);
  });

  test("takes six minutes to read", () => {
    expect(text.split(/\s+/).length).toBeLessThanOrEqual(1_400);
  });
});

test("a maintainer's path through the pages has at most 12,000 words", () => {
  const [, path = ""] = readPage("docs/README.md").split("\n## A maintainer's path\n");
  const steps = [...path.matchAll(/^\d\. \[([\w-]+\.md)\]/gm)].map(([, page = ""]) => page);
  expect(steps[0]).toBe("architecture.md");
  const words = steps.map((page) => readPage(`docs/${page}`).split(/\s+/).length);
  expect(words.reduce((sum, each) => sum + each)).toBeLessThanOrEqual(12_000);
});

test("the page on following upstream lists the queues that there are", () => {
  const text = readPage("docs/following.md");
  const list = text.slice(text.indexOf("\n## How work is given out"), text.indexOf("\n## A delivery is applied"));
  expect([...list.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name).sort()).toEqual(
    Object.values(QUEUE_NAMES).sort(),
  );
});

test("of its versions the changelog names this one first", () => {
  expect(/^## (?!Unreleased$)(\S+)(?: \(\d{4}-\d\d-\d\d\))?$/m.exec(readPage("CHANGELOG.md"))?.[1]).toBe(VERSION);
});

/** The anchors of a page, as code hosts make them. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}
