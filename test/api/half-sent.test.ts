/** Bodies that never end: they are given up by time, and take nothing from those who send theirs whole. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await openApiWorld({
    repositories: 1,
    issues: 5,
    env: { WEBHOOK_BODY_TIMEOUT: "3s", RATE_LIMIT_USER: "400" },
  });
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Sends half of what it announces. Resolves to the answer's status once the server has closed the connection. */
async function sendHalf(path: string, authorization: string): Promise<{ socket: Socket; status: Promise<number> }> {
  const { hostname, port } = new URL(world.url);
  const socket = connect(Number(port), hostname);
  const status = text(socket).then((answer) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]));
  await once(socket, "connect");
  const head = [`POST ${path} HTTP/1.1`, `Host: ${hostname}`, "User-Agent: half", "Connection: close", authorization];
  socket.write(`${[...head, "Content-Type: application/json", "Content-Length: 40000"].join("\r\n")}\r\n\r\n`);
  socket.write(`{"query":"${"x".repeat(20_000)}`);
  return { socket, status };
}

test("two hundred bodies that end half-way are given up, and honest requests beside them are answered", async () => {
  const [repository] = world.repositories;
  const issues = `/repos/${repository?.fullName}/issues`;
  const half = await Promise.all(
    Array.from({ length: 200 }, (_, at) =>
      sendHalf(at % 2 ? "/graphql" : issues, `Authorization: Bearer ${at % 4 < 2 ? world.token : world.readToken}`),
    ),
  );
  const [read, asked, made] = await Promise.all([
    world.get(issues),
    world.query("{ viewer { login } }"),
    world.send("POST", issues, { body: JSON.stringify({ title: "Whole" }) }),
  ]);
  expect([read.status, asked.status, made.status]).toEqual([200, 200, 201]);
  expect(asked.body.data.viewer.login).toBeTruthy();
  const statuses = await Promise.all(half.map(({ status }) => status));
  for (const { socket } of half) socket.destroy();
  expect(new Set(statuses)).toEqual(new Set([408]));
});
