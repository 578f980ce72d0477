import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DeliveryFault } from "../../src/receiver/fault.ts";
import { RefusalLog } from "../../src/receiver/routes.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const MINUTE_MS = 60_000;

function openLog(): { refusals: RefusalLog; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { refusals: new RefusalLog(log), lines };
}

const unsigned = new DeliveryFault(401, "no signature");

test("an address has one line at once, and one a minute with the number of those that followed", () => {
  const { refusals, lines } = openLog();
  for (let sent = 0; sent < 500; sent++) refusals.note("192.0.2.1", unsigned);
  expect(lines).toEqual([expect.objectContaining({ from: "192.0.2.1", status: 401, reason: "no signature" })]);
  vi.advanceTimersByTime(MINUTE_MS);
  expect(lines.slice(1)).toEqual([expect.objectContaining({ from: "192.0.2.1", count: 499, status: 401 })]);
  for (let sent = 0; sent < 70; sent++) refusals.note("192.0.2.1", unsigned);
  expect(lines).toHaveLength(2);
  vi.advanceTimersByTime(MINUTE_MS);
  expect(lines.slice(2)).toEqual([expect.objectContaining({ from: "192.0.2.1", count: 70 })]);
});

test("after a quiet minute the next one is told at once again, and nothing is said of silence", () => {
  const { refusals, lines } = openLog();
  refusals.note("192.0.2.1", unsigned);
  vi.advanceTimersByTime(10 * MINUTE_MS);
  expect(lines).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(0);
  refusals.note("192.0.2.1", unsigned);
  expect(lines).toHaveLength(2);
});

test("thousands of addresses share a line", () => {
  const { refusals, lines } = openLog();
  for (let sent = 0; sent < 20_000; sent++) refusals.note(`2001:db8::${sent.toString(16)}`, unsigned);
  expect(lines).toHaveLength(101);
  vi.advanceTimersByTime(MINUTE_MS);
  expect(lines.slice(101)).toEqual([expect.objectContaining({ from: "further addresses", count: 19_899 })]);
});
