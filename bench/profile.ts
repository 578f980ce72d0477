import { mkdir, writeFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import { join } from "node:path";

/** What a child process is started with so that it leaves the profiles that were asked for when it ends. */
export function profileFlags(): string[] {
  const { BENCH_CPU_PROF: cpu, BENCH_HEAP_PROF: heap } = process.env;
  return [
    ...(cpu ? ["--cpu-prof", `--cpu-prof-dir=${cpu}`] : []),
    ...(heap ? ["--heap-prof", `--heap-prof-dir=${heap}`] : []),
  ];
}

/** Begins this process's own profiles where any were asked for; the answer ends and writes them. */
export async function profileSelf(name: string): Promise<() => Promise<void>> {
  const { BENCH_CPU_PROF: cpu, BENCH_HEAP_PROF: heap } = process.env;
  if (!cpu && !heap) return async () => {};
  const session = new Session();
  session.connect();
  if (cpu) {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
  }
  if (heap) await session.post("HeapProfiler.startSampling");
  return async () => {
    if (cpu) await write(cpu, `${name}.cpuprofile`, (await session.post("Profiler.stop")).profile);
    if (heap) await write(heap, `${name}.heapprofile`, (await session.post("HeapProfiler.stopSampling")).profile);
    session.disconnect();
  };
}

async function write(folder: string, file: string, profile: unknown): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, file), JSON.stringify(profile));
}
