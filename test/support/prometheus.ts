import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePort } from "../../scripts/ports.mjs";
import { until } from "./patience.ts";

const run = promisify(execFile);
const SHIPPED = fileURLToPath(new URL("../../deploy/prometheus/", import.meta.url));

interface Series {
  metric: Record<string, string>;
  value: [number, string];
}

/** The values of a series over time. The moments are in seconds. */
interface Course {
  metric: Record<string, string>;
  values: [number, string][];
}

/** A Prometheus that reads these processes, with the rules that Tain ships but shorter times. */
export interface Prometheus extends AsyncDisposable {
  /** The series that an expression yields now. */
  query(expression: string): Promise<Series[]>;
  /** The series that an expression yielded between these moments. */
  range(expression: string, from: Date, to: Date, stepSeconds: number): Promise<Course[]>;
  /** The names of the alerts that fire now. */
  firing(): Promise<Set<string>>;
}

/**
 * Finds Debian's Prometheus, and installs it where it is missing and this user may. Null: there is none, and a line
 * says why.
 */
export async function findPrometheus(): Promise<string | null> {
  const isThere = async () =>
    await run("prometheus", ["--version"]).then(
      () => true,
      () => false,
    );
  if (await isThere()) return "prometheus";
  if (process.getuid?.() !== 0) {
    console.info("Prometheus is not installed, and only root may install it: apt-get install prometheus");
    return null;
  }
  await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "prometheus"]).catch((error: Error) =>
    console.info(`Prometheus could not be installed: ${error.message}`),
  );
  return (await isThere()) ? "prometheus" : null;
}

/** The rules with waits and windows of seconds, so that a test sees alerts begin and end. Pure. */
function shortened(rules: string): string {
  return rules
    .replaceAll(/\bfor: \d+[mh]/g, "for: 2s")
    .replaceAll(/\[\d+[mh]\]/g, "[20s]")
    .replaceAll(/\boffset \d+[mh]/g, "offset 20s");
}

export async function openPrometheus(
  program: string,
  of: string | readonly string[],
  token: string,
): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), "tain-prometheus-"));
  await writeFile(join(folder, "operator-token"), token);
  await writeFile(join(folder, "alerts.yaml"), shortened(await readFile(join(SHIPPED, "alerts.yaml"), "utf8")));
  const shipped = await readFile(join(SHIPPED, "prometheus.yaml"), "utf8");
  const hosts = [of].flat().map((one) => new URL(one).host);
  const configuration = shipped.replace(/targets: .*$/m, `targets: ${JSON.stringify(hosts)}`);
  const global = "global: { scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s }\n";
  await writeFile(join(folder, "prometheus.yaml"), global + configuration);
  const port = await freePort(undefined);
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    program,
    [
      `--config.file=${join(folder, "prometheus.yaml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-2_000);
  });
  const ended = once(child, "exit");
  const ask = async <Data>(path: string): Promise<Data> => {
    const answer = await fetch(`${url}/api/v1/${path}`);
    if (!answer.ok) throw new Error(`Prometheus: ${answer.status} ${await answer.text()}`);
    return ((await answer.json()) as { data: Data }).data;
  };
  await until("Prometheus is ready", async () => {
    if (child.exitCode !== null) throw new Error(`Prometheus has ended: ${said}`);
    return await fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  });
  return {
    query: async (expression) =>
      (await ask<{ result: Series[] }>(`query?query=${encodeURIComponent(expression)}`)).result,
    range: async (expression, from, to, step) => {
      const [start, end] = [from, to].map((at) => String(at.getTime() / 1_000));
      const asked = new URLSearchParams({ query: expression, start: start ?? "", end: end ?? "", step: String(step) });
      return (await ask<{ result: Course[] }>(`query_range?${asked}`)).result;
    },
    firing: async () => {
      const { alerts } = await ask<{ alerts: { state: string; labels: { alertname: string } }[] }>("alerts");
      return new Set(alerts.flatMap(({ state, labels }) => (state === "firing" ? labels.alertname : [])));
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
