import type { WorkerContext } from "../../workers/worker.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";

export interface WorkerWorld extends TestMirror {
  ctx: WorkerContext;
}

/** Stores, and a context for opening workers. There is no upstream and no web server. */
export async function openWorkerWorld(env: NodeJS.ProcessEnv = {}): Promise<WorkerWorld> {
  const mirror = await openMirror({ web: false, env });
  return { ...mirror, ctx: mirror.openWorkerContext() };
}
