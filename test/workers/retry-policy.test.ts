import { describe, expect, test } from "vitest";
import { NotAloneError } from "../../db/alone.ts";
import { openDatabase } from "../../db/database.ts";
import { isPostgresOutage } from "../../db/outage.ts";
import { sql } from "../../db/sql.ts";
import { InboxUnavailableError, UnstorableDeliveryError } from "../../src/inbox/inbox.ts";
import { InvalidRepresentationError } from "../../src/mirror/store/observation.ts";
import { InvalidPayloadError } from "../../src/sync/events/read.ts";
import { classifyFailure } from "../../src/sync/problems/causes.ts";
import { InterruptedError } from "../../src/sync/problems/errors.ts";
import {
  CredentialRejectedError,
  QuotaSpentError,
  UpstreamUnavailableError,
} from "../../src/upstream/protocol/errors.ts";
import { backoffMs, verdictOn } from "../../workers/retry-policy.ts";

const withCode = (code: string) => Object.assign(new Error("something"), { code });

describe("what becomes of a job that threw", () => {
  test("a spent quota: it waits until the reset, never less, at most a second more", () => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    const error = new QuotaSpentError("core", new Date(now + 60_000));
    expect(verdictOn(error, { random: () => 0, nowMs: now })).toEqual({ kind: "delay", delayMs: 60_000 });
    expect(verdictOn(error, { random: () => 0.999, nowMs: now })).toEqual({ kind: "delay", delayMs: 60_999 });
    expect(verdictOn(error, { random: () => 0, nowMs: now + 90_000 })).toEqual({ kind: "delay", delayMs: 0 });
  });

  test("a payload that cannot be: it is not tried again, and is no mistake of ours", () => {
    for (const error of [new InvalidPayloadError("no subject"), new UnstorableDeliveryError("no")])
      expect(classifyFailure(error)).toEqual({ kind: "unusable" });
    expect(verdictOn(new InvalidPayloadError("no subject"), { random: Math.random })).toEqual({ kind: "give up" });
  });

  test("no token is accepted: it waits until the operator has replaced the tokens", () => {
    expect(verdictOn(new CredentialRejectedError(["abc"]), { random: () => 0.5 })).toEqual({
      kind: "delay",
      delayMs: 60_000,
    });
  });

  test("upstream away: a failed attempt, though its cause reads like an outage of Postgres", () => {
    const error = new UpstreamUnavailableError("refused", "unreachable", { cause: withCode("ECONNREFUSED") });
    expect(verdictOn(error, { random: Math.random })).toEqual({ kind: "retry" });
  });

  test("a delivery in Redis that Postgres does not take: it waits, longer each time, and is never given up", () => {
    const error = new InboxUnavailableError("away", { cause: withCode("ECONNREFUSED") });
    const waits = [1, 2, 3, 4, 5, 6, 100].map((attempts) => verdictOn(error, { random: () => 0.5, attempts }));
    expect(waits).toEqual(
      [1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000].map((delayMs) => ({ kind: "delay", delayMs })),
    );
    expect(verdictOn(new UnstorableDeliveryError("no"), { random: Math.random })).toEqual({ kind: "give up" });
  });

  test("a value that no column can hold, or that is missing: it is not tried again", () => {
    for (const code of ["22003", "23502", "54000"])
      expect(verdictOn(withCode(code), { random: Math.random })).toEqual({ kind: "give up" });
    expect(verdictOn(new Error("Storing failed", { cause: withCode("22P05") }), { random: Math.random })).toEqual({
      kind: "give up",
    });
  });

  test("an answer of upstream's that lacks what it must have: upstream is to blame, and it is asked again", () => {
    const error = new InvalidRepresentationError("This issue came without title");
    expect(classifyFailure(error)).toEqual({ kind: "failed", cause: "unavailable" });
    expect(verdictOn(error, { random: Math.random })).toEqual({ kind: "retry" });
  });

  test("a job that may not be alone any more: it has ended, though its hold was lost over an outage of Postgres", () => {
    const lost = new NotAloneError("Another process may have begun audit 1", { cause: withCode("ECONNREFUSED") });
    expect(classifyFailure(new InterruptedError("The audit stops", { cause: lost }))).toEqual({ kind: "ended" });
  });

  test("anything else: a failed attempt", () => {
    for (const error of [
      new Error("?"),
      new TypeError("x is undefined"),
      withCode("23505"),
      withCode("40P01"),
      "text",
      null,
    ]) {
      expect(verdictOn(error, { random: Math.random })).toEqual({ kind: "retry" });
    }
  });

  test("Postgres away: it waits, for every sign of the outage", () => {
    for (const code of [
      "57P01",
      "57P02",
      "57P03",
      "08006",
      "53300",
      "53200",
      "55P03",
      "25006",
      "ECONNREFUSED",
      "ECONNRESET",
      "EPIPE",
    ]) {
      expect(verdictOn(withCode(code), { random: () => 0.5 })).toEqual({ kind: "delay", delayMs: 2_000 });
    }
    expect(isPostgresOutage(new Error("Storing failed", { cause: withCode("57P01") }))).toBe(true);
    // As Postgres 18 says that its queue of notifications is full: the code is that of a value which is too long.
    const full = Object.assign(withCode("54000"), { routine: "PreCommit_Notify" });
    expect(verdictOn(full, { random: () => 0.5 })).toEqual({ kind: "delay", delayMs: 2_000 });
  });

  test("Postgres away, as node-postgres itself says it", async () => {
    const db = openDatabase("postgres://tain@127.0.0.1:1/tain");
    const error = await db.query(sql`select 1`).catch((reason: unknown) => reason);
    expect(isPostgresOutage(error)).toBe(true);
    await db.close();
  });
});

test("the wait after a failed attempt doubles from a second to a minute, with chance in it", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8, 20].map((attempt) => backoffMs(attempt, () => 0.5))).toEqual([
    1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000,
  ]);
  expect(backoffMs(1, () => 0)).toBe(750);
  expect(backoffMs(1, () => 1)).toBe(1_250);
});
