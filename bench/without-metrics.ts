/** Loaded before a web process: nothing of what it does is counted, and it watches nothing of itself. What is asked of it goes the same way. */
import { Counter, Histogram } from "prom-client";
import { ApiMeter, type Tally } from "../src/api/metering.ts";
import { Metrics } from "../src/operations/metrics.ts";

const uncounted: Tally = {
  labels: { route: "", method: "", status: 0, caller: "", source: "mirror", agent: "" },
  count: 0,
  told: 0,
};

Counter.prototype.inc = () => {};
Histogram.prototype.observe = () => {};
Metrics.prototype.observeProcess = () => {};
ApiMeter.prototype.begin = (route, method) => ({
  ...{ route, method, agent: "", caller: "unknown", source: "mirror", startedAt: 0 },
});
ApiMeter.prototype.end = () => {};
ApiMeter.prototype.tally = () => uncounted;
