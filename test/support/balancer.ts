import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";

/** A balancer in front of the web processes: one address, behind which they may be replaced. */
export interface Balancer extends AsyncDisposable {
  readonly url: string;
  /** The targets, which get requests in turn. A target that is taken away gets no new ones. */
  send(...targets: string[]): void;
  /** Settles once no request is under way at the target. */
  drained(target: string): Promise<void>;
}

/** @param from the address of this machine from which it connects to its targets */
export async function openBalancer({ from: localAddress }: { from?: string } = {}): Promise<Balancer> {
  let targets: readonly string[] = [];
  let asked = 0;
  const underWay = new Map<string, number>();
  const waiting = new Set<() => void>();
  const agent = new Agent({ keepAlive: false, ...(localAddress === undefined ? {} : { localAddress }) });
  const pass = (from: IncomingMessage, to: ServerResponse) => {
    const target = targets[asked++ % targets.length];
    if (target === undefined) return void to.writeHead(503).end();
    underWay.set(target, (underWay.get(target) ?? 0) + 1);
    to.once("close", () => {
      underWay.set(target, (underWay.get(target) ?? 1) - 1);
      for (const wake of waiting) wake();
    });
    const { hostname, port } = new URL(target);
    const passed = request({ agent, hostname, port, path: from.url, method: from.method, headers: from.headers });
    passed.once("response", (answer) => {
      to.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(to);
    });
    passed.once("error", (error) => {
      if (!to.headersSent) to.writeHead(502);
      to.end(error.message);
    });
    from.pipe(passed);
  };
  // The time is long. Otherwise a client may come back just when its idle connection is closed, and see a failure.
  const server = createServer({ keepAliveTimeout: 600_000 }, pass).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The balancer has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    send: (...to) => {
      targets = to;
    },
    drained: (target) =>
      new Promise((resolve) => {
        const look = () => {
          if ((underWay.get(target) ?? 0) > 0) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      agent.destroy();
    },
  };
}
