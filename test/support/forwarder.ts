import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** An address that leads to one server and then to another, as a name or a proxy in front of a primary does. */
export interface Forwarder extends AsyncDisposable {
  /** The same address, through the forwarder. */
  through(url: string): string;
  /** Where new connections lead from now on. Open ones end. Null: nowhere. */
  lead(url: string | null): void;
  /** From now on nothing arrives and nobody is told, as where packets are lost. `lead` ends this. */
  cut(): void;
}

export async function openForwarder(url: string): Promise<Forwarder> {
  let target: URL | null = new URL(url);
  let isCut = false;
  const open = new Set<Socket>();
  const server = createServer((from) => {
    if (isCut) {
      open.add(from.on("error", () => {}).on("close", () => open.delete(from)));
      return;
    }
    if (target === null) return void from.destroy();
    const to = connect(Number(target.port), target.hostname);
    for (const [socket, other] of [
      [from, to],
      [to, from],
    ] as const) {
      open.add(socket);
      // Either end may break. The other one hears of it, because its connection ends too.
      socket.on("error", () => {});
      socket.on("close", () => {
        open.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The forwarder has no port");
  const end = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    through(one) {
      const led = new URL(one);
      led.host = `127.0.0.1:${address.port}`;
      return led.href;
    },
    cut() {
      isCut = true;
      for (const socket of open) socket.unpipe().pause();
    },
    lead(to) {
      isCut = false;
      target = to === null ? null : new URL(to);
      end();
    },
    async [Symbol.asyncDispose]() {
      end();
      server.close();
    },
  };
}
