import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { ProcessTree, type TreeProgram } from "../../src/cli/up/process-tree.ts";
import { until } from "../support/patience.ts";

const entry = new URL("fixture-part.ts", import.meta.url);

function openTree() {
  const said: string[] = [];
  const lines: string[] = [];
  const tree = new ProcessTree((line) => said.push(line));
  onTestFinished(async () => void (await tree.stop()));
  const start = (name: string, how: string, more: Partial<TreeProgram> = {}) =>
    tree.start({
      name,
      entry,
      args: [how],
      env: process.env,
      stopWithinMs: 5_000,
      onLine: (line) => lines.push(`${name}: ${line}`),
      ...more,
    });
  return { tree, said, lines, start };
}

test("a part that keeps ending is started again, later each time, and given up at its fifth end in a minute", async () => {
  const { tree, said, start, lines } = openTree();
  const begun = performance.now();
  start("worker", "crash");
  expect(await tree.failed).toBe(
    "The worker has ended 5 times within a minute (last: exit code 3); what it said of the reason stands above",
  );
  expect(said).toEqual(Array(4).fill("The worker has ended (exit code 3): starting it again"));
  expect(lines).toHaveLength(5);
  // The waits are 200, 400, 800 and 1,600 ms. A timer counts from when its turn of the event loop began, so it may be early.
  expect(performance.now() - begun).toBeGreaterThan(2_500);
});

test("the end of a part whose end is fatal is told with what it means, and it is not started again", async () => {
  const { tree, said, start, lines } = openTree();
  start("simulator", "crash", { fatal: "its world is gone" });
  expect(await tree.failed).toBe("The simulator has ended (exit code 3): its world is gone");
  expect(said).toEqual([]);
  expect(lines).toEqual(["simulator: started crash"]);
});

test("a part that must not work with its database is not started again", async () => {
  const { tree, said, start, lines } = openTree();
  start("web", "refuse");
  expect(await tree.failed).toBe("The web has ended (exit code 78); what it said of the reason stands above");
  expect(said).toEqual([]);
  expect(lines).toEqual(["web: started refuse"]);
});

test("what a part sends over its channel is in its environment when it is started again", async () => {
  const { tree, lines, start } = openTree();
  start("instance", "count", { env: { ...process.env, COUNTED: "0" } });
  await until("it has been started three times", async () => lines.length >= 3);
  expect(lines.slice(0, 3)).toEqual([0, 1, 2].map((count) => `instance: started count ${count}`));
  await tree.stop();
});

test("a part that is heard prints to our stdout, and is given flags for Node.js", async () => {
  const program = `
    import { ProcessTree } from ${JSON.stringify(new URL("../../src/cli/up/process-tree.ts", import.meta.url).href)};
    const tree = new ProcessTree(() => {});
    const part = { entry: new URL(${JSON.stringify(entry.href)}), env: process.env, stopWithinMs: 5_000, args: ["flags"] };
    tree.start({ ...part, name: "heard", isHeard: true, nodeFlags: ["--max-semi-space-size=1"] });
    tree.start({ ...part, name: "silent" });
    process.on("SIGTERM", () => void tree.stop());
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => {
      said[name] += text;
    });
  await until("both have started", async () => [said.stdout, said.stderr].every((text) => text.includes("started")));
  child.kill("SIGTERM");
  await once(child, "close");
  expect(said.stdout).toBe("started flags [--max-semi-space-size=1]\nstopping\n");
  expect(said.stderr).toBe("started flags []\nstopping\n");
});

test("parts stop one after the other, the last started first; one that does not listen is killed when its time is up", async () => {
  const { tree, lines, start } = openTree();
  start("web", "obey");
  start("worker", "deaf", { stopWithinMs: 300 });
  start("scheduler", "obey");
  await until("all have started", async () => lines.length === 3);
  expect(await tree.stop()).toEqual(["worker"]);
  expect(lines.slice(3)).toEqual(["scheduler: stopping", "web: stopping"]);
  // The tree has judged each end by now. A failure would come first in the race.
  expect(await Promise.race([tree.failed, "nothing failed"])).toBe("nothing failed");
});

test("a part that waits to be started again is not started any more once all is stopped", async () => {
  const { tree, said, lines, start } = openTree();
  start("worker", "crash");
  await until("it has ended", async () => said.length === 1);
  expect(await tree.stop()).toEqual([]);
  // Another tree begins later and is not stopped. Its third start comes after the time of the first tree's second.
  const other = openTree();
  other.start("worker", "crash");
  await until("the other is started a third time", async () => other.lines.length === 3);
  expect(lines).toEqual(["worker: started crash"]);
});
