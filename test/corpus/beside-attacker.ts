/**
 * A process of one attacker, bounded in time. It reads one JSON document from standard input: where and what it sends.
 * It says when the attack begins, and at the end one line tells how often.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { constants, setPriority } from "node:os";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";

/** What is sent: so many requests a second, or so many bodies that are never finished. */
export interface Attack {
  url: string;
  seconds: number;
  requests: { method: string; path: string; headers: Record<string, string>; body?: string }[];
  perSecond: number;
  /** Connections that send the head of a body, a part of it, and then nothing more; null: none. */
  halfSent: { connections: number; path: string; headers: Record<string, string>; bodyBytes: number } | null;
}

// Whoever attacks has a machine of their own. On this one, what it takes to make an attack is not to be what slows
// the others: to write 800 MB takes this process several seconds of a core.
setPriority(constants.priority.PRIORITY_LOW);

const attack: Attack = JSON.parse(await text(process.stdin));
const requests = attack.requests.map(({ body, ...head }) => ({
  ...head,
  body: body === undefined ? null : Buffer.from(body),
}));
const statuses: Record<string, number> = {};
const count = (status: string) => {
  statuses[status] = (statuses[status] ?? 0) + 1;
};

async function one(at: number, end: number): Promise<void> {
  const request = requests[at % requests.length];
  if (!request) return;
  const left = Math.max(1, end - performance.now());
  try {
    const { path, ...what } = request;
    const answer = await fetch(attack.url + path, { ...what, signal: AbortSignal.timeout(Math.ceil(left)) });
    await answer.arrayBuffer();
    count(String(answer.status));
  } catch (error) {
    count(error instanceof Error ? error.name : "an error");
  }
}

async function open(): Promise<Socket> {
  const { hostname, port } = new URL(attack.url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => count("cut off"));
  socket.once("data", (data) => count(String(data).slice(9, 12)));
  await once(socket, "connect");
  return socket;
}

const { connections = 0, path = "/", headers = {}, bodyBytes = 0 } = attack.halfSent ?? {};
const lines = Object.entries({ Host: "x", "Content-Length": bodyBytes + 1, ...headers });
const head = `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
const filling = Buffer.alloc(bodyBytes, " ");
const sockets = await Promise.all(Array.from({ length: connections }, open));

console.log(JSON.stringify({ level: 30, msg: "The attack begins" }));
const end = performance.now() + attack.seconds * 1_000;
for (const socket of sockets) {
  socket.write(head);
  socket.write(filling);
  await delay(0);
}
const sent: Promise<void>[] = [];
for (let at = 0; performance.now() < end; at++) {
  if (attack.perSecond === 0) await delay(Math.max(1, end - performance.now()));
  else {
    sent.push(one(at, end));
    await delay(1_000 / attack.perSecond);
  }
}
await Promise.all(sent);
const sentBytes = sockets.reduce((sum, { bytesWritten, writableLength }) => sum + bytesWritten - writableLength, 0);
for (const socket of sockets) socket.destroy();
console.log(
  JSON.stringify({
    ...{ level: 30, msg: "The attack has ended", requests: sent.length + sockets.length },
    ...{ sentBytes, statuses },
  }),
);
