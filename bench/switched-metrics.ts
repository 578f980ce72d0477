/**
 * Loaded before a web process: by a message it stops counting what it does and watching itself, and by another it goes
 * on. What is asked of it goes the same way. One process with a switch, since two of the same program differ by more
 * than what is measured.
 */
import { createRequire } from "node:module";
import { Counter, Histogram } from "prom-client";
import { ApiMeter, type RequestFigures } from "../src/api/call/metering.ts";

let counts = true;

function switched<Does extends (...given: never[]) => void>(does: Does): Does {
  const doesOrNot = function (this: unknown, ...given: never[]): void {
    if (counts) does.apply(this, given);
  };
  // It takes what the other takes; of one with overloads no type can say so.
  return doesOrNot as Does;
}

Counter.prototype.inc = switched(Counter.prototype.inc);
Histogram.prototype.observe = switched(Histogram.prototype.observe);
const { begin, end, counter } = ApiMeter.prototype;
ApiMeter.prototype.begin = function (this: ApiMeter, ...given): RequestFigures {
  if (counts) return begin.apply(this, given);
  const [route, method] = given;
  return { route, method, agent: "", caller: "unknown", source: "mirror", payer: "", price: 0, startedAt: 0 };
};
ApiMeter.prototype.end = switched(end);
ApiMeter.prototype.counter = function (this: ApiMeter, ...given) {
  return switched(counter.apply(this, given));
};

/** What watches the process by itself; prom-client keeps neither where it could be reached. */
const watching: { stop: () => void; resume: () => void }[] = [];
// What prom-client requires can be replaced there, other than what is imported.
const hooks = createRequire(import.meta.url)("node:perf_hooks") as typeof import("node:perf_hooks");
const { PerformanceObserver, monitorEventLoopDelay } = hooks;
hooks.PerformanceObserver = class extends PerformanceObserver {
  override observe(...given: Parameters<PerformanceObserver["observe"]>): void {
    super.observe(...given);
    watching.push({ stop: () => this.disconnect(), resume: () => super.observe(...given) });
  }
};
hooks.monitorEventLoopDelay = (...given) => {
  const histogram = monitorEventLoopDelay(...given);
  watching.push({ stop: () => histogram.disable(), resume: () => histogram.enable() });
  return histogram;
};

process.on("message", (message) => {
  if (message !== "count" && message !== "rest") return;
  const isAsked = message === "count";
  if (counts !== isAsked) for (const { stop, resume } of watching) (isAsked ? resume : stop)();
  counts = isAsked;
  process.send?.({ counts, watching: watching.length });
});
