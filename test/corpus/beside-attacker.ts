/**
 * A process of one attacker, bounded in time. It reads one JSON document from standard input: where and what it sends.
 * At the end one line tells how often.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";

/** What is sent: so many requests a second, or so many bodies that are never finished. */
export interface Attack {
  url: string;
  seconds: number;
  requests: { method: string; path: string; headers: Record<string, string>; body?: string }[];
  perSecond: number;
  /** Connections that send the head of a body, a part of it, and then nothing more. */
  halfSent: number;
  bodyBytes: number;
}

const attack: Attack = JSON.parse(await text(process.stdin));
const end = performance.now() + attack.seconds * 1_000;
const statuses: Record<string, number> = {};
const count = (status: string) => {
  statuses[status] = (statuses[status] ?? 0) + 1;
};

async function one(at: number): Promise<void> {
  const request = attack.requests[at % attack.requests.length];
  if (!request) return;
  const left = Math.max(1, end - performance.now());
  try {
    const { method, headers, body = null } = request;
    const answer = await fetch(attack.url + request.path, {
      method,
      headers,
      body,
      signal: AbortSignal.timeout(Math.ceil(left)),
    });
    await answer.arrayBuffer();
    count(String(answer.status));
  } catch (error) {
    count(error instanceof Error ? error.name : "an error");
  }
}

async function half(): Promise<Socket> {
  const { hostname, port } = new URL(attack.url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => count("cut off"));
  socket.once("data", (data) => count(String(data).slice(9, 12)));
  await once(socket, "connect");
  const head = "POST /graphql HTTP/1.1\r\nHost: x\r\nUser-Agent: attacker\r\nContent-Type: application/json\r\n";
  socket.write(`${head}Content-Length: ${attack.bodyBytes + 1}\r\n\r\n`);
  socket.write(Buffer.alloc(attack.bodyBytes, " "));
  return socket;
}

console.log(JSON.stringify({ level: 30, msg: "The attack has begun" }));
const sockets = await Promise.all(Array.from({ length: attack.halfSent }, half));
const sent: Promise<void>[] = [];
for (let at = 0; performance.now() < end; at++) {
  if (attack.perSecond === 0) await delay(Math.max(1, end - performance.now()));
  else {
    sent.push(one(at));
    await delay(1_000 / attack.perSecond);
  }
}
await Promise.all(sent);
for (const socket of sockets) socket.destroy();
console.log(
  JSON.stringify({ level: 30, msg: "The attack has ended", requests: sent.length + sockets.length, statuses }),
);
