import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** A connection to a store. It can break as it would break with a network or with a stopped server. */
export interface BreakableLink extends AsyncDisposable {
  /** The store's address, through the link. */
  url: string;
  /** Breaks all connections, and refuses new ones. */
  cut(): Promise<void>;
  /** Keeps connections, and takes new ones, but lets nothing through. */
  freeze(): void;
  /** Makes the link work again. */
  mend(): Promise<void>;
}

export async function openLink(storeUrl: string): Promise<BreakableLink> {
  const store = new URL(storeUrl);
  const sockets = new Set<Socket>();
  let isFrozen = false;
  let server: Server | null = null;
  let port = 0;

  const listen = async () => {
    server = createServer((near) => {
      const far = connect(Number(store.port), store.hostname);
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from);
        if (isFrozen) from.pause();
        from.on("data", (chunk) => to.write(chunk));
        from.on("error", () => {}); // Connections break here on purpose.
        from.on("close", () => {
          sockets.delete(from);
          to.destroy();
        });
      }
      if (isFrozen) process.nextTick(() => near.pause());
    });
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    port = (server.address() as { port: number }).port;
  };
  const cut = async () => {
    const closing = server;
    server = null;
    const closed = closing && once(closing, "close");
    closing?.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };

  await listen();
  const url = new URL(storeUrl);
  url.host = `127.0.0.1:${port}`;
  return {
    url: url.href,
    cut,
    freeze: () => {
      isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
    mend: async () => {
      isFrozen = false;
      for (const socket of sockets) socket.resume();
      if (!server) await listen();
    },
    [Symbol.asyncDispose]: cut,
  };
}
