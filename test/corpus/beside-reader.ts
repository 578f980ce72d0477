/**
 * A process of readers who are no part of the attack: each asks one address after the other, as often as they are told,
 * and at the end one line tells how long the answers took. `node beside-reader.ts URL TOKEN READERS SECONDS PATH…`
 */
import { setTimeout as delay } from "node:timers/promises";

const [url = "", token = "", readers = "1", seconds = "1", ...paths] = process.argv.slice(2);
/** Between two requests of one reader. */
const PAUSE_MS = 50;

const took: number[] = [];
const statuses: Record<string, number> = {};
const end = performance.now() + Number(seconds) * 1_000;

async function read(one: number): Promise<void> {
  for (let at = one; performance.now() < end; at++) {
    const began = performance.now();
    const answer = await fetch(url + (paths[at % paths.length] ?? ""), {
      headers: { authorization: `Bearer ${token}`, "user-agent": "reader" },
    });
    await answer.arrayBuffer();
    took.push(performance.now() - began);
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    await delay(PAUSE_MS);
  }
}

await Promise.all(Array.from({ length: Number(readers) }, (_, one) => read(one)));
took.sort((one, other) => one - other);
const p = (share: number) => took[Math.min(took.length - 1, Math.floor(took.length * share))];
console.log(
  JSON.stringify({ level: 30, msg: "Readers have ended", reads: took.length, p50Ms: p(0.5), p99Ms: p(0.99), statuses }),
);
