/** What goes wrong with requests and webhooks for a while, drawn at random. Pure. */
import type { FaultSettings, HttpFault, WebhookFaults } from "../../src/simulator/faults/faults.ts";
import type { RowFault } from "../../src/simulator/faults/row-faults.ts";
import type { Random } from "../../src/simulator/world/random.ts";
import type { FaultKind } from "./fault-kinds.ts";

/** Less than the longest lag of a replica that the mirror reckons with. */
export const MAX_LAG_MS = 9_000;
const REFUSED = ["/issues$", "/pulls/[0-9]+$", "/labels$", "/issues/comments$", "^POST /graphql$", "/pulls/comments$"];
/** What is answered 404 once although it is there. */
const FALSELY_GONE = ["^GET /repos/[^/]+/[^/]+$", "^GET /repositories/[0-9]+$", "^GET /.*/(issues|pulls|labels)$"];

/** Many webhooks arrive long after later ones of the same second. This weather leaves most to be decided. */
export function lastWeather(random: Random, faults: ReadonlySet<FaultKind>): FaultSettings {
  const chance = (kind: FaultKind, probability: number) => (faults.has(kind) ? probability : 0);
  return {
    http: [],
    webhooks: {
      fail: chance("fail", 0.3),
      delay: chance("delay", 0.3),
      reorder: chance("reorder", 0.2),
      duplicate: chance("duplicate", 0.2),
      delayMs: random.int(500, 2_000),
    },
    lagMs: faults.has("lag") ? random.int(0, MAX_LAG_MS) : 0,
    lagDrawn: true,
  };
}

/** Keeps the settings within the bounds that the service has in any weather. */
export function limited(random: Random, faults: ReadonlySet<FaultKind>, settings: FaultSettings): FaultSettings {
  const numberedRows = random.pick([1_000, 10_000]);
  const workPerMinute = random.chance(0.2) ? random.int(50, 2_000) : Number.POSITIVE_INFINITY;
  if (!faults.has("moods")) return settings;
  return { ...settings, numberedRows, graphql: { ...settings.graphql, workPerMinute } };
}

/** Several faults together, each at its own strength. In a third of all weathers nearly all is well. */
export function weatherOf(random: Random, faults: ReadonlySet<FaultKind>): FaultSettings {
  const isCalm = random.chance(0.3);
  const strength = (kind: FaultKind, max: number) => {
    const drawn = random.chance(0.4) ? random.next() * max : 0;
    return isCalm || !faults.has(kind) ? 0 : drawn;
  };
  const webhooks: WebhookFaults = {
    drop: strength("drop", 0.5),
    fail: strength("fail", 0.15),
    duplicate: strength("duplicate", 0.5),
    delay: strength("delay", 0.5),
    reorder: strength("reorder", 0.5),
    // The receiver gets the webhook, but upstream takes it for failed.
    timeout: strength("fail", 0.2),
    delayMs: random.int(50, 600),
  };
  const http: HttpFault[] = [];
  const status = random.pick([500, 502, 503] as const);
  const add = (probability: number, fault: HttpFault) => {
    if (probability > 0) http.push({ ...fault, probability });
  };
  add(strength("errors", 0.2), { kind: "status", status });
  add(strength("refusals", 0.05), { kind: "secondary-limit", retryAfter: random.int(1, 20) });
  add(strength("refusals", 0.05), { kind: "status", status: 429, retryAfter: random.int(1, 5) });
  add(strength("refusals", 0.02), { kind: "secondary-limit" });
  add(strength("truncate", 0.15), { kind: "truncate" });
  add(strength("reset", 0.15), { kind: "reset" });
  add(strength("slow", 0.2), { kind: "slow", delayMs: random.int(20, 800) });
  if (strength("timeout", 1) > 0.9) http.push({ kind: "slow", delayMs: 16_000, times: 1 });
  const lagMs = Math.round(strength("lag", MAX_LAG_MS));
  return { http, webhooks, lagMs, lagDrawn: true };
}

/** Faults that the service was seen to have in fair weather too. Each lasts as long as the weather it comes with. */
export function moodOf(random: Random, faults: ReadonlySet<FaultKind>, settings: FaultSettings): FaultSettings {
  if (!faults.has("moods")) return settings;
  const is = (probability: number) => random.chance(probability);
  const http = [...(settings.http ?? [])];
  // Upstream refuses one list, or one kind of document, and shows everything else.
  if (is(0.15)) {
    const as = random.pick(["permission", "saml", "ip-allow-list"] as const);
    http.push({ kind: "refusal", as, match: random.pick(REFUSED), times: random.int(1, 12) });
  }
  if (is(0.2)) http.push({ kind: "status", status: random.pick([500, 502] as const), fromPage: 2, probability: 0.3 });
  const nested = { parents: random.int(2, 20), keep: random.int(0, 5) };
  return {
    ...settings,
    http,
    webhooks: { ...settings.webhooks, throttle: is(0.3) ? random.next() * 0.2 : 0 },
    windows: is(0.5),
    tags: is(0.3),
    lockOut: { attempts: random.int(5, 30), seconds: random.int(10, 120) },
    graphql: {
      ...(is(0.25) ? { timeoutAtWork: random.int(20, 400) } : {}),
      ...(is(0.25) ? { resourceLimitAtWork: random.int(20, 400) } : {}),
      ...(is(0.1) ? { truncateNested: nested } : {}),
    },
  };
}

/**
 * Single rows that are null in GraphQL, or that lists of REST leave out as if replicas had not heard of them; pages of
 * more rows than upstream manages; a single 404 for what is there.
 */
export function oddAnswers(random: Random, faults: ReadonlySet<FaultKind>, settings: FaultSettings): FaultSettings {
  const is = (probability: number) => random.chance(probability) && faults.has("rows");
  const where = () => ({ number: random.int(1, 40) });
  const http = [...(settings.http ?? [])];
  const rows: RowFault[] = [];
  if (is(0.4)) rows.push({ kind: "null", match: "^POST /graphql", where: where() });
  if (is(0.3)) rows.push({ kind: "hidden", match: "/(issues|pulls)\\?", where: where() });
  if (is(0.3)) http.push({ kind: "status", status: 502, match: "^GET ", moreRowsThan: random.pick([10, 30, 60]) });
  if (is(0.4)) http.push({ kind: "status", status: 404, match: random.pick(FALSELY_GONE), times: 1 });
  return { ...settings, http, rows };
}
