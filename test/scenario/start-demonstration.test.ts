import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Instance } from "../../src/cli/terminal/instance.ts";
import { family, isAlive, type Run, Tain } from "../cli/tain.ts";
import { until } from "../support/patience.ts";

// One instance after another in one home, as a person starts them. Each test goes on where the one before it stopped.
let tain: Tain;
let run: Run;
let instance: Instance;
let failed = false;

beforeAll(async () => {
  tain = await Tain.open();
  run = tain.start(["up"]);
  await run.said(/Ctrl-C stops everything/);
  instance = await tain.instance();
});

afterAll(async () => await tain?.close({ failed }), 60_000);

function check(name: string, run: () => Promise<void>): void {
  test(name, async () => {
    failed = true;
    await run();
    failed = false;
  });
}

async function get(path: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${instance.apiUrl}${path}`, { headers: { authorization: `Bearer ${instance.token}` } });
  return { status: response.status, body: await response.json() };
}

async function createUpstream(title: string, { owner, name }: { owner: string; name: string }): Promise<number> {
  const response = await fetch(`${instance.upstreamUrl}/repos/${owner}/${name}/issues`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${instance.upstreamToken}`,
      "content-type": "application/json",
      "user-agent": "test",
    },
    body: JSON.stringify({ title }),
  });
  expect(response.status).toBe(201);
  return ((await response.json()) as { number: number }).number;
}

async function arrives(number: number, { owner, name }: { owner: string; name: string }): Promise<void> {
  await until(
    `issue ${number} of ${owner}/${name} is in the mirror`,
    async () => (await get(`/repos/${owner}/${name}/issues/${number}`)).status === 200,
  );
}

check(
  "everything is served: at least three repositories, one of them private, 2,000 issues and pull requests, all live",
  async () => {
    expect((await fetch(`${instance.apiUrl}/-/ready`)).status).toBe(200);
    const { repositories } = await tain.status();
    expect(repositories.length).toBeGreaterThanOrEqual(3);
    expect(repositories.map(({ state, problem }) => ({ state, problem }))).toEqual(
      repositories.map(() => ({ state: "live", problem: null })),
    );

    const mine = (await get("/user/repos")).body as { full_name: string; private: boolean }[];
    expect(mine.map((each) => each.full_name).sort()).toEqual(
      repositories.map(({ owner, name }) => `${owner}/${name}`).sort(),
    );
    expect(mine.some((each) => each.private)).toBe(true);
    const upstream = (await (await fetch(`${instance.upstreamUrl}/-/state`)).json()) as {
      repositories: { full_name: string; issues: number }[];
    };
    const mirrored = upstream.repositories.filter((each) =>
      mine.some(({ full_name: name }) => name === each.full_name),
    );
    // The world's summary counts pull requests among the issues.
    expect(mirrored.reduce((sum, { issues }) => sum + issues, 0)).toBeGreaterThanOrEqual(2_000);
  },
);

check("instance.json tells its owner, and nobody else, how to reach everything", async () => {
  expect((await stat(join(tain.home, "instance.json"))).mode & 0o777).toBe(0o600);
  expect(instance).toEqual({
    apiUrl: `http://127.0.0.1:${tain.env.PORT}`,
    token: expect.stringMatching(/^tain_\w{40}$/),
    webhookUrl: `http://127.0.0.1:${tain.env.PORT}/webhooks`,
    webhookSecret: expect.stringMatching(/^[0-9a-f]{48}$/),
    encryptionKey: expect.stringMatching(/^[0-9a-f]{48}$/),
    operatorToken: expect.stringMatching(/^[0-9a-f]{48}$/),
    upstreamUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    upstreamToken: expect.any(String),
    repositories: (await tain.status()).repositories.map(({ owner, name }) => ({ owner, name })),
  });
  // The secrets stand nowhere else, so a collector of the start's output gets none.
  const { token, webhookSecret, encryptionKey, operatorToken, upstreamToken } = instance;
  for (const secret of [token, webhookSecret, encryptionKey, operatorToken, upstreamToken])
    expect(run.stdout + run.stderr).not.toContain(secret);
});

check("what is changed at upstream shows in the API within seconds, by its webhook", async () => {
  const [first] = instance.repositories;
  if (!first) throw new Error("nothing is mirrored");
  await arrives(await createUpstream("Seen by webhook", first), first);
});

check("the three lines to try do what they promise, typed as they are", async () => {
  const all = run.stdout.split("\n").map((line) => line.trim());
  const lines = all.filter((line) => line.startsWith("curl "));
  const token = all.find((line) => line.startsWith("TOKEN="));
  expect(lines).toHaveLength(3);
  const answers = await Promise.all(
    lines.map(async (line) =>
      JSON.parse(
        (
          await promisify(execFile)("sh", [
            "-c",
            `${token}\n${line.replace("curl ", "curl --silent --fail-with-body ")}`,
          ])
        ).stdout,
      ),
    ),
  );
  expect(answers[0]).toHaveLength(3);
  expect(answers[1]).toMatchObject({ title: "Hello from the mirror", state: "open" });
  expect(answers[2]).toMatchObject({ data: { viewer: { login: "octocat", repositories: { nodes: [{}, {}, {}] } } } });
});

