import { once } from "node:events";
import { createServer } from "node:net";
import { codeOf } from "./failure.mjs";

/**
 * A free port of 127.0.0.1: the preferred one if it is free, otherwise any.
 * @param {number | undefined} preferred
 */
export async function freePort(preferred) {
  if (preferred !== undefined && (await isFree(preferred))) return preferred;
  return await listenOnce(0);
}

/** @param {number} port */
async function isFree(port) {
  try {
    await listenOnce(port);
    return true;
  } catch (error) {
    if (codeOf(error) === "EADDRINUSE") return false;
    throw error;
  }
}

/**
 * Listens on the port for a moment. For port 0 the system chooses one.
 * @param {number} port
 * @returns {Promise<number>} the port
 */
async function listenOnce(port) {
  const probe = createServer();
  try {
    await once(probe.listen(port, "127.0.0.1"), "listening");
    const address = probe.address();
    if (address === null || typeof address === "string") throw new Error("A TCP server has no port");
    return address.port;
  } finally {
    probe.close();
  }
}
