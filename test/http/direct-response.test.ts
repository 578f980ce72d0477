/**
 * What `DirectResponse` takes from Node.js beyond its documents. A test that fails after an upgrade of Node.js says what
 * has to be looked at again: `_http_server.js` and `_http_outgoing.js`, and `docs/decisions/0018-plain-node-http.md`.
 */
import { once } from "node:events";
import { createServer, ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, test } from "vitest";
import { DirectResponse, HeaderLines, LastLines } from "../../src/http/response.ts";

const REQUEST = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/** The responses to `requests` at once on one connection, as the server hands them out. */
async function responsesTo(requests: string, count: number, resources: AsyncDisposableStack) {
  const responses: DirectResponse[] = [];
  const { promise: all, resolve } = Promise.withResolvers<void>();
  const server = createServer({ ServerResponse: DirectResponse }, (_request, response) => {
    if (responses.push(response) === count) resolve();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  // The address of a server that listens to a port is no text.
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  resources.defer(async () => {
    socket.destroy();
    server.close();
    await once(server, "close");
  });
  socket.write(requests);
  await all;
  return { responses, socket };
}

const send = (response: DirectResponse) =>
  response.sendAtOnce(200, HeaderLines.of({}), "", new LastLines({ now: () => new Date() }));

test("the server alone listens to a response, and only to its finish", async () => {
  await using resources = new AsyncDisposableStack();
  const { responses } = await responsesTo(REQUEST, 1, resources);
  expect(responses.flatMap((one) => one.eventNames().map((name) => [name, one.listenerCount(name)]))).toEqual([
    ["finish", 1],
  ]);
});

test("a response that was sent at once is over for the server, and says so as any other", async () => {
  await using resources = new AsyncDisposableStack();
  const { responses, socket } = await responsesTo(REQUEST, 1, resources);
  const [response] = responses;
  if (!response) throw new Error("There is no response");
  expect([response.writableFinished, response.socket?.writable]).toEqual([false, true]);
  const events: string[] = [];
  for (const name of ["finish", "close"])
    response.once(name, () => events.push(`${name} ${response.writableFinished}`));
  const [closed, answered] = [once(response, "close"), once(socket, "data")];
  expect(send(response)).toBe(true);
  expect([events, response.writableFinished, response.socket]).toEqual([["finish true"], true, null]);
  await closed;
  expect([events, response.closed]).toEqual([["finish true", "close true"], true]);
  await answered;
});

test("a response whose turn has not come has no socket, gets it with its turn, and cannot be sent at once before", async () => {
  await using resources = new AsyncDisposableStack();
  const { responses } = await responsesTo(REQUEST.repeat(2), 2, resources);
  const [first, second] = responses;
  if (!first || !second) throw new Error("There are no two responses");
  expect([first.socket === null, second.socket === null]).toEqual([false, true]);
  expect([send(second), send(first)]).toEqual([false, true]);
  expect([first.socket === null, second.socket === null]).toEqual([true, false]);
  expect(send(second)).toBe(true);
});

test("a response whose connection breaks first closes without having finished", async () => {
  await using resources = new AsyncDisposableStack();
  const { responses, socket } = await responsesTo(REQUEST, 1, resources);
  const [response] = responses;
  if (!response) throw new Error("There is no response");
  const closed = once(response, "close");
  socket.destroy();
  await closed;
  expect(response.writableFinished).toBe(false);
});

test("Node.js has `writableFinished` as a getter, which goes on for responses that it sends itself", async () => {
  let of = Object.getPrototypeOf(ServerResponse.prototype);
  while (of && !Object.hasOwn(of, "writableFinished")) of = Object.getPrototypeOf(of);
  expect(Object.getOwnPropertyDescriptor(of, "writableFinished")?.get).toBeTypeOf("function");
  await using resources = new AsyncDisposableStack();
  const { responses } = await responsesTo(REQUEST, 1, resources);
  const [response] = responses;
  if (!response) throw new Error("There is no response");
  const closed = once(response, "close");
  response.end("whole");
  await closed;
  expect(response.writableFinished).toBe(true);
});
