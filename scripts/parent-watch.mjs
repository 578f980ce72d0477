// Preloaded into the app by the launcher: ends the app when the launcher has died for any reason. The launcher holds
// the other end of a pipe. The system closes the pipe when the launcher dies, even by `kill -9`.
import { Socket } from "node:net";
import { isMainThread } from "node:worker_threads";

const STOP_TIMEOUT_MS = 30_000;
const DESCRIPTOR = Number(process.env.TAIN_PARENT_FD);

if (isMainThread && DESCRIPTOR > 2) {
  // The app's child processes inherit its environment and preloads, but not this pipe.
  delete process.env.TAIN_PARENT_FD;
  const pipe = new Socket({ fd: DESCRIPTOR, readable: true, writable: false });
  pipe.on("error", () => {}); // After an error the pipe also emits `close`.
  pipe.on("close", () => {
    process.kill(process.pid, "SIGTERM");
    setTimeout(() => process.kill(-process.pid, "SIGKILL"), STOP_TIMEOUT_MS).unref();
  });
  pipe.resume().unref();
}
