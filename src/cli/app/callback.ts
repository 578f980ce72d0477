import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isSameSecret } from "../../config/same-secret.ts";
import { manifestPage, page } from "./manifest.ts";

/** A server on this machine with two pages: one with the button, and one that upstream sends the browser back to. */
export class CallbackServer implements AsyncDisposable {
  readonly #server: Server;
  /** A secret in the first page. Only the browser that was shown this page can send it back. */
  readonly #state = randomBytes(24).toString("hex");
  readonly #code = Promise.withResolvers<string>();
  #form: { action: string; manifest: object } | null = null;

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response));
    this.#code.promise.catch(() => {}); // The error is reported where the promise is awaited.
  }

  static async open(port: number): Promise<CallbackServer> {
    const opened = new CallbackServer();
    await once(opened.#server.listen(port, "127.0.0.1"), "listening");
    return opened;
  }

  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`;
  }

  get redirectUrl(): string {
    return `${this.url}/created`;
  }

  /** Shows the page. Answers the code with which upstream's page sends the browser back. */
  async code(pages: string, owner: string | null, manifest: object, signal: AbortSignal): Promise<string> {
    const path =
      owner === null ? "/settings/apps/new" : `/organizations/${encodeURIComponent(owner)}/settings/apps/new`;
    this.#form = { action: `${pages}${path}?state=${this.#state}`, manifest };
    const stop = () => this.#code.reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    return await this.#code.promise.finally(() => signal.removeEventListener("abort", stop));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { status, body, code } = this.#shown(request);
    const headers = {
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-store",
      "Referrer-Policy": "no-referrer",
      "Content-Security-Policy":
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
      Connection: "close",
    };
    // The command goes on, and may end the process, only when the whole page was sent.
    response.writeHead(status, headers).end(body, () => {
      if (code !== undefined) this.#code.resolve(code);
    });
  }

  #shown(request: IncomingMessage): { status: number; body: string; code?: string } {
    const url = new URL(request.url ?? "/", this.url);
    // Another page in the browser may reach this server by any name that leads to this machine, so only our own host
    // name is accepted.
    if (request.headers.host !== new URL(this.url).host || request.method !== "GET")
      return { status: 400, body: page("Nothing is answered to that", "") };
    if (url.pathname === "/" && this.#form) return { status: 200, body: manifestPage(this.#form) };
    const code = url.searchParams.get("code");
    if (url.pathname !== "/created" || code === null) return { status: 404, body: page("There is no such page", "") };
    if (!isSameSecret(url.searchParams.get("state") ?? "", this.#state)) {
      const body = page("This answer is not to our question", "<p>Begin again at the first page.</p>");
      return { status: 403, body };
    }
    const body = page("The App is made", "<p>You can close this page: the rest stands in the terminal.</p>");
    return { status: 200, body, code };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}
