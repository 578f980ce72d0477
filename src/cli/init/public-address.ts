import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { SETTINGS } from "../../config/settings.ts";
import { codeOf, rootReasonOf } from "../../failure.ts";
import { type Finding, okFinding, warning } from "../doctor/finding.ts";

const ADDRESS_PATIENCE_MS = 5_000;

/**
 * Whether the public address leads to the port of this machine at which Tain will listen. A server listens there for
 * the test, and is called by the public address.
 */
export async function publicAddressFinding(publicUrl: string, env: NodeJS.ProcessEnv): Promise<Finding> {
  const port = SETTINGS.port.read(env.PORT?.trim() || SETTINGS.port.default);
  const nonce = randomBytes(16).toString("hex");
  const todo = `See that it leads to port ${port} of this machine, through the proxy and its certificate`;
  const server = createServer((_, response) => {
    response.writeHead(200, { "Content-Type": "text/plain", Connection: "close" }).end(nonce);
  });
  try {
    await startListening(server, env.HOST?.trim() || SETTINGS.host.default, port);
  } catch (error) {
    if (codeOf(error) !== "EADDRINUSE") throw error;
    return warning("public-url", `Port ${port} is in use, so ${publicUrl} was not tried`, `${todo}, once Tain runs`);
  }
  try {
    const answer = await fetch(`${publicUrl}/-/live`, {
      signal: AbortSignal.timeout(ADDRESS_PATIENCE_MS),
      redirect: "manual",
    });
    if ((await answer.text()) === nonce) return okFinding("processes", `${publicUrl} leads to this machine`);
    return warning("public-url", `Something else answers at ${publicUrl}, with ${answer.status}`, todo);
  } catch (error) {
    return warning("public-url", `${publicUrl} cannot be reached from here: ${rootReasonOf(error)}`, todo);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function startListening(server: Server, host: string, port: number): Promise<void> {
  await once(server.listen(port, host), "listening");
}
