import { once } from "node:events";
import { createServer } from "node:net";

/** A port of 127.0.0.1 that nobody listens on: the wished one if it is free, otherwise any. */
export async function freePort(wished) {
  for (const port of wished ? [wished, 0] : [0]) {
    const probe = createServer();
    try {
      await once(probe.listen(port, "127.0.0.1"), "listening");
      return probe.address().port;
    } catch (error) {
      if (error.code !== "EADDRINUSE" || port === 0) throw error;
    } finally {
      probe.close();
    }
  }
}
