/** The instance as people start it: the launcher, embedded stores with a role for each part, and one process for all. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "../../scripts/ports.mjs";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { family } from "../cli/tain.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { until } from "../support/patience.ts";
import { Home, type Launcher } from "./launcher.ts";

const TOKEN = "ghp_upstreamTokenOfTheTests";

test(
  "one process receives, applies and serves; stopped, started again or killed, it goes on where it was",
  async () => {
    await using simulator = await openSimulator({ seed: 5 });
    const [repository] = generateWorld(simulator.world, { seed: 5, repositories: 1, issues: 20 }).repositories;
    if (!repository) throw new Error("The world is empty");
    const name = simulator.world.fullName(repository);
    simulator.tokens.create({ token: TOKEN, login: "mirror-owner", repositories: "all", write: true });
    const port = String(await freePort(undefined));
    const url = `http://127.0.0.1:${port}`;
    const upstream = { UPSTREAM_URL: simulator.url, UPSTREAM_TOKEN: TOKEN, REPOSITORIES: name };
    await using home = await Home.open({
      ...{ ...upstream, TAIN_APP_ENTRY: "", HOST: "127.0.0.1", PORT: port, PUBLIC_URL: url },
      // What arrives was told by a webhook.
      CATCH_UP_INTERVAL: "1h",
    });
    const get = async (path: string, token: "token" | "operatorToken" = "token") => {
      const instance = JSON.parse(await readFile(join(home.path, "instance.json"), "utf8"));
      return await fetch(url + path, { headers: { authorization: `Bearer ${instance[token]}` } });
    };
    const arrives = async (title: string) => {
      const request = {
        method: "POST",
        body: JSON.stringify({ title }),
        headers: { authorization: `Bearer ${TOKEN}` },
      };
      const { number } = (await (await fetch(`${simulator.url}/repos/${name}/issues`, request)).json()) as {
        number: number;
      };
      const status = async () => (await get(`/repos/${name}/issues/${number}`).catch(() => null))?.status;
      await until(`"${title}" is served`, async () => (await status()) === 200);
    };
    const processesOf = async ({ child }: Launcher) =>
      [...(await family(child.pid ?? 0))].filter(([, args]) => /\/(web|workers)\b.*\.ts/.test(args));

    const first = home.run(["start", "--json"]);
    await first.told("up");
    const before = JSON.parse(await readFile(join(home.path, "instance.json"), "utf8"));
    await arrives("Told to the first start");
    const metrics = await (await get("/-/metrics", "operatorToken")).text();
    expect(metrics).toMatch(/^tain_deliveries_settled_total\{event="issues",outcome="applied"\} [1-9]/m);
    expect((await processesOf(first)).map(([, args]) => /workers\/one\.ts/.test(args))).toEqual([true]);
    expect(await first.stop()).toBe(0);

    const second = home.run(["start", "--json"]);
    await second.told("serving");
    expect((await get(`/repos/${name}/issues`)).status).toBe(200);
    await arrives("Told to the second start");
    const [[pid = 0] = []] = await processesOf(second);
    process.kill(pid, "SIGKILL");
    await until("its end is told", async () => second.stderr.includes("The instance has ended"));
    // A webhook that nobody takes is found by a check of deliveries, minutes later.
    await until("another serves", async () => (await fetch(`${url}/-/ready`).catch(() => null))?.ok === true);
    await arrives("Told after the kill");
    expect(JSON.parse(await readFile(join(home.path, "instance.json"), "utf8"))).toEqual(before);
    expect(await second.stop()).toBe(0);
    expect(second.stderr).not.toMatch(/by force|did not stop cleanly/);
  },
  LONG_TEST_MS,
);
