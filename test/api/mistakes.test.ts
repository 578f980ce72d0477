import { expect, test } from "vitest";
import type { User } from "../../src/api/callers/permissions.ts";
import { forwardAsCaller } from "../../src/api/forward/as-caller.ts";
import { ForwardedAnswers } from "../../src/api/forward/cache/forwarded-answers.ts";
import { WriteRecord } from "../../src/api/record/write-record.ts";
import { readNow } from "../../src/api/writes/read-back.ts";
import { openLog } from "../../src/operations/log.ts";
import { UpstreamUnavailableError } from "../../src/upstream/protocol/errors.ts";
import { NOWHERE, testConfig } from "../support/config.ts";

// The API answers without what it could not look up or store. An outage explains that, and a mistake of ours does not.

const now = new Date("2026-11-21T10:00:00Z");
const config = testConfig({ ...NOWHERE, redis: { url: NOWHERE.redis, prefix: "{x}" } }, { LOG_LEVEL: "info" });
// No type can say which few parts of a caller these ask for.
const caller = { kind: "user", by: { of: "upstream", fingerprint: "f", known: {} } } as unknown as User;

test.each([
  ["an error, since it is a mistake of ours", new TypeError("rows is not iterable"), 50],
  ["a warning", new Error("Connection terminated unexpectedly"), 40],
])("what a request could not look up or store is logged as %s", async (_, failure, level) => {
  const lines: string[] = [];
  const fails = () => Promise.reject(failure);
  const ctx = {
    config,
    db: { prepared: fails, query: fails, update: () => ({ set: () => ({ where: fails }) }) },
    upstream: { getWritten: fails },
    mirror: { repositories: { at: fails } },
    clock: { now: () => now },
    random: () => 0,
    log: openLog(config, { name: "test" }, { write: (line) => lines.push(line) }),
  };

  // No type can say which few parts of the context these ask for.
  const answers = new ForwardedAnswers(ctx as unknown as ConstructorParameters<typeof ForwardedAnswers>[0]);
  const question = { key: "q", fullName: "o/r", id: null, isImmutable: false, perPage: null };
  expect(await answers.find(question, "f")).toBeNull();
  const answer = { id: "a", question: "q", shownTo: "", headers: {}, body: Buffer.from("{}"), variesBy: null };
  answers.keep({ ...answer, madeAt: now, usedAt: now, mirrors: null }, question);
  await answers.close();

  const reader = { ctx, caller } as unknown as Parameters<typeof readNow>[0];
  expect(await readNow(reader, { kind: "issue", key: 1, path: "/repositories/1/issues/1" })).toMatchObject({
    body: null,
  });
  const context = { ctx, caller, requestId: "r" } as unknown as ConstructorParameters<typeof WriteRecord>[0];
  await new WriteRecord(context, 1).end();

  const away = new UpstreamUnavailableError("away", "unreachable");
  const forwarded = {
    answer: async ({ home }: { home: () => Promise<unknown> }) => {
      expect(await home()).toBeNull();
      throw away;
    },
  };
  const asked = { method: "GET", path: "/repos/o/r/branches/b", query: new URLSearchParams(), headers: {}, body: "" };
  const call = { ...asked, ctx: { ...ctx, forwarded }, caller } as unknown as Parameters<typeof forwardAsCaller>[0];
  await expect(forwardAsCaller(call)).rejects.toMatchObject({ status: 502, cause: away });

  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level, msg: "The kept answers to forwarded reads cannot be looked up" },
    { level, msg: "A forwarded answer could not be kept" },
    { level, msg: "The effects of a write could not be read" },
    { level, msg: "The outcome of a write could not be recorded" },
    { level, msg: "A repository cannot be looked up: upstream is asked as if nothing were kept" },
  ]);
});
