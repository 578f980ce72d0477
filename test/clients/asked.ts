import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
const SUBJECT = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];

/** The numbers of a client's requests, by where they were answered. */
interface Asked {
  requests: number;
  mirror: number;
  /** Upstream was not asked, or has only confirmed what was kept. */
  cache: number;
  forwarded: number;
  /** What was answered with 400 and above. */
  refused: string[];
}

/** Stands before the mirror's web server as a proxy of an installation does, and counts what clients ask. */
export interface Front extends AsyncDisposable {
  url: string;
  /**
   * The requests since its last call. `routes` has the side that answered, the method, the path and the status, and a
   * document's operation if it has a name.
   */
  take(): { asked: Asked; routes: string[] };
  /** Is reached by this Unix socket, too. */
  listen(socket: string): Promise<void>;
  /** Is reached by TLS, too, with a certificate of its own: there are clients that take nothing else. */
  secure(folder: string): Promise<{ url: string; certificate: string }>;
}

export async function openFront(mirrorUrl: string): Promise<Front> {
  let asked = nothing();
  let routes: string[] = [];
  const relay = async (from: IncomingMessage, to: ServerResponse, protocol: string) => {
    const { method, url: path = "/", headers } = from;
    // With its own name as the host, so that addresses in answers are the front's.
    const given = { ...headers, "x-forwarded-proto": protocol };
    const onward = request(new URL(path, mirrorUrl), { method, headers: given });
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      onward.once("response", resolve);
      onward.once("error", reject);
    });
    const document: Buffer[] = [];
    if (path.endsWith("/graphql")) from.on("data", (piece: Buffer) => document.push(piece));
    await pipeline(from, onward);
    const answer = await answered;
    const { statusCode: status = 0, rawHeaders, headers: shown } = answer;
    if (path !== "/webhooks") {
      const side = sideOf(shown);
      const route = `${method} ${path.replace(/^\/api(\/v3)?(?=\/)/, "")}`;
      asked.requests += 1;
      asked[side] += 1;
      if (status >= 400) asked.refused.push(`${route} ${status}`);
      const [, operation] = /(?:query|mutation) (\w+)/.exec(Buffer.concat(document).toString()) ?? [];
      routes.push(`${side} ${route} ${status}${operation === undefined ? "" : ` ${operation}`}`);
    }
    to.writeHead(status, rawHeaders);
    await pipeline(answer, to);
  };
  const servers: Server[] = [];
  const open = async (server: Server, at: string | number, protocol = "http"): Promise<string> => {
    server.on("request", (from: IncomingMessage, to: ServerResponse) => {
      relay(from, to, protocol).catch((error: Error) => to.destroy(error));
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(at, resolve));
    return `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  return {
    url: await open(createServer(), 0),
    take() {
      const taken = { asked, routes };
      [asked, routes] = [nothing(), []];
      return taken;
    },
    listen: async (socket) => void (await open(createServer(), socket)),
    async secure(folder) {
      const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
      const kind = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"];
      await run("openssl", [...kind, "-keyout", key, "-out", certificate, ...SUBJECT]);
      const files = { key: await readFile(key), cert: await readFile(certificate) };
      return { url: await open(createSecureServer(files), 0, "https"), certificate };
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

function nothing(): Asked {
  return { requests: 0, mirror: 0, cache: 0, forwarded: 0, refused: [] };
}

function sideOf(headers: IncomingMessage["headers"]): "mirror" | "cache" | "forwarded" {
  if (headers["x-tain-passed-through"] === undefined) return "mirror";
  return headers["x-cache"] === "hit" || headers["x-cache"] === "revalidated" ? "cache" : "forwarded";
}
