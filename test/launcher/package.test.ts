import { execFile } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { builtinModules, stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { type Emitted, emit, emitted } from "../../scripts/generate/javascript.ts";
import { temporaryDirectories } from "../../scripts/temporary.mjs";
import { blocksOf, readPage } from "../docs/markdown.ts";
import { connectTo, openTestDatabase } from "../support/database.ts";
import { printFigures } from "../support/figures.ts";
import { Launcher } from "./launcher.ts";

const run = promisify(execFile);
const checkout = fileURLToPath(new URL("../../", import.meta.url));
const described: { dependencies: Record<string, string>; bin: { tain: string } } = JSON.parse(
  await readFile(join(checkout, "package.json"), "utf8"),
);

test("what the npm package imports are its dependencies, and what its modules name comes with it", async () => {
  const files = await emitted();
  const imported = new Set(files.flatMap(({ packages }) => packages));
  const known = [...Object.keys(described.dependencies), ...builtinModules.map((name) => `node:${name}`)];
  const packageOf = (name: string) => (/^node:/.test(name) ? name : /^(@[^/]+\/)?[^/]+/.exec(name)?.[0]) ?? name;
  expect([...imported].filter((name) => !known.includes(packageOf(name)))).toEqual([]);
  const paths = files.map(({ path }) => path);
  for (const needed of ["src/web.ts", "src/api/description/page.css", "src/simulator/main.ts", "package.json"])
    expect(paths).toContain(needed);
  expect(paths.filter((path) => /^(test|bench|scripts)\//.test(path))).toEqual([]);
  const left = files.filter(({ text }: Emitted) => /(from|import\() ?"\.[^"]*\.ts"/.test(text ?? ""));
  expect(left.map(({ path }) => path)).toEqual([]);
  // A file that is named without ./ would not be found among what comes along.
  const unmarked = files.filter(({ text }) => /new URL\("(?![./])[^"]*", import\.meta\.url/.test(text ?? ""));
  expect(unmarked.map(({ path }) => path)).toEqual([]);
});

test("every program of the package loads where npm puts it, and `tain` answers", async () => {
  // Below node_modules, where Node.js takes no TypeScript; the dependencies lie beside it, as npm puts them.
  await mkdir(join(checkout, "node_modules", ".cache"), { recursive: true });
  const place = await mkdtemp(join(checkout, "node_modules", ".cache", "package-"));
  onTestFinished(() => rm(place, { recursive: true }));
  const root = join(place, "node_modules", "tain");
  await emit(join(root, "dist"));
  for (const name of ["scripts", "package.json"]) await cp(join(checkout, name), join(root, name), { recursive: true });

  const programs = ["src/web.js", "workers/main.js", "workers/scheduler.js", "workers/one.js", "db/migrate.js"];
  const imports = programs.map((each) => `await import(${JSON.stringify(join(root, "dist", each))});`);
  await run(process.execPath, ["--input-type=module", "--eval", imports.join("\n")], { cwd: place });

  const tain = (...args: string[]) =>
    run(process.execPath, [join(root, described.bin.tain), ...args], { cwd: place, env: { ...process.env, CI: "" } });
  const { stdout } = await tain("help", "status");
  expect(stdout).toContain("Usage: tain status [options]");

  await rm(join(root, "dist"), { recursive: true });
  await expect(tain("status")).rejects.toMatchObject({
    stderr: expect.stringContaining("this package was not made by `npm run package`"),
  });
});

test("a program that has the package beside it imports the mirror's tables and views, with the types of their rows", async () => {
  await using place = await openSchemaPlace();
  const program = `
    import { getTableName } from "drizzle-orm";
    import { issues } from "tain/schema";
    import { issues as shown } from "tain/views";
    type Row = typeof issues.$inferSelect;
    export const read = (row: Row): [number, string, Date | null] => [row.number, row.title, row.closedAt];
    export const labels = (row: typeof shown.$inferSelect): string[] => row.labels;
    // @ts-expect-error No issue has such a column.
    export const wrong = issues.colour;
    // @ts-expect-error Views have no tombstones.
    export const gone = shown.deletedAt;
    console.log(getTableName(issues), issues.closedAt.name, shown.closedBy.name);`;
  expect(await place.run(program, {})).toBe("issues closed_at closed_by\n");
});

test("the example of docs/sql.md is compiled, and lists open issues", async () => {
  const [example] = blocksOf(readPage("docs/sql.md")).filter(({ language }) => language === "ts");
  await using place = await openSchemaPlace();
  await using database = await openTestDatabase();
  const client = await connectTo(database.url);
  await client.query(`
    insert into repositories (id, name, full_name, private, document, seen_at, seen_by_read)
      values (1, 'name', 'owner/name', true, '{}', now(), true);
    insert into repository_syncs (repository_id, state, added_at) values (1, 'live', now());
    insert into issues (repository_id, number, id, is_pull_request, title, state, created_at, updated_at, document, seen_at, seen_by_read)
      select 1, n, n, n = 3, 'Issue ' || n, case n when 2 then 'closed' else 'open' end, now(), now(), '{}', now(), true
        from generate_series(1, 3) n;
    insert into labels (repository_id, id, name, document, seen_at, seen_by_read)
      select 1, n, name, '{}', now(), true from unnest(array['bug', 'api']) with ordinality as l(name, n);
    insert into issue_labels (repository_id, label_id, number, state, is_pull_request, is_shown, created_at)
      select 1, n, 1, 'open', false, true, now() from generate_series(1, 2) n`);
  await client.end();
  expect(await place.run(example?.text ?? "", { DATABASE_URL: database.url })).toBe("1 Issue 1 api,bug\n");
});

/** A place beside which npm has put the package, for a program that imports the descriptions. */
async function openSchemaPlace() {
  await mkdir(join(checkout, "node_modules", ".cache"), { recursive: true });
  const place = await mkdtemp(join(checkout, "node_modules", ".cache", "schema-"));
  const root = join(place, "node_modules", "tain");
  await emit(join(root, "dist"));
  await cp(join(checkout, "package.json"), join(root, "package.json"));
  await writeFile(join(place, "package.json"), '{"type":"module"}');
  return {
    /** Compiles a program and runs it. Answers what it prints. */
    run: async (program: string, env: NodeJS.ProcessEnv) => {
      await writeFile(join(place, "program.ts"), program);
      const compiler = join(checkout, "node_modules/typescript/bin/tsc");
      const options = ["--ignoreConfig", "--strict", "--noEmit", "--skipLibCheck", "--target", "esnext"];
      const modules = ["--module", "nodenext", "--types", "node", "program.ts"];
      await run(process.execPath, [compiler, ...options, ...modules], { cwd: place });
      // Node.js takes no TypeScript below node_modules.
      const plain = ["--input-type=module", "--eval", stripTypeScriptTypes(program)];
      const { stdout } = await run(process.execPath, plain, { cwd: place, env: { ...process.env, ...env } });
      return stdout;
    },
    [Symbol.asyncDispose]: () => rm(place, { recursive: true }),
  };
}

test("a package cannot be published by mistake: npm refuses before it sends anything", async () => {
  const sent: string[] = [];
  const registry = createServer(({ method, url }, response) => {
    sent.push(`${method} ${url}`);
    response.end("{}");
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void registry.close());
  await once(registry, "listening");
  const address = registry.address();
  const host = typeof address === "object" && address ? `127.0.0.1:${address.port}` : "";
  const args = [
    "publish",
    "--ignore-scripts",
    "--loglevel=error",
    `--registry=http://${host}/`,
    `--//${host}/:_authToken=none`,
  ];
  await expect(run("npm", args, { cwd: checkout, env: withoutOwnSettings(process.env) })).rejects.toMatchObject({
    stderr: expect.stringContaining("EPRIVATE"),
  });
  expect(sent.filter((each) => !each.startsWith("GET "))).toEqual([]);
});

/** `PACKAGE=1` packs, installs from the registry into an empty directory, and starts the demonstration there. */
test.runIf(process.env.PACKAGE)(
  "a package that is installed into an empty directory mirrors the demonstration",
  async () => {
    const [temporary = ""] = await temporaryDirectories();
    const place = await mkdtemp(join(temporary, "tain-package-"));
    onTestFinished(() => rm(place, { recursive: true, force: true }));
    const env = withoutOwnSettings(process.env);
    const packing = performance.now();
    await run("npm", ["run", "--silent", "package", "--", "--pack-destination", place], { cwd: checkout, env });
    const [file = ""] = await readdir(place);
    const packed = performance.now();

    const empty = join(place, "empty");
    await mkdir(empty);
    await run("npm", ["install", "--loglevel=error", join(place, file)], { cwd: empty, env });
    const installed = performance.now();

    const launcher = new Launcher("npx", ["tain", "up", "--json"], { ...env, PORT: "0" }, empty);
    onTestFinished(async () => void (await launcher.stop()));
    const { apiUrl } = await launcher.told("serving");
    const served = performance.now();
    await launcher.told("up");
    const copied = performance.now();

    const { token } = JSON.parse(await readFile(join(empty, ".tain", "instance.json"), "utf8"));
    const answer = await fetch(`${apiUrl}/user/repos`, { headers: { authorization: `Bearer ${token}` } });
    const { stdout } = await run("npx", ["tain", "status", "--json"], { cwd: empty, env });
    const { repositories } = JSON.parse(stdout) as { repositories: { state: string }[] };
    expect(answer.status).toBe(200);
    expect(await answer.json()).toHaveLength(4);
    expect(repositories.map(({ state }) => state)).toEqual(["live", "live", "live", "live"]);
    // npx passes no signal on: the launcher is told itself, as a terminal's Ctrl-C tells it.
    const { pids } = JSON.parse(await readFile(join(empty, ".tain", "stores.json"), "utf8"));
    process.kill(pids.launcher, "SIGTERM");
    expect(await launcher.exited).toBe(0);

    const seconds = (from: number, to: number) => Number(((to - from) / 1_000).toFixed(1));
    printFigures("package", {
      pack: seconds(packing, packed),
      install: seconds(packed, installed),
      serving: seconds(installed, served),
      copied: seconds(served, copied),
      all: seconds(packing, copied),
      live: repositories.filter(({ state }) => state === "live").length,
    });
  },
  900_000,
);

/** What a person's own shell has: nothing of the tests' stores, of npm's run, or of this Node. */
function withoutOwnSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const foreign =
    /^(npm_|TAIN_|TEST_|VITEST|UPSTREAM_|DATABASE_URL|REDIS_URL|NODE_ENV|NODE_OPTIONS|NODE_COMPILE_CACHE|PACKAGE)/;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !foreign.test(name)));
}
