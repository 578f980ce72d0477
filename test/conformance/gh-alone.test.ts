/** What `gh` reads with a token of Tain's own, while upstream cannot be asked. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWholeMirror, type WholeMirror } from "../documents/whole-mirror.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { type Gh, hasGh, openGh } from "./gh-runs.ts";

let at: WholeMirror;
let gh: Gh;
const resources = new AsyncDisposableStack();
const counts = { answered: 0, refused: 0 };

beforeAll(async () => {
  if (!hasGh) return;
  at = resources.use(await openWholeMirror());
  gh = await openGh({ ctx: at.world.ctx, token: at.world.token }, resources);
  at.cutOff();
}, LONG_TEST_MS);
afterAll(async () => {
  printFigures("gh with own tokens", counts);
  await resources.disposeAsync();
});

/** The base of the pull request is not protected, so that is an answer. It ends with 1 all the same. */
const NONE_REQUIRED = /^no required checks reported/;
/** The files of a commit, jobs of older runs, logs, artifacts and files of the repository are read when they are asked for. */
const AWAY = /HTTP 502: Upstream had to be asked for this/;

/**
 * Commands that read of a repository. Words in capitals stand for what is there. A pattern: the mirror cannot answer
 * that, and this is what `gh` prints. A command that is answered gets no pattern again.
 */
const READS: Readonly<Record<string, RegExp | null>> = {
  "issue list": null,
  "issue list --search is:open": null,
  "issue status": null,
  "issue view ISSUE": null,
  "issue view ISSUE --comments": null,
  "pr list": null,
  "pr list --search is:open": null,
  "pr status": null,
  "pr view PULL": null,
  "pr view PULL --comments": null,
  "pr checks PULL": null,
  "pr checks PULL --required": null,
  "pr diff PULL": AWAY,
  "pr diff PULL --name-only": AWAY,
  "run list": null,
  "run view RUN": AWAY,
  "run view RUN --json jobs": AWAY,
  "run view RUN --log": AWAY,
  "run watch RUN": null,
  "run download RUN": AWAY,
  "workflow list": null,
  "workflow view WORKFLOW": null,
  "workflow view WORKFLOW --yaml": AWAY,
  "release list": null,
  "release view": null,
  "release view TAG": null,
  "repo view": AWAY,
  "repo list OWNER": null,
  "search issues": null,
  "search prs": null,
  "search repos --owner OWNER": null,
  "search commits fix": /HTTP 403: Forbidden: this mirror does not serve GET on this route/,
  "label list": null,
  status: null,
  "api user": null,
};

/** A command's words, with what they stand for and the repository where the command takes one. */
function wordsOf(command: string): string[] {
  const { owner, name, issue, pull } = at.at;
  const { world } = at.world.simulator;
  const repository = world.repositoryByName(owner, name)?.repository;
  if (!repository) throw new Error("The mirrored repository is not there");
  const { workflowRuns, workflows, releases } = world.code.of(repository);
  const values: Readonly<Record<string, string | undefined>> = {
    OWNER: owner,
    ISSUE: String(issue),
    PULL: String(pull),
    RUN: String([...workflowRuns.values()].find(({ status }) => status === "completed")?.id),
    WORKFLOW: String([...workflows.values()][0]?.id),
    TAG: [...releases.values()].find(({ draft }) => !draft)?.tagName,
  };
  const words = command.split(" ").map((word) => values[word] ?? word);
  if (/^(repo list|search repos|status|api)/.test(command)) return words;
  if (command === "repo view") return [...words, at.repo];
  return [...words, command.startsWith("search") ? "--repo" : "-R", at.repo];
}

describe.skipIf(!hasGh)("gh (skipped where it is not installed: apt-get install gh)", () => {
  test.each(Object.entries(READS))("%s", async (command, refusal) => {
    const { status, out, err: printed } = await gh(wordsOf(command));
    const saysNone = NONE_REQUIRED.test(printed);
    const err = saysNone ? "" : printed;
    // `pr checks` ends with 1 where a check has failed, and with 8 where one is pending.
    const isAnswered = status === 0 || (command.startsWith("pr checks") && err === "" && (saysNone || out !== ""));
    counts[isAnswered ? "answered" : "refused"] += 1;
    expect([isAnswered, err], out).toEqual([refusal === null, refusal ? expect.stringMatching(refusal) : ""]);
  });

  test("twenty-six of thirty-five are answered", () => {
    expect(counts).toEqual({ answered: 26, refused: 9 });
  });
});
