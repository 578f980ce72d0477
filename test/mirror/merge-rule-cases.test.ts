import { expect, test } from "vitest";
import type { Fields } from "../../src/json.ts";
import { fold, type Observation, REPLICA_LAG_MS, type Stored, writtenAt } from "../../src/mirror/store/merge-rule.ts";
import { observe } from "../../src/mirror/store/observation.ts";
import { next, run, START } from "./folding.ts";

const issue = (fields: Fields, stamp: Partial<Observation["stamp"]> = {}): Observation => ({
  fields,
  stamp: { updatedAt: START, seenAt: START + 60_000, read: false, ...stamp },
  deleted: false,
  extent: "whole",
});

test("two late deliveries that contradict each other within a second are a conflict, and the stored one stands until upstream is asked", () => {
  const stored = run([issue({ title: "one" })]);
  const folded = fold(stored, issue({ title: "two" }));
  expect(folded.outcome).toBe("conflict");
  expect(next(stored, issue({ title: "two" }))?.fields.title).toBe("one");
});

test("of two changes in one second the fresh delivery that comes later is shown, and upstream is asked all the same", () => {
  const first = issue({ title: "one" }, { seenAt: START + 500 });
  const folded = fold(run([first]), issue({ title: "two" }, { seenAt: START + 900 }));
  expect(folded).toMatchObject({ outcome: "conflict", next: { fields: { title: "two" } } });
});

test("of what carries no time, an event that changed just what is stored is shown, and upstream is asked all the same", () => {
  const label = (name: string, seenAt: number, before?: Fields): Observation => ({
    ...issue({ id: 1, name }, { updatedAt: 0, seenAt }),
    ...(before && { before }),
  });
  const stored = run([{ ...label("bug", START), stamp: { updatedAt: 0, seenAt: START, read: true } }]);
  const told = (name: string, from: string) => fold(stored, label(name, START + 60_000, { name: from }));
  expect(told("error", "bug")).toMatchObject({
    outcome: "conflict",
    keys: ["name"],
    next: { fields: { name: "error" } },
  });
  // It changed something else than what is stored: it may be an older event.
  expect(told("error", "fault")).toMatchObject({ outcome: "conflict", next: null });
  expect(fold(stored, label("error", START + 60_000))).toMatchObject({ outcome: "conflict", next: null });
  expect(fold(stored, label("error", START - 1, { name: "bug" }))).toMatchObject({ outcome: "conflict", next: null });
});

test("a push brings no key to an account that a read has shown, and a read does", () => {
  const account = (fields: Fields, seenAt: number, read: boolean) =>
    issue({ id: 7, login: "alice", ...fields }, { updatedAt: 0, seenAt, read });
  const stored = run([account({}, START, true)]);
  expect(fold(stored, account({ starred_at: "made" }, START + 60_000, false))).toEqual({ outcome: "known" });
  const told = run([account({}, START, false)]);
  expect(next(told, account({ type: "User" }, START + 60_000, false))?.fields).toHaveProperty("type");
  const reading = account({ user_view_type: "public" }, START + 60_000, true);
  expect(next(stored, reading)?.fields).toMatchObject({ user_view_type: "public" });
});

