/**
 * What public clients send with a token of Tain's own, while upstream cannot be asked: what is answered is upstream's
 * answer, and each gap has an error.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../../src/json.ts";
import { isObject } from "../../src/json.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { clientDocuments } from "./all.ts";
import type { ClientDocument } from "./document.ts";
import { openWholeMirror, type WholeMirror } from "./whole-mirror.ts";

/** Answered in part. A document that is answered whole has no line here, and gets none again. */
const IN_PART: ReadonlySet<string> = new Set([
  "gh: issue view --json projectItems",
  "gh-dash: SearchPullRequests",
  "gh-dash: SearchIssues",
  "gh-dash: FetchPullRequest",
  "Renovate: repoInfoQuery",
  "Renovate: datasource tags",
  "release-please: pullRequestsSince",
  "semantic-release: getAssociatedPRs",
  "Backstage pull-requests-board: useGetPullRequestDetails",
  "DevLake: accounts",
  "policy-bot: comments and reviews",
  "policy-bot: commits",
  "Kodiak: GetEventInfo",
  "GitHub for Jira: getCommitsQueryWithChangedFiles",
  "GitHub for Jira: getCommitsQueryWithoutChangedFiles",
  "GitHub for Jira: getBranchesQueryWithChangedFiles",
  "GitHub for Jira: getBranchesQueryWithoutChangedFiles",
  "GitHub for Jira: getBranchesQueryWithoutCommits",
  "GitHub for Jira: getDeploymentsQueryWithStatuses",
  "MCP: issue_read enrichment",
  "MCP: lockdown repo access",
]);
/** Of these nothing is answered: `lacks.ts` says why of the one, and the other's only field is never null. */
const REFUSED: ReadonlySet<string> = new Set([
  "MCP: list_issues, the first try",
  "GitHub for Jira: UserOrganizationsQuery",
]);

/** Null without an error, as docs/decisions/0013-what-gh-asks.md says. */
const NULL_WITHOUT_ERROR = /^(reviewDecision|branchProtectionRule)$/;
/** Differences that are meant, or the simulator's alone. */
const MEANT: readonly RegExp[] = [
  // Classic projects have ended. The simulator makes one up.
  /\.projectCards\./,
  // The mirror has a part of an account's repositories, and its answer says so.
  /^viewer\.repositories\./,
  // REST names the owner of a head that this token of upstream's is not shown.
  /\.headRepositoryOwner: .*, not null$/,
  // The simulator does not know `review-requested:`.
  /^reviewRequested\./,
];
/** Each side's own. */
const OWN = /^(cursor|startCursor|endCursor|rateLimit)$/;

const reads = clientDocuments.filter(({ query }) => !query.startsWith("mutation"));
let at: WholeMirror;
const theirs = new Map<ClientDocument, Json>();
const sides = { whole: 0, part: 0, refused: 0 };

beforeAll(async () => {
  at = await openWholeMirror();
  for (const document of reads) theirs.set(document, (await at.ask(document, "upstream")).body.data);
  at.cutOff();
}, LONG_TEST_MS);
afterAll(async () => {
  printFigures("documents of own tokens", sides);
  await at?.[Symbol.asyncDispose]();
});

interface ShownError {
  message: string;
  path?: (string | number)[];
}

/** Where our answer says something else than upstream's, and no error says that it lacks it. */
function differences(
  ours: Json,
  upstreams: Json,
  path: readonly (string | number)[],
  gaps: readonly string[],
): string[] {
  const place = path.join(".");
  const key = String(path.at(-1));
  if (OWN.test(key)) return [];
  if (ours === null && upstreams !== null) {
    const isTold = gaps.some((gap) => gap === place || gap.startsWith(`${place}.`));
    return isTold || NULL_WITHOUT_ERROR.test(key) ? [] : [`${place} is null`];
  }
  if (Array.isArray(ours) && Array.isArray(upstreams) && ours.length === upstreams.length)
    return ours.flatMap((one, index) => differences(one, upstreams[index] ?? null, [...path, index], gaps));
  if (isObject(ours) && isObject(upstreams)) {
    const names = new Set([...Object.keys(ours), ...Object.keys(upstreams)]);
    return [...names].flatMap((name) =>
      differences(ours[name] ?? null, upstreams[name] ?? null, [...path, name], gaps),
    );
  }
  return ours === upstreams ? [] : [`${place}: ${JSON.stringify(ours)}, not ${JSON.stringify(upstreams)}`];
}

/** What the caller is told of each field that is missing. */
const TOLD = /not mirrored|has still to be read|Of this commit only its hash/;

describe.each(reads)("$name", (document) => {
  test("is answered, as far as it is held, as upstream answers it, and says what is not", async () => {
    const { body } = await at.ask(document);
    const errors: ShownError[] = body.errors ?? [];
    const isShown = body.data !== undefined && body.data !== null;
    const side = errors.length === 0 ? "whole" : isShown ? "part" : "refused";
    sides[side] += 1;
    const gaps = errors.map(({ path = [] }) => path.join("."));
    const found = isShown ? differences(body.data, theirs.get(document) ?? null, [], gaps) : [];
    expect(found.filter((one) => !MEANT.some((meant) => meant.test(one))).slice(0, 20)).toEqual([]);
    if (isShown) for (const { message } of errors) expect(message).toMatch(TOLD);
    expect(side).toBe(IN_PART.has(document.name) ? "part" : REFUSED.has(document.name) ? "refused" : "whole");
  });
});

test("forty-two are answered whole, and twenty-one in part", () => {
  expect(sides).toEqual({ whole: 42, part: 21, refused: 2 });
});
