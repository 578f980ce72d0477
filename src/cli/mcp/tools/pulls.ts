import { z } from "zod";
import { type Fields, objectOf, rowsOf, textOf } from "../../../json.ts";
import type { ListAnswer, MirrorCall } from "../api/call.ts";
import { ToolFault } from "../api/faults.ts";
import { direction, nextPage, number, paging, repository, repositoryPath, state, textBound } from "./inputs.ts";
import { Texts } from "./texts.ts";
import { type Tool, tool } from "./tool.ts";
import * as views from "./views.ts";

const listPulls = tool({
  name: "list_pull_requests",
  title: "List a repository's pull requests",
  description: "Lists pull requests of a repository, newest first. Texts are left out: get_pull_request has them.",
  input: z.strictObject({
    repository,
    state,
    head: z.string().min(1).max(356).optional().describe("owner:branch that they come from"),
    base: z.string().min(1).max(255).optional().describe("branch that they go to"),
    sort: z.enum(["created", "updated"]).default("created"),
    direction,
    ...paging,
  }),
  async run(call, { repository: name, ...query }) {
    const of = { part: "pull_requests", what: `the pull requests of ${name}` };
    const found = await call.get(of, repositoryPath(name, "pulls"), query);
    const pulls = rowsOf(found.document).map((each) => views.pullView(each));
    return { fields: { pull_requests: pulls }, more: nextPage(found, query) };
  },
});

/** The lists that belong to a pull request: their paths, and how their rows are shown. */
const LISTS = {
  comments: { below: (pull: number) => ["issues", pull, "comments"], view: views.commentView },
  reviews: { below: (pull: number) => ["pulls", pull, "reviews"], view: views.reviewView },
  review_comments: { below: (pull: number) => ["pulls", pull, "comments"], view: views.reviewCommentView },
  commits: { below: (pull: number) => ["pulls", pull, "commits"], view: views.commitView },
  files: { below: (pull: number) => ["pulls", pull, "files"], view: views.fileView },
} as const;
const LIST_NAMES = ["comments", "reviews", "review_comments", "commits", "files"] as const;

const getPull = tool({
  name: "get_pull_request",
  title: "Read a pull request with its reviews",
  description:
    "Reads one pull request, its text, and what `include` names. The mirror always has comments, reviews and review_comments. It asks GitHub for files, commits and checks that it does not keep: `freshness.forwarded` names those.",
  input: z.strictObject({
    repository,
    number,
    include: z
      .array(z.enum([...LIST_NAMES, "checks"]))
      .max(6)
      .default(["comments", "reviews", "review_comments"]),
    ...paging,
    ...textBound,
  }),
  async run(call, { repository: name, number: of, include, max_text, ...page }) {
    const what = `pull request ${of} of ${name}`;
    const texts = new Texts(max_text);
    const { document } = await call.get({ part: "pull_request", what }, repositoryPath(name, "pulls", of));
    const pull = objectOf(document);
    const fields: Fields = { pull_request: views.pullView(pull, texts) };
    const more: string[] = [];
    const asked = LIST_NAMES.filter((list) => include.includes(list));
    const lists = await Promise.all(
      asked.map(async (list) => {
        const path = repositoryPath(name, ...LISTS[list].below(of));
        return await unlessWithheld(() => call.get({ part: list, what: `${list} of ${what}` }, path, page));
      }),
    );
    for (const [at, list] of asked.entries()) {
      const found = lists[at];
      if (!found) continue;
      if ("withheld" in found) more.push(`${list} are not shown: ${found.withheld}`);
      else {
        fields[list] = rowsOf(found.document).map((each) => LISTS[list].view(each, texts));
        more.push(...nextPage(found, page).map((hint) => `${list}: ${hint}`));
      }
    }
    const sha = textOf(objectOf(pull.head).sha);
    if (include.includes("checks") && sha !== null) {
      const found = await unlessWithheld(() => checksOf(call, name, sha));
      if ("withheld" in found) more.push(`checks are not shown: ${found.withheld}`);
      else fields.checks = found;
    }
    return { fields, more: [...texts.more, ...more] };
  },
});

async function checksOf(call: MirrorCall, name: string, sha: string): Promise<Fields> {
  const what = `checks of ${sha} in ${name}`;
  const path = repositoryPath(name, "commits", sha);
  const [runs, status] = await Promise.all([
    call.get({ part: "checks", what }, `${path}/check-runs`, { per_page: 100 }),
    call.get({ part: "statuses", what }, `${path}/status`, { per_page: 100 }),
  ]);
  const { total_count, check_runs } = objectOf(runs.document);
  return {
    total: total_count ?? null,
    runs: rowsOf(check_runs).map(views.checkRunView),
    state: textOf(objectOf(status.document).state),
    statuses: rowsOf(objectOf(status.document).statuses).map(views.statusView),
  };
}

/** A part that this caller is not shown takes nothing from the rest. @throws ToolFault of another kind */
async function unlessWithheld<Found extends ListAnswer | Fields>(
  ask: () => Promise<Found>,
): Promise<Found | { withheld: string }> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof ToolFault) || !["forbidden", "not_found", "upstream_away"].includes(error.kind)) throw error;
    return { withheld: error.message };
  }
}

const listCommits = tool({
  name: "list_commits",
  title: "List a pull request's commits",
  description:
    "Lists the commits of a pull request, oldest first. The mirror asks GitHub for those that it does not keep.",
  input: z.strictObject({ repository, pull_request: number, ...paging, ...textBound }),
  async run(call, { repository: name, pull_request: of, max_text, ...page }) {
    const texts = new Texts(max_text);
    const asked = { part: "commits", what: `commits of pull request ${of} of ${name}` };
    const found = await call.get(asked, repositoryPath(name, "pulls", of, "commits"), page);
    const commits = rowsOf(found.document).map((each) => views.commitView(each, texts));
    return { fields: { commits }, more: [...texts.more, ...nextPage(found, page)] };
  },
});

export const PULL_TOOLS: readonly Tool[] = [listPulls, getPull, listCommits];
