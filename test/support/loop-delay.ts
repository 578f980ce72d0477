/**
 * Is loaded into a web process before its program (`--import`), and tells on a port of its own how long the event loop was
 * held since it was last asked. The product has no such thing.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  let cpu = process.threadCpuUsage();
  const server = createServer((_request, response) => {
    const spent = process.threadCpuUsage(cpu);
    response.end(JSON.stringify({ maxMs: delay.max / 1e6, cpuMs: (spent.user + spent.system) / 1e3 }));
    delay.reset();
    cpu = process.threadCpuUsage();
  });
  server.listen(0, "127.0.0.1", () => {
    // No type can say that a server that listens to a port has one.
    const { port } = server.address() as AddressInfo;
    console.log(JSON.stringify({ level: 30, msg: "Loop delay", port }));
  });
  server.unref();
}
