import { execFile } from "node:child_process";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { SETTINGS } from "../../src/config/settings.ts";
import { VERSION } from "../../src/version.ts";
import { projectRoot } from "../docs/markdown.ts";

const run = promisify(execFile);
const read = (path: string) => readFileSync(join(projectRoot, path), "utf8");

/** The processes that every way of deploying runs. */
const PROGRAMS = ["db/migrate.ts", "src/web.ts", "workers/main.ts", "workers/scheduler.ts"];

interface Service {
  image: string;
  command?: string[];
  environment?: Record<string, string>;
  healthcheck?: object;
  read_only?: boolean;
  cap_drop?: string[];
}

test("the four processes are the same in the Procfile, compose, the chart and systemd, and each exists", () => {
  const { services } = parse(read("compose.yaml"), { merge: true }) as { services: Record<string, Service> };
  const composed = Object.values(services).flatMap(({ command = [] }) =>
    command.filter((word) => word.endsWith(".ts")),
  );
  const charted = globSync("deploy/chart/templates/*.yaml", { cwd: projectRoot }).flatMap((path) =>
    [...read(path).matchAll(/^ +args: \[(.*)\]$/gm)].map(([, entry]) => entry),
  );
  const units = globSync("deploy/systemd/*.service", { cwd: projectRoot }).map(
    (path) => /^ExecStart=\S+ (.*)$/m.exec(read(path))?.[1],
  );
  const commands: Record<string, string> = {
    ...{ migrate: "db/migrate.ts", web: "src/web.ts", worker: "workers/main.ts", scheduler: "workers/scheduler.ts" },
  };
  const procfile = [...read("Procfile").matchAll(/^\w+: node scripts\/tain-command\.mjs (\w+)$/gm)].map(
    ([, command = ""]) => commands[command],
  );
  for (const each of [composed, charted, units, procfile]) expect(each.sort()).toEqual(PROGRAMS);
  for (const entry of PROGRAMS) expect(existsSync(join(projectRoot, entry))).toBe(true);
});

test("Prometheus reads the processes where compose and the image have them answer", () => {
  const { services } = parse(read("compose.yaml"), { merge: true }) as { services: Record<string, Service> };
  const answering = Object.entries(services).flatMap(
    ([name, { command, environment: { PORT, METRICS_PORT } = {} }]) => {
      if (command?.[0] === "db/migrate.ts" || PORT === undefined) return [];
      return [`${name}:${command?.[0] === "src/web.ts" ? PORT : METRICS_PORT}`];
    },
  );
  const { scrape_configs: read_by } = parse(read("deploy/prometheus/prometheus.yaml")) as {
    scrape_configs: { static_configs: { targets: string[] }[] }[];
  };
  const targets = read_by.flatMap(({ static_configs: each }) => each.flatMap((one) => one.targets));
  expect(targets).toEqual(answering);
  expect(targets).toHaveLength(3);
  const ports = new Set(targets.map((target) => target.split(":")[1]));
  expect(read("deploy/Containerfile")).toMatch(new RegExp(`^EXPOSE ${[...ports].join(" ")}$`, "m"));
});

test("every image is named by its digest, and ours runs without rights on a root that it cannot write", () => {
  const { services } = parse(read("compose.yaml"), { merge: true }) as { services: Record<string, Service> };
  for (const [name, service] of Object.entries(services)) {
    if (service.image.startsWith("${TAIN_IMAGE")) {
      expect({ name, ...service }).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
      continue;
    }
    expect(service.image).toMatch(/^docker\.io\/[\w/]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
    expect(service.healthcheck, `${name} is asked whether it is well`).toBeDefined();
  }
  const containerfile = read("deploy/Containerfile");
  const bases = [...containerfile.matchAll(/^ARG \w+=(.*)$/gm)].map(([, image]) => image);
  expect(bases).toHaveLength(2);
  for (const image of bases) expect(image).toMatch(/^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
  expect(containerfile).toMatch(/^USER 65532:65532$/m);
});

test("compose, the image and the units set only what is a setting", () => {
  const known = [...Object.values(SETTINGS).map(({ name }) => name), "NODE_ENV", "NODE_COMPILE_CACHE"];
  const { services } = parse(read("compose.yaml"), { merge: true }) as { services: Record<string, Service> };
  const composed = Object.keys(services.web?.environment ?? {});
  const imaged = (/^ENV (.*)$/m.exec(read("deploy/Containerfile"))?.[1] ?? "")
    .split(" ")
    .map((each) => each.split("=")[0]);
  const units = globSync("deploy/systemd/*.service", { cwd: projectRoot }).flatMap((path) =>
    [...read(path).matchAll(/^Environment=(.*)$/gm)].flatMap(([, all = ""]) =>
      all.split(" ").map((each) => each.split("=")[0]),
    ),
  );
  expect(composed.length).toBeGreaterThan(4);
  expect([...composed, ...imaged, ...units].filter((name) => !known.includes(name ?? ""))).toEqual([]);
});

test("the chart scales by figures that there are", () => {
  const queries = [...read("deploy/chart/values.yaml").matchAll(/# ((?:max|sum)\((\w+).*)/g)];
  expect(queries.length).toBe(3);
  const documented = read("docs/monitoring.md");
  for (const [, query = "", metric = ""] of queries) expect(documented, query).toContain(`\`${metric}\``);
});

test("the chart is of this version, and names a value for each that its templates read", () => {
  expect(parse(read("deploy/chart/Chart.yaml"))).toMatchObject({ version: VERSION, appVersion: VERSION });
  const values: unknown = parse(read("deploy/chart/values.yaml"));
  const texts = readdirSync(join(projectRoot, "deploy/chart/templates")).map((name) =>
    read(`deploy/chart/templates/${name}`),
  );
  const named = new Set(
    texts.flatMap((text) => [...text.matchAll(/\.Values\.([\w.]+)/g)].map(([, path = ""]) => path)),
  );
  expect(named.size).toBeGreaterThan(20);
  const missing = [...named].filter((path) => {
    let value = values;
    for (const part of path.split("."))
      value = typeof value === "object" && value !== null ? Reflect.get(value, part) : undefined;
    return value === undefined;
  });
  expect(missing).toEqual([]);
});

const hasSystemd = await run("systemd-analyze", ["--version"]).then(
  () => true,
  () => false,
);

test.skipIf(!hasSystemd)("systemd takes the units (skipped without systemd-analyze)", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tain-units-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const names = readdirSync(join(projectRoot, "deploy/systemd"));
  // What is installed on no machine of ours: the program, and the pages.
  for (const name of names)
    await writeFile(join(folder, name), read(`deploy/systemd/${name}`).replaceAll("/opt/tain/node", process.execPath));
  const { stderr } = await run("systemd-analyze", ["verify", "--man=no", ...names.map((name) => join(folder, name))]);
  expect(stderr).toBe("");
});

test("the health check is 0 while a process answers at either port, and 1 when none does", async () => {
  const server = createServer(({ url }, response) => {
    response.writeHead(url === "/-/live" ? 200 : 404).end();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? String(address.port) : "";
  const check = (env: NodeJS.ProcessEnv) =>
    run(process.execPath, [join(projectRoot, "deploy/health.mjs")], { env }).then(
      () => 0,
      ({ code }: { code: number }) => code,
    );
  expect(await Promise.all([check({ METRICS_PORT: port, PORT: "1" }), check({ PORT: "1" })])).toEqual([0, 1]);
});
