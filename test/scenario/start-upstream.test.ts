import { once } from "node:events";
import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hookSecret } from "../../src/config/hook-secrets.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { VERSION } from "../../src/version.ts";
import { type Ended, family, isAlive, type Run, Tain } from "../cli/tain.ts";
import { tain as tainHere } from "../cli/tain-on.ts";
import { until } from "../support/patience.ts";

// Outside of the demonstration Tain is told its upstream. Here the simulator is that upstream, and web, worker and
// scheduler are processes of their own. Each test goes on where the one before it stopped.
const TOKEN = "ghp_upstreamTokenOfTheTests";
let simulator: Simulator;
let names: string[];
let tain: Tain;
let run: Run;
let failed = false;

beforeAll(async () => {
  simulator = await openSimulator({ seed: 5 });
  const { repositories } = generateWorld(simulator.world, { seed: 5, repositories: 3, issues: 60 });
  names = repositories.map((repository) => simulator.world.fullName(repository));
  simulator.tokens.create({ token: TOKEN, login: "mirror-owner", repositories: "all" });
  tain = await Tain.open({
    ...{ UPSTREAM_URL: simulator.url, UPSTREAM_TOKEN: TOKEN, REPOSITORIES: names[0] ?? "" },
    PROCESSES: "separate",
  });
  run = tain.start(["up"]);
  await run.said(/Ctrl-C stops everything/);
});

afterAll(async () => {
  await tain?.close({ failed });
  await simulator?.close();
});

function check(name: string, run: () => Promise<void>): void {
  test(name, async () => {
    failed = true;
    await run();
    failed = false;
  });
}

/** The commands know upstream from instance.json alone. */
const UNTOLD = { UPSTREAM_URL: "", UPSTREAM_TOKEN: "", REPOSITORIES: "" };
/**
 * Runs a command in this process. As a program it would take a second of processor time, so each command runs so only
 * once.
 */
const command = async (...args: string[]) => await tainHere(args, { ...tain.env, ...UNTOLD });
const parsed = async (...args: string[]) => inJson(await command(...args, "--json"));
const inJson = ({ code, stdout, stderr }: Ended) => ({
  code,
  stderr,
  json: stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line)),
});
const [owner, name] = [() => names[0]?.split("/")[0], () => names[0]?.split("/")[1]];

check(
  "what REPOSITORIES names is mirrored; without PUBLIC_URL no webhook is registered, and it is said why",
  async () => {
    expect(await tain.instance()).toMatchObject({
      upstreamUrl: simulator.url,
      upstreamToken: TOKEN,
      webhookUrl: `http://127.0.0.1:${tain.env.PORT}/webhooks`,
      repositories: [{ owner: owner(), name: name() }],
    });
    expect(run.stdout).toContain(
      "PUBLIC_URL is not set, so upstream sends no webhooks: changes are found by catch-up (CATCH_UP_INTERVAL).",
    );
    expect(run.stdout).toMatch(/1 repository live/);
    expect(simulator.world.hooks.size).toBe(0);
    // A command that a person copies from here must not write to a real service.
    expect(run.stdout).not.toMatch(/curl .* -d '\{"title"/);
  },
);

check("status tells of each repository, of the queues and of the quota, to people and to programs", async () => {
  const { code, stdout, stderr } = await tain.run(["status"], UNTOLD);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).not.toContain("\u001b");
  const [title, health, , headings, first] = stdout.split("\n");
  expect(health).toBe("All is well");
  expect(title).toBe(`Tain ${VERSION}, mirroring ${simulator.url}`);
  expect(headings?.indexOf("STATE")).toBe(first?.indexOf("live"));
  expect(stdout).toMatch(/^deliveries +0 +0 +0 +0$/m);
  expect(stdout).toMatch(/^token \w{16} +core +[\d,]+ of 5,000 +in \d+m/m);

  const { json } = await parsed("status");
  expect(json).toEqual([
    {
      version: VERSION,
      upstream: simulator.url,
      repositories: [
        {
          owner: owner(),
          name: name(),
          state: "live",
          progress: expect.objectContaining({ percent: 100 }),
          confirmedAt: expect.any(String),
          lagSeconds: expect.any(Number),
          problem: null,
          pace: null,
        },
      ],
      queues: expect.objectContaining({ backfill: { waiting: 0, active: 0, delayed: 0, failed: 0 } }),
      quota: expect.arrayContaining([expect.objectContaining({ bucket: "core", limit: 5_000 })]),
      forecast: null,
      replicas: [],
      problems: [],
      health: expect.objectContaining({ state: "well", line: "All is well", troubles: [] }),
    },
  ]);
});

