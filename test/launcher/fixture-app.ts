// Stands in for the app in the launcher's tests (TAIN_APP_ENTRY): it does what it is told to by its arguments and
// tells on stdout what it was given.
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const { DATABASE_URL, REDIS_URL, TAIN_HOME } = process.env;
const tell = (event: string, more: object) => process.stdout.write(`${JSON.stringify({ event, ...more })}\n`);

async function answers(url: string | undefined): Promise<boolean> {
  if (url === undefined) return false;
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

const [command, how] = process.argv.slice(2);
if (process.env.TAIN_PARSE_ONLY) process.exit();
if (command === "up") {
  const alive = setInterval(() => {}, 60_000);
  process.on("SIGTERM", async () => {
    if (how === "--deaf") return;
    tell("stopping", { postgres: await answers(DATABASE_URL), redis: await answers(REDIS_URL) });
    if (how === "--slow") await delay(1_000);
    if (how === "--held") while (!existsSync(join(TAIN_HOME ?? "", "let-go"))) await delay(20);
    clearInterval(alive);
  });
}
tell("started", { command, pid: process.pid, node: process.versions.node, DATABASE_URL, REDIS_URL, TAIN_HOME });
if (how === "--crash") process.exit(7);
