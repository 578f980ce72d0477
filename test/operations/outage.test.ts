import { pino } from "pino";
import { expect, test } from "vitest";
import { Outage } from "../../src/operations/outage.ts";

const WORDS = { begins: "The store is away", ends: "The store is back" };

function openOutage() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { outage: new Outage(log, "warn", WORDS), told: () => lines.map(({ level, msg }) => [level, msg]) };
}

const [INFO, WARN, ERROR] = [30, 40, 50];

test("an outage is told when it begins and when it ends, however often the thing was missed", () => {
  const { outage, told } = openOutage();
  outage.met();
  for (let times = 0; times < 3; times++) outage.missed(new Error("connect ECONNREFUSED"));
  outage.met();
  outage.met();
  expect(told()).toEqual([
    [WARN, WORDS.begins],
    [INFO, WORDS.ends],
  ]);
});

test("a mistake of ours does not pass for an outage, not even during one", () => {
  const { outage, told } = openOutage();
  outage.missed(new Error("connect ECONNREFUSED"));
  outage.missed(new TypeError("Cannot read properties of undefined"));
  outage.missed(new TypeError("Cannot read properties of undefined"));
  expect(told()).toEqual([
    [WARN, WORDS.begins],
    [ERROR, "A mistake of ours looks like this: The store is away"],
  ]);
});
