// A process that stands for several: it opens as many workers and schedulers as it is told, each with its own
// connections.
import { setMaxListeners } from "node:events";
import { parseConfig } from "../../src/config.ts";
import { openContext, openLocal } from "../../src/context.ts";
import { openWorkerRedis } from "../../src/operations/redis.ts";
import { openWorkers } from "../../workers/main.ts";
import { schedule } from "../../workers/scheduler.ts";

const config = parseConfig(process.env);
const resources = new AsyncDisposableStack();
const { signal: stopping } = new AbortController();
setMaxListeners(0, stopping);
for (let worker = 0; worker < Number(process.env.SMALL_WORKERS); worker++) {
  const ctx = await openContext(config, resources, { name: "worker" });
  openWorkers({ ...ctx, jobs: openWorkerRedis(ctx, "worker"), stopping }, resources);
}
for (let scheduler = 0; scheduler < Number(process.env.SMALL_SCHEDULERS); scheduler++)
  void schedule(await openLocal(config, resources, { name: "scheduler" }), stopping);
console.info(JSON.stringify({ level: 30, msg: "All are there" }));