check(
  "add finds a repository at upstream at once, whatever its letters' case, and its copy begins by itself",
  async () => {
    const { code, json } = inJson(await tain.run(["add", names[1]?.toUpperCase() ?? "", "--json"], UNTOLD));
    const [, second] = [...simulator.world.repositories.values()].filter(({ fork }) => !fork);
    expect(code).toBe(0);
    expect(json).toEqual([
      {
        added: [
          {
            pattern: names[1]?.toLowerCase(),
            repository: names[1],
            id: second?.id,
            state: expect.stringMatching(/backfilling|live/),
            webhook: "none",
            problem: null,
          },
        ],
        excepted: [],
      },
    ]);
    const followed = await parsed("backfill");
    expect(followed.code).toBe(0);
    expect((await tain.status()).repositories.map(({ state }) => state)).toEqual(["live", "live"]);
  },
);

check("with a public address add registers the webhook, with the secret that we verify", async () => {
  const env = { ...tain.env, PUBLIC_URL: "https://mirror.example/" };
  const added = await tainHere(["add", names[0] ?? "", "--json"], env);
  expect(JSON.parse(added.stdout)).toMatchObject({ added: [{ repository: names[0], webhook: "registered" }] });
  const [hook, ...others] = [...simulator.world.hooks.values()];
  expect(others).toEqual([]);
  const { webhookSecret } = await tain.instance();
  const secret = hookSecret(webhookSecret, { type: "repository", id: hook?.repository.id ?? 0 });
  expect(hook).toMatchObject({ url: "https://mirror.example/webhooks", secret, active: true });
});

check("add says in words what cannot be found, keeps the rest and fails", async () => {
  const { code, stdout } = await command("add", names[2] ?? "", "nobody/nothing", "no-such-owner/*");
  expect(code).toBe(1);
  expect(stdout).toMatch(new RegExp(`^${names[2]} +\\d+ +(backfilling|live) +none$`, "m"));
  expect(stdout).toMatch(
    /^nobody\/nothing +- +not found +none +upstream answers 404 \(Not Found\): check the name, and that the token may see it$/m,
  );
  expect(stdout).toMatch(
    /^no-such-owner\/\* +- +not found +none +upstream knows no organisation and no user no-such-owner$/m,
  );
});

check("remove keeps the rows, or purges them, and says which; what is not mirrored fails", async () => {
  expect(await parsed("remove", "nobody/nothing", "no-such-owner/*")).toMatchObject({
    code: 0,
    json: [
      {
        removed: [
          { repositories: [], wasWished: true },
          { repositories: [], wasWished: true },
        ],
      },
    ],
  });
  expect(await command("remove", "nobody/nothing")).toMatchObject({
    code: 1,
    stderr: "tain: nobody/nothing is not mirrored: `tain status` lists what is\n",
  });

  await until("the third repository is live", async () =>
    (await tain.status()).repositories.every(({ state }) => state === "live"),
  );
  const issues = async (path: string) =>
    (
      await fetch(`http://127.0.0.1:${tain.env.PORT}/repos/${path}/issues`, {
        headers: { authorization: `Bearer ${(await tain.instance()).token}` },
      })
    ).status;
  expect(await issues(names[1] ?? "")).toBe(200);
  expect((await command("remove", names[1] ?? "")).stdout).toBe(
    `${names[1]}: removed; what was copied is kept (--purge deletes it)\n`,
  );
  expect(await issues(names[1] ?? "")).toBe(404);
  expect((await tain.run(["remove", names[2] ?? "", "--purge"], UNTOLD)).stdout).toBe(
    `${names[2]}: removed, and what was copied is deleted\n`,
  );
  expect(await issues(names[2] ?? "")).toBe(404);
});

check(
  "remove warns of REPOSITORIES, which would bring it back, and refuses one of an owner who is wished as a whole",
  async () => {
    const wishing = (REPOSITORIES: string) => ({ ...tain.env, REPOSITORIES });
    const warned = await tainHere(["remove", names[1] ?? ""], wishing(`${names[1]},x/y`));
    expect(warned.stderr).toContain(
      `REPOSITORIES still names ${names[1]?.toLowerCase()}: take it out there, or it is mirrored again within seconds`,
    );
    const all = `${owner()}/*`.toLowerCase();
    const refused = await tainHere(["remove", names[0] ?? ""], wishing(all));
    expect(refused).toEqual({
      code: 1,
      stdout: "",
      stderr: `tain: ${names[0]?.toLowerCase()} is mirrored because of ${all}: except it by \`npm run tain -- add '!${names[0]?.toLowerCase()}'\`. Nothing was removed\n`,
    });
    expect((await tain.status()).repositories.find((each) => each.name === name())?.state).toBe("live");
  },
);