check("one port shows the metrics of all parts, each of them once", async () => {
  const headers = { authorization: `Bearer ${instance.operatorToken}` };
  const text = await (await fetch(`${instance.apiUrl}/-/metrics`, { headers })).text();
  const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const series = samples.map((line) => line.slice(0, line.lastIndexOf(" ")));
  expect(series.filter((one, at) => series.indexOf(one) !== at)).toEqual([]);
  const values = new Map(samples.map((line, at) => [series[at], Number(line.slice(line.lastIndexOf(" ")))]));
  expect(values.get('tain_deliveries_settled_total{event="issues",outcome="applied"}')).toBeGreaterThan(0);
  expect(values.get('tain_store_up{store="postgres"}')).toBe(1);
  // Each part has its own connections, with the rights of its role.
  for (const pool of ["web", "worker", "reads"])
    expect(series).toContain(`tain_postgres_connections{pool="${pool}",state="idle"}`);
  expect(series.filter((one) => one === "process_resident_memory_bytes")).toHaveLength(1);
});

check("the process that serves is started again when it is killed, and goes on with the same world", async () => {
  const find = async () => [...(await family(run.pid))].find(([, args]) => args.includes("workers/one.ts"))?.[0];
  const before = await find();
  process.kill(before as number, "SIGKILL");
  await run.said(/The instance has ended \(ended by SIGKILL\): starting it again/);
  // A webhook that nobody takes is found by a check of deliveries, minutes later.
  await until("it answers", async () => (await fetch(`${instance.apiUrl}/-/ready`).catch(() => null))?.ok === true);
  const [first] = instance.repositories;
  await arrives(
    await createUpstream("After the kill", first as { owner: string; name: string }),
    first as { owner: string; name: string },
  );
  expect(await find()).not.toBe(before);
  // The world goes on, and so does its mirror: nothing was begun anew, and nobody is greeted twice.
  expect((await get(`/repos/${first?.owner}/${first?.name}/issues?per_page=1`)).body).toHaveLength(1);
  expect(await tain.instance()).toEqual(instance);
  expect(run.stdout.match(/^Try:$/gm)).toHaveLength(1);
});

check("a second instance on the same port is refused with a sentence, and disturbs nothing", async () => {
  const ended = await tain.run(["up"]);
  expect(ended).toEqual({
    code: 1,
    stdout: "",
    stderr: `tain: Port ${tain.env.PORT} is taken by another program: set PORT to a free one (e.g. PORT=${Number(tain.env.PORT) + 1}), or end that program\n`,
  });
  expect((await tain.status()).repositories.every(({ state }) => state === "live")).toBe(true);
});

check("asked to stop by Ctrl-C it ends in order, successfully, and leaves no process", async () => {
  const processes = await family(run.pid);
  expect([...processes.values()].map((args) => /(simulator\/main|workers\/one)\.ts/.exec(args)?.[1]).sort()).toEqual([
    "simulator/main",
    "workers/one",
  ]);
  run.signal("SIGINT");
  const { code, stdout, stderr } = await run.exited;
  expect({ code, last: stdout.split("\n").at(-2) }).toEqual({ code: 0, last: "Stopping …" });
  expect(stderr).not.toMatch(/by force|Not finished/);
  for (const pid of processes.keys()) expect(await isAlive(pid), processes.get(pid)).toBe(false);
});

check(
  "the next start keeps token and secret, begins the world anew and empties the mirror of the last one",
  async () => {
    const before = instance;
    const [first] = before.repositories;
    run = tain.start(["up"]);
    await run.said(/^Try:$/m);
    expect(run.stdout).toContain("The mirror of the last start's world has been emptied.");
    instance = await tain.instance();
    expect(instance).toMatchObject({
      token: before.token,
      webhookSecret: before.webhookSecret,
      repositories: before.repositories,
    });
    const issues = `/repos/${first?.owner}/${first?.name}/issues?state=all&per_page=100`;
    const headers = { authorization: `Bearer ${instance.upstreamToken}`, "user-agent": "test" };
    const upstream = (await (await fetch(`${instance.upstreamUrl}${issues}`, { headers })).json()) as {
      title: string;
    }[];
    expect(upstream).toHaveLength(100);
    expect(upstream.map(({ title }) => title)).not.toContain("Hello from the mirror");
    const mirrored = (await get(issues)).body;
    expect(JSON.stringify(mirrored)).not.toContain("Hello from the mirror");
  },
);

check("the end of the simulator ends everything, since its world cannot come back", async () => {
  const processes = await family(run.pid);
  expect(processes.size).toBe(2);
  const simulator = [...processes].find(([, args]) => args.includes("simulator/main.ts"))?.[0];
  process.kill(simulator as number, "SIGKILL");
  const { code, stderr } = await run.exited;
  expect(code).toBe(1);
  expect(stderr).toContain(
    "tain: The simulator has ended (ended by SIGKILL): its world is gone with it. Start again for a new one",
  );
  for (const pid of processes.keys()) expect(await isAlive(pid), processes.get(pid)).toBe(false);
});
