// A process whose catch-up never ends. It prints a line once it holds the job.

import { parseConfig } from "../../src/config.ts";
import { openLocal } from "../../src/context.ts";
import { openWorkerRedis } from "../../src/operations/redis.ts";
import { openWorker, type WorkerContext } from "../../workers/worker.ts";

const stores = await openLocal(parseConfig(process.env), new AsyncDisposableStack(), { name: "victim" });
const ctx = { ...stores, jobs: openWorkerRedis(stores, "victim"), stopping: new AbortController().signal };
openWorker(ctx as unknown as WorkerContext, "catch-up", { concurrency: 1 }, () => {
  process.stdout.write("working\n");
  return new Promise(() => {});
});
