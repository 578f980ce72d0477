import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { familyOf, type Memory, memoryOf } from "./family.ts";
import { freePort } from "./free-port.ts";
import { getRequest, openLoader } from "./load.ts";
import type { Trial } from "./measure.ts";
import { cpuSecondsOf, type Program, startProgram, startServer } from "./processes.ts";
import { control, repositoriesAt, UPSTREAM_HEADERS } from "./upstream.ts";

const { env } = process;
const LARGE = env.TAIN_LARGE === "1";
const SIZE = {
  REPOSITORIES: LARGE ? "20" : "5",
  ISSUES: LARGE ? "50000" : "5000",
  PULLS: LARGE ? "5000" : "500",
};
/** How long nothing is asked before the instance counts as at rest: idle connections close after a minute. */
const REST_SECONDS = Number(env.REST_SECONDS ?? 90);
const LOAD_SECONDS = Number(env.SECONDS ?? 60);
const READS_PER_SECOND = Number(env.READS ?? 50);
const CHANGES_PER_SECOND = Number(env.CHANGES ?? 5);
const LOOK_MS = 20;
const PATIENCE_MS = 1_800_000;
/** No renames and no deletions: the addresses that are read stay. */
const KINDS = ["open", "edit", "label", "comment", "close", "reopen", "openPull", "push", "review"];

export const trial: Trial = {
  about: `\`npm start\` with ${SIZE.REPOSITORIES} repositories and ${SIZE.ISSUES} issues: memory at rest and under ${READS_PER_SECOND} reads and ${CHANGES_PER_SECOND} changes a second, and how soon it serves and follows after a restart`,
  async run() {
    await using upstream = await startServer("simulator-server.ts", SIZE);
    await using resources = new AsyncDisposableStack();
    const home = await mkdtemp(join(tmpdir(), "tain-bench-start-"));
    resources.defer(() => rm(home, { recursive: true, force: true }));
    const names = (await repositoriesAt(upstream.url)).map(({ fullName }) => fullName);
    const url = `http://127.0.0.1:${await freePort()}`;
    const settings = {
      ...{ HOME: home, TAIN_HOME: home, HOST: "127.0.0.1", PORT: new URL(url).port, PUBLIC_URL: url },
      ...{ UPSTREAM_URL: upstream.url, UPSTREAM_TOKEN: "bench-token", REPOSITORIES: names.join() },
      ...(env.PROCESSES && { PROCESSES: env.PROCESSES }),
    };
    const open = () => openInstance(home, settings, resources);
    const cpuSeconds = async (one: Instance) => await cpuSecondsOf([...(await familyOf(one.program.pid)).keys()]);

    const first = await open();
    const copiedMs = await first.until(() => first.said("up"));
    await delay(REST_SECONDS * 1_000);
    const figures: Record<string, unknown> = { copiedSeconds: seconds(copiedMs), restAfterCopy: await first.memory() };
    figures.underLoad = await peakUnderLoad(first, { url, upstream: upstream.url, names, home });
    await first.stop();

    const second = await open();
    const reads = () => isAnswered(`${url}/repos/${names[0]}/issues`, home);
    figures.servesAfterSeconds = seconds(await second.until(reads));
    const { number } = await createIssue(upstream.url, names[0] ?? "");
    const isShown = () => isAnswered(`${url}/repos/${names[0]}/issues/${number}`, home);
    figures.followsAfterSeconds = seconds(await second.until(isShown));
    figures.startCpuSeconds = await cpuSeconds(second);
    await delay(REST_SECONDS * 1_000);
    figures.restAfterStart = await second.memory();
    const before = await cpuSeconds(second);
    await delay(10_000);
    const after = await cpuSeconds(second);
    figures.restCpuShare = Number(((after - before) / 10).toFixed(3));
    await second.stop();
    return { figures, problems: [] };
  },
};

interface Instance {
  program: Program;
  /** Milliseconds since the start, once it holds. */
  until(look: () => boolean | Promise<boolean>): Promise<number>;
  /** Whether it has printed a document of this event. */
  said(event: string): boolean;
  memory(): Promise<Memory>;
  stop(): Promise<void>;
}

function openInstance(home: string, settings: NodeJS.ProcessEnv, resources: AsyncDisposableStack): Instance {
  const events = new Set<unknown>();
  const begun = performance.now();
  const program = startProgram(
    "../scripts/run.mjs",
    { ...settings, NODE_COMPILE_CACHE: join(home, "compiled") },
    (line) => events.add(line.startsWith("{") ? JSON.parse(line).event : null),
    ["start", "--json"],
  );
  let hasEnded = false;
  void program.ended.then(() => {
    hasEnded = true;
  });
  resources.use(program);
  return {
    program,
    said: (event) => events.has(event),
    async until(look) {
      for (const deadline = begun + PATIENCE_MS; ; await delay(LOOK_MS)) {
        if (await look()) return performance.now() - begun;
        if (hasEnded || performance.now() > deadline) throw new Error(`${await program.ended}, or it took too long`);
      }
    },
    memory: () => memoryOf(program.pid),
    async stop() {
      process.kill(program.pid, "SIGTERM");
      await program.ended;
    },
  };
}

/** The most that all processes took at one look, and what was answered meanwhile. */
async function peakUnderLoad(
  instance: Instance,
  { url, upstream, names, home }: { url: string; upstream: string; names: readonly string[]; home: string },
): Promise<Memory & { answers: number; p99: number }> {
  await using loader = openLoader();
  const headers = await headersOf(home);
  const paths = names.flatMap((name) =>
    Array.from({ length: 20 }, (_, at) => [
      `/repos/${name}/issues?state=all&per_page=30&page=${at + 1}`,
      `/repos/${name}/issues/${at + 1}`,
    ]),
  );
  const requests = paths.flat().map((path) => getRequest(url, path, headers));
  await control(upstream, "POST", "live", { ratePerSecond: CHANGES_PER_SECOND, seed: 1, kinds: KINDS });
  let most: Memory = { all: 0 };
  let isOver = false;
  const asked = { url, requests, connections: 8, seconds: LOAD_SECONDS, status: 200, perSecond: READS_PER_SECOND };
  const loading = loader.load(asked).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const now = await instance.memory();
    if ((now.all ?? 0) > (most.all ?? 0)) most = now;
    await Promise.race([delay(1_000), loading]);
  }
  const { answers, p99 } = await loading;
  await control(upstream, "DELETE", "live");
  return { ...most, answers, p99 };
}

async function headersOf(home: string): Promise<Record<string, string>> {
  const { token } = JSON.parse(await readFile(join(home, "instance.json"), "utf8")) as { token: string };
  return { Authorization: `Bearer ${token}` };
}

async function isAnswered(url: string, home: string): Promise<boolean> {
  const answer = await fetch(url, { headers: await headersOf(home) }).catch(() => null);
  await answer?.arrayBuffer();
  return answer?.status === 200;
}

async function createIssue(upstream: string, name: string): Promise<{ number: number }> {
  const request = { method: "POST", headers: UPSTREAM_HEADERS, body: JSON.stringify({ title: "After the restart" }) };
  const answer = await fetch(`${upstream}/repos/${name}/issues`, request);
  return (await answer.json()) as { number: number };
}

function seconds(ms: number): number {
  return Math.round(ms / 10) / 100;
}
