import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { BodyBudget, type HeldBody } from "../../src/http/body.ts";
import { HttpError } from "../../src/http/errors.ts";
import { eventually } from "../support/patience.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A server that keeps each whole body until it is told to let go, and answers those given up with their status. */
async function openServer(
  budget: BodyBudget,
  sender: string | null = null,
): Promise<{ port: number; held: HeldBody[]; statuses: number[] }> {
  const held: HeldBody[] = [];
  const statuses: number[] = [];
  const server = createServer((request, response) => {
    budget.read(request, 1_000_000, sender).then(
      (body) => held.push(body),
      (error) => {
        statuses.push(error instanceof HttpError ? error.status : 0);
        response.end();
      },
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(
    () => server.close(),
    () => server.closeAllConnections(),
  );
  // No type can say that a server that listens to a port has one.
  return { port: (server.address() as AddressInfo).port, held, statuses };
}

async function send(port: number, announced: number, body: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  closing.push(() => socket.destroy());
  socket.on("error", () => {}); // The server may be gone before it.
  await once(socket, "connect");
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${announced}\r\n\r\n${body}`);
  return socket;
}

const text = (bytes: number) => "x".repeat(bytes);

test("what arrived counts until the body is let go, and what was only announced does not", async () => {
  const budget = new BodyBudget({ maxBytes: 100_000, patienceMs: 60_000 });
  const { port, held } = await openServer(budget);
  for (let sent = 0; sent < 20; sent++) await send(port, 900_000, "");
  await send(port, 10_000, text(10_000));
  await eventually(() => expect(held).toHaveLength(1));
  expect(budget.heldBytes).toBeGreaterThanOrEqual(10_000);
  expect(budget.heldBytes).toBeLessThan(20_000);
  expect(held[0]?.bytes.toString()).toBe(text(10_000));
  held[0]?.[Symbol.dispose]();
  held[0]?.[Symbol.dispose]();
  expect(budget.heldBytes).toBe(0);
});

test("the body that has been arriving for longest gives way, and newer ones are read", async () => {
  const budget = new BodyBudget({ maxBytes: 100_000, patienceMs: 60_000 });
  const { port, held, statuses } = await openServer(budget);
  const [first] = [await send(port, 900_000, text(45_000))];
  await eventually(() => expect(budget.heldBytes).toBeGreaterThan(45_000));
  await send(port, 900_000, text(45_000));
  await eventually(() => expect(budget.heldBytes).toBeGreaterThan(90_000));
  await send(port, 20_000, text(20_000));
  await eventually(() => expect([held.length, statuses]).toEqual([1, [503]]));
  expect(await once(first as Socket, "data")).toEqual([expect.objectContaining({ length: expect.any(Number) })]);
  expect(budget.heldBytes).toBeLessThan(100_000);
});

test("while whole bodies hold all the room, another one is refused", async () => {
  const budget = new BodyBudget({ maxBytes: 50_000, patienceMs: 60_000 });
  const { port, held, statuses } = await openServer(budget);
  await send(port, 40_000, text(40_000));
  await eventually(() => expect(held).toHaveLength(1));
  await send(port, 20_000, text(20_000));
  await eventually(() => expect(statuses).toEqual([503]));
  held[0]?.[Symbol.dispose]();
  await send(port, 20_000, text(20_000));
  await eventually(() => expect(held).toHaveLength(2));
});

test("a body that is cut gives its share back", async () => {
  const budget = new BodyBudget({ maxBytes: 100_000, patienceMs: 60_000 });
  const { port, statuses } = await openServer(budget);
  const socket = await send(port, 900_000, text(30_000));
  await eventually(() => expect(budget.heldBytes).toBeGreaterThan(30_000));
  socket.destroy();
  await eventually(() => expect(budget.heldBytes).toBe(0));
  expect(statuses).toEqual([400]);
});

test("a body that is late gives its share back", async () => {
  const budget = new BodyBudget({ maxBytes: 100_000, patienceMs: 50 });
  const { port, statuses } = await openServer(budget);
  await send(port, 900_000, text(30_000));
  await eventually(() => expect(statuses).toEqual([408]));
  expect(budget.heldBytes).toBe(0);
});

test("each body that is late is given up, also one that began while another was awaited", async () => {
  const budget = new BodyBudget({ maxBytes: 100_000, patienceMs: 100 });
  const { port, held, statuses } = await openServer(budget);
  await send(port, 900_000, text(10_000));
  await eventually(() => expect(budget.heldBytes).toBeGreaterThan(10_000));
  await send(port, 900_000, text(10_000));
  await send(port, 10_000, text(10_000));
  await send(port, 900_000, "");
  await eventually(() => expect(statuses).toEqual([408, 408, 408]));
  expect(held).toHaveLength(1);
  await send(port, 900_000, "");
  await eventually(() => expect(statuses).toHaveLength(4));
});

/** Begins a body that comes in chunks. */
function sendChunks(port: number, chunks: string): Socket {
  const socket = connect(port, "127.0.0.1");
  closing.push(() => socket.destroy());
  socket.on("error", () => {}); // The server may end the connection before it is read.
  socket.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  socket.write(chunks);
  return socket;
}

test("pieces are joined: byte by byte, a body takes no more memory than its size asks for", async () => {
  const budget = new BodyBudget({ maxBytes: 100_000, patienceMs: 60_000 });
  const { port, held } = await openServer(budget);
  const letters = Array.from({ length: 3_000 }, (_, at) => "abcdefghij".charAt(at % 10));
  sendChunks(port, `${letters.map((letter) => `1\r\n${letter}\r\n`).join("")}0\r\n\r\n`);
  await eventually(() => expect(held).toHaveLength(1));
  expect(held[0]?.bytes.toString()).toBe(letters.join(""));
  expect(budget.heldBytes).toBeLessThan(20_000);
});

test("a body of very many small pieces is given up after the first thousands", async () => {
  const budget = new BodyBudget({ maxBytes: 100_000, patienceMs: 60_000 });
  const { port, statuses } = await openServer(budget);
  sendChunks(port, "1\r\nx\r\n".repeat(200_000));
  await eventually(() => expect(statuses).toEqual([400]));
  expect(budget.heldBytes).toBe(0);
});

test("pieces of an ordinary size are taken, however many they are", async () => {
  const budget = new BodyBudget({ maxBytes: 10_000_000, patienceMs: 60_000 });
  const { port, held } = await openServer(budget);
  sendChunks(port, `${`c8\r\n${text(200)}\r\n`.repeat(4_900)}0\r\n\r\n`);
  await eventually(() => expect(held).toHaveLength(1));
  expect(held[0]?.bytes.toString()).toBe(text(980_000));
});

test("a sender who fills their share gives up their own bodies, and takes no room from others", async () => {
  const budget = new BodyBudget({ maxBytes: 400_000, patienceMs: 60_000 });
  const one = await openServer(budget, "one");
  const other = await openServer(budget, "other");
  await send(other.port, 900_000, text(60_000));
  for (let sent = 0; sent < 10; sent++) {
    await send(one.port, 900_000, text(60_000));
    await eventually(() => expect(one.statuses).toEqual(Array.from({ length: sent }, () => 503)));
  }
  expect(other.statuses).toEqual([]);
  expect(budget.heldBytes).toBeLessThan(200_000);
  // Another small body of theirs is still taken.
  await send(one.port, 1_000, text(1_000));
  await eventually(() => expect(one.held).toHaveLength(1));
});

test("large pieces stay as they arrived, and small ones are joined between them", async () => {
  const budget = new BodyBudget({ maxBytes: 1_000_000, patienceMs: 60_000 });
  const { port, held } = await openServer(budget);
  const socket = sendChunks(port, "");
  const body = ["a", "b", "c".repeat(40_000), "d", "e", "f".repeat(20_000), "g"];
  for (const piece of body) {
    socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
    await new Promise(setImmediate);
  }
  socket.write("0\r\n\r\n");
  await eventually(() => expect(held).toHaveLength(1));
  const [whole] = held;
  expect(whole?.bytes.toString()).toBe(body.join(""));
  expect(whole?.size).toBe(60_005);
  expect(whole?.pieces.length).toBeGreaterThan(2);
  expect(budget.heldBytes).toBeLessThan(60_005 + 4 * 17_000);
});
