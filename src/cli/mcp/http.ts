import {
  createMcpHandler,
  localhostAllowedOrigins,
  type McpRequestContext,
  validateOriginHeader,
} from "@modelcontextprotocol/server";
import pino from "pino";
import { BodyBudget } from "../../http/body.ts";
import { HttpError } from "../../http/errors.ts";
import type { Exchange } from "../../http/exchange.ts";
import { headerText, json, type Outlet, type Reply } from "../../http/reply.ts";
import { Router } from "../../http/router.ts";
import { HttpServer } from "../../http/server.ts";
import { openServer, openTurns } from "./server.ts";
import type { Workplace } from "./tools/tool.ts";

/** A text of 65,536 characters, each escaped, and what is around it. */
const MOST_BODY_BYTES = 512 * 1024;
const ALL_BODIES = { maxBytes: 16 * 1024 * 1024, patienceMs: 30_000 };
const UNREAD_MS = 30_000;

interface HttpParts extends Pick<Workplace, "complain"> {
  url: string;
  canWrite: boolean;
}

/** Serves MCP at `POST /mcp`: each caller is answered as the owner of the token that they show. */
export class McpHttp {
  readonly #parts: HttpParts;
  readonly #handler: ReturnType<typeof createMcpHandler>;
  readonly #server: HttpServer;

  constructor(parts: HttpParts) {
    this.#parts = parts;
    const turns = openTurns();
    const serve = ({ authInfo, requestInfo }: McpRequestContext) => {
      const mirror = {
        url: parts.url,
        token: authInfo?.token ?? "",
        forwardedFor: requestInfo?.headers.get("x-forwarded-for") ?? null,
      };
      return openServer({ mirror, turns, complain: parts.complain }, parts);
    };
    // Nothing of ours changes while a caller listens, so there is nothing to listen to.
    this.#handler = createMcpHandler(serve, { maxSubscriptions: 0, maxRequestBodySize: MOST_BODY_BYTES });
    this.#server = new HttpServer({
      routes: new Router([{ method: "POST", path: "/mcp", handle: (exchange) => this.#answer(exchange) }]),
      otherwise: ({ path }) =>
        path === "/mcp"
          ? refused(405, "Send JSON-RPC by POST", { Allow: "POST" })
          : refused(404, "MCP is served at /mcp"),
      failure: (error) => this.#failure(error),
      trustedProxies: [],
      bodies: new BodyBudget(ALL_BODIES),
      log: pino({ base: null, level: "error" }, { write: (line: string) => parts.complain(line.trim()) }),
      clock: { now: () => new Date() },
    });
  }

  async listen(at: { host: string; port: number }): Promise<string> {
    return await this.#server.listen(at);
  }

  async close(): Promise<void> {
    await this.#handler.close();
    await this.#server.close();
  }

  async #answer(exchange: Exchange): Promise<Reply> {
    const { headers, method, peer, gone } = exchange;
    // A page that has taken our address for its own name still says where it came from.
    if (!validateOriginHeader(headers.origin, localhostAllowedOrigins()).ok)
      return refused(403, "Pages of other origins may not ask");
    const [, token] = /^bearer +([\x21-\x7e]+) *$/i.exec(headers.authorization ?? "") ?? [];
    if (token === undefined)
      return refused(401, "Show a token that the mirror takes: Authorization: Bearer …", {
        "WWW-Authenticate": "Bearer",
      });
    using body = await exchange.body(MOST_BODY_BYTES);
    const sent = new Headers({
      "x-forwarded-for": [headerText(headers["x-forwarded-for"]), peer].filter(Boolean).join(", "),
    });
    for (const name of ["accept", "content-type", "mcp-method", "mcp-name", "mcp-protocol-version"])
      if (headers[name] !== undefined) sent.set(name, headerText(headers[name]));
    const request = new Request("http://mcp/mcp", { method, headers: sent, body: body.bytes.toString(), signal: gone });
    return replyOf(await this.#handler.fetch(request, { authInfo: { token, clientId: "", scopes: [] } }));
  }

  #failure(error: unknown): Reply {
    if (error instanceof HttpError) return refused(error.status, error.message, error.headers);
    this.#parts.complain(`A request failed: ${error instanceof Error ? error.message : error}`);
    return refused(500, "The server has failed, and its stderr says why");
  }
}

/** JSON-RPC's error, for requests that were not looked into. */
function refused(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return json(status, { jsonrpc: "2.0", id: null, error: { code: -32_000, message } }, headers);
}

function replyOf({ status, headers, body }: Response): Reply {
  const shown = Object.fromEntries(headers);
  if (body === null) return { status, headers: shown, body: null };
  return { status, headers: shown, body: null, stream: (outlet) => passOn(body, outlet) };
}

async function passOn(body: ReadableStream<Uint8Array>, outlet: Outlet): Promise<void> {
  for await (const piece of body)
    if (!outlet.write(piece) && (await outlet.drained(UNREAD_MS)) !== "drained") return outlet.drop();
}
