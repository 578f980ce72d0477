import { readFile } from "node:fs/promises";

/** What of a `.cpuprofile` is read here. V8's CPU profile: `parent` is not given, but `children` are. */
export interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string }; children?: number[] }[];
  samples: number[];
  /** Microseconds before each sample. */
  timeDeltas: number[];
}

/** The first part of a run compiles and warms up. */
const SKIPPED = 0.5;

/**
 * What took the CPU time of a process, by the microseconds of its own code: our folders, packages, parts of Node.js,
 * collecting garbage. Native code counts for its caller. Idle time is left out, and so is the first half. Pure.
 */
export function partsOf({ nodes, samples, timeDeltas }: CpuProfile): Map<string, number> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const partOf = (id: number | undefined): string => {
    const frame = id === undefined ? undefined : byId.get(id)?.callFrame;
    if (!frame) return "other native code";
    const { functionName, url } = frame;
    if (functionName === "(garbage collector)") return "collecting garbage";
    if (functionName === "(program)" || functionName === "(root)") return "other native code";
    return url === "" ? partOf(parents.get(id as number)) : partOfFile(url);
  };
  const from = timeDeltas.reduce((sum, delta) => sum + delta, 0) * SKIPPED;
  const parts = new Map<string, number>();
  let at = 0;
  for (const [index, id] of samples.entries()) {
    const delta = timeDeltas[index] ?? 0;
    at += delta;
    if (at < from || byId.get(id)?.callFrame.functionName === "(idle)") continue;
    const part = partOf(id);
    parts.set(part, (parts.get(part) ?? 0) + delta);
  }
  return parts;
}

function partOfFile(url: string): string {
  const [, owner] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? [];
  if (owner !== undefined) return owner;
  const [, ours] = /\/(src\/[^/.]+|bench|db|workers)\//.exec(url) ?? [];
  if (ours !== undefined) return ours;
  const name = url.replace(/^node:(internal\/)?/, "");
  if (/^_?http/.test(name)) return "node:http";
  if (/^(net|streams?\b|_stream|stream_base|tls)/.test(name)) return "sockets and streams of Node.js";
  return /^(crypto|zlib|buffer)/.exec(name)?.[0].replace(/^/, "node:") ?? "the rest of Node.js";
}

/** The file that a process was started with, from this folder on; null: none of ours. Pure. */
export function programOf({ nodes }: CpuProfile): string | null {
  const urls = nodes.map(({ callFrame }) => callFrame.url);
  for (const form of [/\/(bench\/reference\/[^/]+)$/, /\/(bench\/(?:web-server|apply-worker|simulator-server)\.ts)$/]) {
    const found = urls.map((url) => form.exec(url)?.[1]).find((one) => one !== undefined);
    if (found) return found;
  }
  return urls.some((url) => url.endsWith("/bench/main.ts")) ? "bench/main.ts" : null;
}

if (import.meta.main) {
  const files = process.argv.slice(2);
  if (files.length === 0) {
    process.stderr.write(
      "Usage: node bench/profile-parts.ts FILE.cpuprofile…   what npm run bench -- --cpu-prof leaves\n",
    );
    process.exit(2);
  }
  for (const file of files) {
    const profile = JSON.parse(await readFile(file, "utf8")) as CpuProfile;
    const parts = [...partsOf(profile)].sort(([, a], [, b]) => b - a);
    const whole = parts.reduce((sum, [, micros]) => sum + micros, 0);
    const shown = parts
      .map(([part, micros]) => [part, Math.round((micros / whole) * 100)] as const)
      .filter(([, percent]) => percent >= 2);
    const text = shown.map(([part, percent]) => `${part} ${percent} %`).join(", ");
    console.log(`${programOf(profile) ?? file}: ${(whole / 1e6).toFixed(1)} s of CPU: ${text}`);
  }
}
