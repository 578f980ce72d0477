import { expect, test } from "vitest";
import { accessIn, type Caller, kindsOf, type Permission } from "../../src/api/callers/permissions.ts";
import { EventReader } from "../../src/api/feed/shown-payload.ts";
import type { LoggedEvent } from "../../src/events/log-reads.ts";
import type { Fields } from "../../src/json.ts";
import type { Right } from "../../src/kinds/contract/rights.ts";
import { resources } from "../../src/kinds/registry.ts";
import type { ShownRepository } from "../../src/mirror/read/repositories.ts";

const REPOSITORY = 7;

/** A token of Tain's own for these permissions in the private repository. */
function readerOf(...permissions: Permission[]): EventReader {
  const kinds = kindsOf(permissions, false);
  const payer = { kind: "user", quotaName: "reader", hourlyLimit: null, class: "reader", scopes: null } as const;
  const token = { id: "reader", userId: 1, kinds, repositories: [REPOSITORY], access: accessIn([REPOSITORY], kinds) };
  const caller: Caller = { ...payer, userId: 1, by: { of: "own", token: { ...token, payer } } };
  return new EventReader(caller);
}

const repository = { id: REPOSITORY, fullName: "octo/hidden", isPrivate: true } as ShownRepository;

/** What is shown of an event's payload; null: the reader does not hear of the event. */
function shown(reader: EventReader, event: string, payload: Fields): Fields | null {
  const logged = { id: 1, guid: "g", event, action: "created", repositoryId: REPOSITORY } as LoggedEvent;
  if (!reader.mayHear(logged, repository)) return null;
  const text = JSON.stringify(payload);
  const present = new Map();
  return JSON.parse(reader.shown(logged, { text, payload, present }, repository) ?? "null");
}

/** The keys of documents, with the right to each kind. Which kind a comment is of, its event says. */
const RIGHTS = new Map<string, Right | null>(
  resources.flatMap(({ events, right }) => (events && events.in !== "comment" ? [[events.in, right] as const] : [])),
);

/** The right of the permission that a document takes. */
const PERMITTED: Readonly<Partial<Record<Right, Permission>>> = {
  issues: "issues:read",
  "issues or pulls": "issues:read",
  pulls: "pull_requests:read",
  checks: "checks:read",
  statuses: "statuses:read",
  contents: "contents:read",
  deployments: "deployments:read",
  actions: "actions:read",
};

// Every kind's document in every event: whichever payload shows it beside its own today or tomorrow.
const payload = Object.fromEntries([...RIGHTS.keys()].map((key) => [key, { id: 1, number: 1, draft: false }]));

test.each(resources.flatMap(({ events }) => events?.event ?? []))(
  "in an event %s, a reader is shown the documents to whose kinds they have the right, and no other",
  (event) => {
    const permissions = [...new Set(Object.values(PERMITTED))];
    const heard = permissions.flatMap((permission) => {
      const told = shown(readerOf(permission), event, payload);
      if (told === null) return [];
      const expected = [...RIGHTS].flatMap(([key, right]) =>
        right === null || right === "metadata" || PERMITTED[right] === permission ? [key] : [],
      );
      // Labels and milestones take either of two.
      const either = permission === "pull_requests:read" ? ["issue", "label", "milestone"] : [];
      expect({ permission, keys: Object.keys(told).sort() }).toEqual({
        permission,
        keys: [...new Set([...expected, ...either])].sort(),
      });
      return [permission];
    });
    expect(heard.length).toBeGreaterThan(0);
  },
);

test("who reads a commit's statuses alone is not shown the commit, nor the branches that it is on", () => {
  const told = { sha: "abc", state: "success", commit: { message: "secret" }, branches: [{ name: "secret" }] };
  expect(shown(readerOf("statuses:read"), "status", told)).toEqual({ sha: "abc", state: "success" });
  expect(shown(readerOf("statuses:read", "contents:read"), "status", told)).toEqual(told);
});

test("a comment on a commit is shown with the right to code alone, a comment on an issue with that to issues", () => {
  const told = { comment: { id: 3, path: "a.ts" }, issue: { id: 1, number: 1 } };
  expect(shown(readerOf("contents:read"), "commit_comment", told)).toEqual({ comment: told.comment });
  expect(shown(readerOf("issues:read"), "issue_comment", told)).toEqual(told);
  expect(shown(readerOf("pull_requests:read"), "issue_comment", told)).toBeNull();
});
