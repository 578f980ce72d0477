import { type Finding, ok, problem, warning } from "./finding.ts";

// The merge compares when things were seen, by our clocks: a few seconds of difference may take an old read for a new one.
const CLOCK_WARNING_MS = 2_000;
const CLOCK_PROBLEM_MS = 30_000;

/** Pure. @param aheadMs how far the other clock is ahead of ours @param precisionMs how exactly that is known */
export function clockFinding(whose: string, aheadMs: number, precisionMs = 100): Finding {
  const difference = Math.abs(aheadMs);
  const seconds = (difference / 1_000).toFixed(1);
  if (difference <= CLOCK_WARNING_MS + precisionMs) return ok("clock", `${whose} has the same time as this machine`);
  const says = `The clock of ${whose} is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`;
  const todo = "Synchronise the clocks (NTP): of two observations the newer wins, and clocks say which that is";
  return difference > CLOCK_PROBLEM_MS ? problem("clock", says, todo) : warning("clock", says, todo);
}
