import { expect, test } from "vitest";
import { digestOf, issuePath, listPath, type Row, Truth } from "../../bench/instead/truth.ts";

const row = (number: number, more = {}) => ({
  ...{ number, title: "A title", state: "open", comments: 0, updated_at: "2026-01-01T00:00:00Z" },
  ...more,
});

test("an answer is behind by the time since upstream left it, when it was asked for", () => {
  const truth = new Truth();
  truth.begin("o/r", [row(1)]);
  truth.changed("o/r", row(1, { comments: 1 }), 1_000);
  truth.changed("o/r", row(1, { comments: 2 }), 3_000);
  const behind = (shown: Row, askedAt: number) =>
    truth.behind([{ path: issuePath("o/r", 1), shown: digestOf(shown), askedAt }])[0];
  expect(behind(row(1), 900)).toBe(0);
  expect(behind(row(1), 1_400)).toBe(400);
  expect(behind(row(1, { comments: 2 }), 2_000)).toBe(0);
  expect(behind(row(1, { comments: 9 }), 4_000)).toBeNull();
});

test("a list is the newest open issues, and a new one belongs to it at once", () => {
  const truth = new Truth();
  truth.begin("o/r", [row(1), row(2, { state: "closed" }), row(3)]);
  const behind = (shown: Row[], askedAt: number) =>
    truth.behind([{ path: listPath("o/r"), shown: digestOf(shown), askedAt }])[0];
  expect(behind([row(3), row(1)], 0)).toBe(0);
  truth.changed("o/r", row(4), 50);
  expect(behind([row(3), row(1)], 60)).toBe(10);
  expect(behind([row(4), row(3), row(1)], 60)).toBe(0);
  expect(behind([row(1), row(3)], 60)).toBeNull();
});
