/** The network that partitions are played on really loses what a test tells it to lose, in one direction or both. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { test as anyTest, expect, onTestFinished } from "vitest";
import { openNetwork, whyNoNetwork } from "./network.ts";

const why = await whyNoNetwork();
if (why !== null) console.warn(`The test of a network of one's own is left out: ${why}`);
const test = anyTest.skipIf(why !== null);

/** Prints each byte that it gets, and sends it back. */
const ECHO = `require("node:net").createServer((socket) => socket.on("data", (bytes) => {
  console.log("got " + bytes);
  socket.write(bytes);
})).listen(7, process.argv[1], () => console.log("listens"))`;

test("what a network is told to lose does not arrive, and arrives once it is healed", async () => {
  await using network = await openNetwork(["a"], ["here"]);
  const [command, ...args] = network.within("a", process.execPath, "-e", ECHO, network.addressOf("a"));
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill());
  const lines = createInterface({ input: child.stdout });
  const said = lines[Symbol.asyncIterator]();
  expect((await said.next()).value).toBe("listens");

  const socket = connect({ host: network.addressOf("a"), port: 7, localAddress: network.addressOf("here") });
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  let answered = "";
  socket.on("data", (bytes) => {
    answered += String(bytes);
  });
  socket.write("1");
  await once(socket, "data");
  await said.next();
  // What is sent arrives. The answer does not arrive until the way back is healed. The sender hears of nothing else.
  await network.cut([{ from: "a", to: "here" }]);
  socket.write("2");
  expect((await said.next()).value).toBe("got 2");
  expect(answered).toBe("1");
  const back = once(socket, "data");
  await network.cut([]);
  await back;
  expect(answered).toBe("12");
});
