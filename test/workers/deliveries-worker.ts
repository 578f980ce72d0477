// A process that applies deliveries, and asks upstream for nothing.

import { parseConfig } from "../../src/config.ts";
import { openContext } from "../../src/context.ts";
import { openWorkerRedis } from "../../src/operations/redis.ts";
import { DeliveryBatches, openBurstsWorker, openDeliveriesWorker } from "../../workers/deliveries.ts";

const opened = await openContext(parseConfig(process.env), new AsyncDisposableStack(), { name: "deliveries" });
const ctx = { ...opened, jobs: openWorkerRedis(opened, "deliveries"), stopping: new AbortController().signal };
const batches = new DeliveryBatches(ctx);
openDeliveriesWorker(ctx, batches);
openBurstsWorker(ctx, batches);
