// Preloaded into the app by the launcher: ends the app when the launcher is gone, however it went. The launcher holds
// the other end of a pipe that carries nothing and closes when the launcher dies, `kill -9` included.
import { Socket } from "node:net";
import { isMainThread } from "node:worker_threads";

const STOP_TIMEOUT_MS = 30_000;
const DESCRIPTOR = Number(process.env.TAIN_PARENT_FD);

if (isMainThread && DESCRIPTOR > 2) {
  // What the app starts inherits its environment and preloads, but not this pipe.
  delete process.env.TAIN_PARENT_FD;
  const pipe = new Socket({ fd: DESCRIPTOR, readable: true, writable: false });
  pipe.on("error", () => {}); // Reported as its close as well.
  pipe.on("close", () => {
    process.kill(process.pid, "SIGTERM");
    setTimeout(() => process.kill(-process.pid, "SIGKILL"), STOP_TIMEOUT_MS).unref();
  });
  pipe.resume().unref();
}