test("an account that read itself is stored as others are shown it, also where it stands in a resource", () => {
  const own = { id: 7, login: "alice", type: "User", followers_url: "x", user_view_type: "private" };
  const at = {
    api: "http://api",
    repository: { id: 1, fullName: "a/b", htmlUrl: null },
    seenAt: new Date(),
    read: true,
  };
  const dates = { created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-01T00:00:00Z" };
  const shown = [observe("user", own, at), observe("issue", { id: 1, number: 1, title: "t", ...dates, user: own }, at)];
  for (const { seen } of shown)
    expect(seen.find(({ kind }) => kind === "user")?.fields).toMatchObject({ user_view_type: "public" });
});

test("a read that a lagging replica may have answered does not overrule a delivery of the same second", () => {
  const stored = run([issue({ title: "new" }, { seenAt: START + 60_000 })]);
  const soon = issue({ title: "old" }, { read: true, seenAt: START + 61_000 });
  const later = issue({ title: "old" }, { read: true, seenAt: START + 60_000 + REPLICA_LAG_MS + 1 });
  expect(fold(stored, soon).outcome).toBe("conflict");
  expect(next(stored, later)?.fields.title).toBe("old");
});

test("of two reads that contradict each other within the lag of replicas the later is not final either", () => {
  const fresh = issue({ title: "new" }, { read: true, seenAt: START + 60_000 });
  const lagging = issue({ title: "old" }, { read: true, seenAt: START + 61_000 });
  const after = fold(run([fresh]), lagging);
  expect(after.outcome).toBe("conflict");
  // The later read is shown until upstream is asked again. Then a read that no lag can explain decides.
  const shown = after.outcome === "conflict" ? (after.next ?? undefined) : undefined;
  expect(shown?.fields.title).toBe("old");
  const settling = issue({ title: "new" }, { read: true, seenAt: START + 61_000 + REPLICA_LAG_MS + 1 });
  expect(fold(shown, settling)).toMatchObject({ outcome: "merged", next: { fields: { title: "new" } } });
});

test("reads that no lag can explain do not contradict each other, and neither do figures that upstream works out when it is asked", () => {
  const at = (fields: Fields, seenAt: number) => issue(fields, { read: true, seenAt: START + seenAt });
  expect(fold(run([at({ title: "one" }, 0)]), at({ title: "two" }, REPLICA_LAG_MS + 1)).outcome).toBe("merged");
  const head = { sha: "one" };
  expect(fold(run([at({ head, mergeable: null }, 0)]), at({ head, mergeable: true }, 1_000)).outcome).toBe("merged");
  expect(fold(run([at({ title: "one" }, 0)]), at({ title: "one" }, 1_000)).outcome).toBe("known");
});

test("a lagging replica does not tell the mergeability of what a push of the same second has replaced", () => {
  const at = (fields: Fields, seenAt: number) => issue(fields, { read: true, seenAt: START + seenAt });
  const unknown = { mergeable: null, mergeable_state: "unknown", merge_commit_sha: null };
  const before = { mergeable: true, mergeable_state: "clean", merge_commit_sha: "old" };
  const pushed = run([at({ head: { sha: "new" }, ...unknown }, 0)]);
  // By REST with the head, and by GraphQL without one.
  expect(next(pushed, at({ head: { sha: "old" }, ...before }, 1_000))?.fields).toMatchObject(unknown);
  expect(next(pushed, { ...at(before, 1_000), extent: "partial", head: "old" })?.fields).toMatchObject(unknown);
  const known = { ...before, merge_commit_sha: "new" };
  expect(next(pushed, { ...at(known, 1_000), extent: "partial", head: "new" })?.fields).toMatchObject(known);
  expect(next(pushed, { ...at(before, REPLICA_LAG_MS + 1), extent: "partial" })?.fields).toMatchObject(before);
});

test("a key that was not sent is kept, and one that was sent as null is not", () => {
  const stored = run([issue({ title: "a", closed_by: "x", milestone: "m" }, { read: true })]);
  const after = next(stored, issue({ title: "b", milestone: null }, { updatedAt: START + 1_000 }));
  expect(after?.fields).toEqual({ title: "b", closed_by: "x", milestone: null });
});

test("keys stand in the order in which upstream's representation has them, also those that came before it or later", () => {
  const keysOf = (stored: Stored | undefined) => Object.keys(stored?.fields ?? {});
  const at = (seconds: number) => ({ read: true, updatedAt: START + seconds * 1_000 });
  // Of a pull request, an issue shows a part.
  const part = run([{ ...issue({ title: "a", state: "open", updated_at: "" }, at(0)), extent: "partial" }]);
  const listed = { id: 1, state: "open", title: "a", body: "b", updated_at: "" };
  const whole = next(part, issue(listed, at(1)));
  expect(keysOf(whole)).toEqual(Object.keys(listed));
  const single = { ...listed, closed_by: null, reactions: 0 };
  const { updated_at: _, ...payload } = { ...single, sender: 1 };
  const told = next(next(whole, issue(single, at(2))), issue(payload, at(3)));
  expect(keysOf(told)).toEqual(["id", "state", "title", "body", "updated_at", "closed_by", "reactions", "sender"]);
  const late = next(told, { ...issue({ body: "c", locked: true, odd: 1 }, at(4)), extent: "partial" });
  expect(keysOf(late).slice(3, 7)).toEqual(["body", "locked", "odd", "updated_at"]);
});

test("a late observation does not bring back what was deleted; a read after every replica has caught up does", () => {
  const alive = issue({ title: "a" }, { read: true, seenAt: START });
  const dead = run([
    alive,
    { ...issue({}), deleted: true, stamp: { updatedAt: 0, seenAt: START + 1_000, read: true } },
  ]);
  expect(dead?.deletedAt).toBe(START + 1_000);
  expect(next(dead, issue({ title: "b" }, { updatedAt: START + 9_000 }))?.deletedAt).toBe(START + 1_000);
  expect(next(dead, issue({ title: "b" }, { read: true, seenAt: START + 2_000 }))?.deletedAt).toBe(START + 1_000);
  expect(
    next(dead, issue({ title: "b" }, { read: true, seenAt: START + 1_001 + REPLICA_LAG_MS }))?.deletedAt,
  ).toBeNull();
});

test("a deletion of what was never seen leaves nothing", () => {
  expect(fold(undefined, { ...issue({}), deleted: true })).toEqual({ outcome: "known" });
});

test("the counters of a repository follow the newest delivery without a question to upstream", () => {
  const stored = run([issue({ open_issues_count: 1, name: "a" }, { read: true, seenAt: START })]);
  const folded = fold(stored, issue({ open_issues_count: 2, name: "a" }));
  expect(folded).toMatchObject({ outcome: "merged", next: { fields: { open_issues_count: 2 } } });
});

test("a read made to be compared overrules what claims a later moment, but not what replicas may not have seen", () => {
  const claimed: Stored = {
    fields: { title: "invented", updated_at: "2031-01-01T00:00:00Z" },
    stamp: { updatedAt: Date.parse("2031-01-01T00:00:00Z"), seenAt: START, read: true },
    keyStamps: {},
    deletedAt: null,
  };
  const read = (afterMs: number, overrules: boolean): Observation => ({
    fields: { title: "true", updated_at: "2026-01-01T00:00:00Z" },
    stamp: { updatedAt: START, seenAt: START + afterMs, read: true },
    deleted: false,
    extent: "whole",
    overrules,
  });
  expect(next(claimed, read(REPLICA_LAG_MS + 1, true))?.fields.title).toBe("true");
  expect(next(claimed, read(REPLICA_LAG_MS, true))?.fields.title).toBe("invented");
  expect(next(claimed, read(REPLICA_LAG_MS + 1, false))?.fields.title).toBe("invented");
});

test("an issue that a list shows to be a pull request keeps nothing that only an issue has", () => {
  const issue = {
    fields: { title: "one", type: null, updated_at: "2026-01-01T00:00:00Z" },
    stamp: { updatedAt: START, seenAt: START, read: true },
    keyStamps: {},
    deletedAt: null,
  };
  const seen: Observation = {
    fields: { title: "one", pull_request: { url: "somewhere" }, updated_at: "2026-01-01T00:00:05Z" },
    stamp: { updatedAt: START + 5_000, seenAt: START + 6_000, read: true },
    deleted: false,
    extent: "whole",
  };
  expect(Object.keys(next(issue, seen)?.fields ?? {}).sort()).toEqual(["pull_request", "title", "updated_at"]);
  const pushed = { ...seen, stamp: { ...seen.stamp, read: false } };
  expect(next(issue, pushed)?.fields).toHaveProperty("type");
});

test("the counters of a repository do not follow a delivery that comes late, and nobody is asked", () => {
  const stored = run([issue({ open_issues_count: 2, name: "a" }, { seenAt: START })]);
  const late = { ...issue({ open_issues_count: 1, name: "a" }), isLate: true };
  expect(fold(stored, late)).toEqual({ outcome: "known" });
  expect(fold(undefined, late)).toMatchObject({ outcome: "merged", next: { fields: { open_issues_count: 1 } } });
});

test("what a write was answered stands, within its second, against lagging reads and deliveries of earlier states", () => {
  const answeredAt = START + 1_000;
  const seen = (title: string, seenAt: number, read: boolean): Observation => ({
    fields: { title, updated_at: "2026-01-01T00:00:00Z" },
    stamp: { updatedAt: START, seenAt, read },
    deleted: false,
    extent: "whole",
  });
  const written = next(
    next(undefined, seen("before", START, true)),
    seen("written", writtenAt(new Date(answeredAt)).getTime(), true),
  );
  expect(written?.fields.title).toBe("written");
  // Nobody can say which of the two is newer. So the write's answer stays, and upstream is asked.
  const doubt = { outcome: "conflict", next: null, keys: ["title"] };
  expect(fold(written, seen("before", answeredAt + REPLICA_LAG_MS - 1, true))).toEqual(doubt);
  expect(fold(written, seen("before", answeredAt + 500, false))).toEqual(doubt);
  expect(fold(written, seen("before", answeredAt + 5_500, false))).toEqual(doubt);
  expect(next(written, seen("later", answeredAt + REPLICA_LAG_MS + 1, true))?.fields.title).toBe("later");
});

test("a read that knows no better than the webhook before it still tells in which shape a shared resource is served", () => {
  const updatedAt = START;
  const fields = (shape: string) => ({
    title: "a",
    user: `\u0005u1:${shape}`,
    updated_at: new Date(START).toISOString(),
  });
  const webhook: Observation = {
    fields: fields("pushed00"),
    stamp: { updatedAt, seenAt: START + 1_000, read: false },
    deleted: false,
    extent: "whole",
  };
  const read: Observation = {
    ...webhook,
    fields: fields("read0000"),
    stamp: { updatedAt, seenAt: START + 2_000, read: true },
  };
  for (const seen of [
    [webhook, read],
    [read, webhook],
    [webhook, read, webhook],
  ])
    expect(run(seen)?.fields.user).toBe("\u0005u1:read0000");
});

test("what a webhook changes beside a shared resource leaves that in the shape of a read", () => {
  const fields = (sha: string, shape: string, owner: number) => ({
    head: { sha, repo: `\u0005r7:${shape}`, user: `\u0005u${owner}:${shape}` },
    updated_at: new Date(START).toISOString(),
  });
  const read: Observation = {
    fields: fields("before", "read0000", 1),
    stamp: { updatedAt: START, seenAt: START + 1_000, read: true },
    deleted: false,
    extent: "whole",
  };
  const pushed = (sha: string, seconds: number): Observation => ({
    ...read,
    fields: fields(sha, "pushed00", 2),
    stamp: { updatedAt: START + seconds * 1_000, seenAt: START + (seconds + 1) * 1_000, read: false },
  });
  expect(run([read, pushed("after", 60), pushed("later", 120)])?.fields.head).toEqual({
    sha: "later",
    repo: "\u0005r7:read0000",
    user: "\u0005u2:pushed00",
  });
});

const hour = 3_600_000;

/** A repository as a push or a read showed it. `updatedAt` and `seenAt` are in hours after the start. */
function repositorySeen(shown: Fields, at: { updatedAt: number; seenAt: number; read: boolean }): Observation {
  const stamp = { updatedAt: START + at.updatedAt * hour, seenAt: START + at.seenAt * hour, read: at.read };
  return { fields: { full_name: "octo/demo", ...shown }, stamp, deleted: false, extent: "whole" };
}

function storedRepository(shown: Fields): Stored {
  const folded = fold(undefined, repositorySeen(shown, { updatedAt: 1, seenAt: 1, read: true }));
  if (folded.outcome !== "merged") throw new Error("It was not stored");
  return folded.next;
}

const PRIVATE = { private: true, visibility: "private" };
const PUBLIC = { private: false, visibility: "public" };

test("a push never makes a repository more visible, whatever moment it claims, and upstream is asked", () => {
  for (const [shown, opened] of [
    [PRIVATE, PUBLIC],
    [{ private: true, visibility: "internal" }, PUBLIC],
    [PRIVATE, { private: true, visibility: "internal" }],
  ] as const) {
    const stored = storedRepository(shown);
    for (const updatedAt of [1, 2, 1_000]) {
      const folded = fold(
        stored,
        repositorySeen({ ...opened, description: "new" }, { updatedAt, seenAt: 2, read: false }),
      );
      expect(folded.outcome).toBe("conflict");
      const next = folded.outcome === "conflict" ? (folded.next ?? stored) : stored;
      expect(next.fields).toMatchObject(shown);
      // The other fields of the push are believed.
      if (updatedAt > 1) expect(next.fields.description).toBe("new");
    }
  }
});

test("a push makes a repository less visible at once, also in the second of another change", () => {
  for (const updatedAt of [1, 2]) {
    const folded = fold(storedRepository(PUBLIC), repositorySeen(PRIVATE, { updatedAt, seenAt: 2, read: false }));
    expect("next" in folded && folded.next?.fields).toMatchObject(PRIVATE);
  }
  // A push that claims to be older may still be true, because the stored row may claim a moment that never was.
  const late = fold(storedRepository(PUBLIC), repositorySeen(PRIVATE, { updatedAt: 0, seenAt: 2, read: false }));
  expect(late).toMatchObject({ outcome: "conflict", next: { fields: PRIVATE } });
});

test("a later read decides who may see a repository, even against what claims a later moment", () => {
  const forged = fold(storedRepository(PUBLIC), repositorySeen(PRIVATE, { updatedAt: 1_000, seenAt: 2, read: false }));
  if (forged.outcome !== "merged") throw new Error("It was not stored");
  expect(fold(forged.next, repositorySeen(PUBLIC, { updatedAt: 1, seenAt: 3, read: true }))).toMatchObject({
    outcome: "merged",
    next: { fields: PUBLIC },
  });
  expect(
    fold(storedRepository(PUBLIC), repositorySeen(PRIVATE, { updatedAt: 0, seenAt: 3, read: true })),
  ).toMatchObject({
    outcome: "merged",
    next: { fields: PRIVATE },
  });
});

test("a read that a lagging replica may have answered does not make a repository visible again", () => {
  const closed = fold(storedRepository(PUBLIC), repositorySeen(PRIVATE, { updatedAt: 2, seenAt: 2, read: true }));
  if (closed.outcome !== "merged") throw new Error("It was not stored");
  const soon = repositorySeen(PUBLIC, { updatedAt: 1, seenAt: 2, read: true });
  soon.stamp.seenAt += REPLICA_LAG_MS;
  expect(fold(closed.next, soon).outcome).toBe("known");
});

test("the other side of a pull request moves a row's time, and no key that it does not show", () => {
  const at = (second: number, seenAt: number, read: boolean) => ({ updatedAt: START + second * 1_000, seenAt, read });
  const time = (second: number) => new Date(START + second * 1_000).toISOString();
  const told = (second: number): Observation => ({
    fields: { title: `${second}`, updated_at: time(second) },
    stamp: at(second, START + second * 1_000, false),
    deleted: false,
    extent: "partial",
  });
  const whole: Observation = {
    fields: { title: "1", closed_by: null, updated_at: time(1) },
    stamp: at(1, START + 1_000, true),
    deleted: false,
    extent: "whole",
  };
  const moved = run([whole, told(5)]);
  expect(moved).toMatchObject({ fields: { title: "5", closed_by: null, updated_at: time(5) }, stamp: told(5).stamp });
  // The keys that the webhook did not show are still known as of the read before.
  expect(moved?.keyStamps.closed_by).toEqual(whole.stamp);
});

test("what has another id under the same number is another's, and replaces nothing", () => {
  const stored = run([issue({ id: 1, title: "ours" }, { read: true })]);
  const other = { id: 2, title: "another's" };
  expect(fold(stored, issue(other, { updatedAt: START + 30_000 })).outcome).toBe("known");
  expect(fold(stored, issue(other, { updatedAt: START + 30_000, seenAt: START + 90_000, read: true }))).toEqual({
    outcome: "conflict",
    next: null,
    keys: ["id"],
  });
});
