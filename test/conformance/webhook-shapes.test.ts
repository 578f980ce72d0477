import examples from "@octokit/webhooks-examples" with { type: "json" };
import { describe, expect, test } from "vitest";
import type { Fields } from "../../src/json.ts";
import { FOLLOWED_EVENTS } from "../../src/sync/events/followed.ts";
import { mismatch } from "../../src/sync/events/read.ts";
import { reportedChangesOf } from "../../src/sync/found/reported-changes.ts";

const all = (examples as unknown as { name: string; examples: Fields[] }[]).flatMap(({ name, examples: payloads }) =>
  payloads.map((payload) => ({ event: name, payload })),
);

/** What an event's payload is about: without it the payload is refused when it is read. */
const SUBJECTS: Record<string, string[]> = {
  issues: ["issue"],
  pull_request: ["pull_request"],
  issue_comment: ["issue", "comment"],
  pull_request_review: ["pull_request", "review"],
  pull_request_review_comment: ["pull_request", "comment"],
  pull_request_review_thread: ["pull_request"],
  label: ["label"],
  milestone: ["milestone"],
  repository: ["repository"],
  public: ["repository"],
};

/** The published examples are older than these events. */
const WITHOUT_EXAMPLES = ["sub_issues", "issue_dependencies"];
const withExamples = [...FOLLOWED_EVENTS.keys()].filter((event) => !WITHOUT_EXAMPLES.includes(event));

describe.each(withExamples)("GitHub's example payloads, as %s", (event) => {
  const [own, others] = [all.filter((one) => one.event === event), all.filter((one) => one.event !== event)];

  test("are taken for it if they are", () => {
    expect(own.length).toBeGreaterThan(0);
    for (const { payload } of own) expect(mismatch(event, payload as never)).toBeNull();
  });

  test("are not if they are those of other events", () => {
    const mistaken = others.filter(
      ({ payload }) => SUBJECTS[event]?.every((key) => key in payload) && mismatch(event, payload as never) === null,
    );
    expect(mistaken.map((one) => [one.event, one.payload.action])).toEqual([]);
  });
});

test.each(["constructor", "toString", "__proto__"])(
  "an event called %s is one that the mirror does not follow",
  (event) => {
    expect(FOLLOWED_EVENTS.get(event)).toBeUndefined();
    expect(mismatch(event, {})).toBeNull();
    expect(reportedChangesOf(event, { action: "created" }, 7)).toEqual([]);
  },
);