check("backfill copies again when told to, follows until all is live, and knows what it cannot do", async () => {
  expect(await command("backfill", names[0] ?? "")).toEqual({
    code: 1,
    stdout: "",
    stderr: `tain: ${names[0]} is live: its copy is complete (--again copies it once more)\n`,
  });
  expect(await command("backfill", "nobody/nothing")).toMatchObject({
    code: 1,
    stderr: "tain: nobody/nothing is not mirrored: `tain add nobody/nothing` begins to\n",
  });
  const { code, json } = await parsed("backfill", names[0] ?? "", "--again");
  expect(code).toBe(0);
  expect(json.at(-1)).toMatchObject({ event: "done", repositories: [{ owner: owner(), name: name(), state: "live" }] });
  expect(json.at(-2)).toMatchObject({
    event: "progress",
    pages: expect.any(Number),
    expectedPages: expect.any(Number),
    quota: expect.any(Array),
  });
});

check("Ctrl-C ends the view of a backfill, not the backfill, and says so", async () => {
  simulator.setFaults({ http: [{ kind: "slow", delayMs: 400 }] });
  const follow = tain.start(["backfill", names[0] ?? "", "--again"], UNTOLD);
  await follow.said(/^Copying: 0 of 1 done; /m);
  follow.signal("SIGINT");
  const { code, stderr } = await follow.exited;
  simulator.setFaults({});
  expect(code).toBe(130);
  expect(stderr).toContain(
    "tain: the copying goes on in the workers; `tain backfill` follows it again, `tain status` shows how far it is",
  );
  await until(
    "the copy is complete",
    async () => (await tain.status()).repositories.find((each) => each.name === name())?.state === "live",
  );
});

check("a worker that is killed is started again, alone", async () => {
  const find = async (file: string) => [...(await family(run.pid))].find(([, args]) => args.includes(file))?.[0];
  const [worker, web] = [await find("workers/main.ts"), await find("src/web.ts")];
  process.kill(worker as number, "SIGKILL");
  await run.said(/The worker has ended \(ended by SIGKILL\): starting it again/);
  await until("another worker runs", async () => ![undefined, worker].includes(await find("workers/main.ts")));
  expect(await find("src/web.ts")).toBe(web);
});

check("after kill -9 of the parent its processes end by themselves", async () => {
  const processes = await family(run.pid);
  expect(processes.size).toBe(3);
  run.signal("SIGKILL");
  for (const [pid, args] of processes) await until(`${args} has ended`, async () => !(await isAlive(pid)));
});

check("with upstream away the next start serves what is mirrored, and says what is the matter", async () => {
  const token = (await tain.instance()).token;
  const away = tain.start(["up"], { UPSTREAM_URL: "http://127.0.0.1:1" });
  const refused = await away.exited;
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      `tain: This database mirrors ${simulator.url}, not http://127.0.0.1:1: set UPSTREAM_URL to ${simulator.url}, or use another database`,
    ),
  });

  const { url } = simulator;
  await simulator.close();
  const alone = tain.start(["up"]);
  await alone.said(/serving what is mirrored/);
  await until(
    "the API answers",
    async () =>
      (
        await fetch(`http://127.0.0.1:${tain.env.PORT}/repos/${names[0]}`, {
          headers: { authorization: `Bearer ${token}` },
        }).catch(() => null)
      )?.status === 200,
  );
  expect(url).toBe((await tain.instance()).upstreamUrl);
  alone.signal("SIGTERM");
  expect((await alone.exited).code).toBe(0);
});

check("asked to stop while upstream keeps it waiting, it does not wait", async () => {
  const silent = createServer(() => {});
  await once(silent.listen(Number(new URL(simulator.url).port), "127.0.0.1"), "listening");
  const waiting = tain.start(["up"]);
  await until(
    "the API answers",
    async () => (await fetch(`http://127.0.0.1:${tain.env.PORT}/-/ready`).catch(() => null))?.status === 200,
  );
  waiting.signal("SIGTERM");
  expect((await waiting.exited).code).toBe(0);
  silent.closeAllConnections();
  silent.close();
});
