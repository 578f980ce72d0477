import { z } from "zod";
import { numberOf, objectOf, rowsOf } from "../../../json.ts";
import {
  direction,
  label,
  login,
  moment,
  nextPage,
  number,
  paging,
  repository,
  repositoryPath,
  state,
  textBound,
} from "./inputs.ts";
import { Texts } from "./texts.ts";
import { type Tool, tool } from "./tool.ts";
import { commentView, foundIssueView, issueView } from "./views.ts";

const searchIssues = tool({
  name: "search_issues",
  title: "Search issues and pull requests",
  description:
    "Finds issues and pull requests by GitHub's search syntax: `repo:owner/name is:issue is:open label:bug crash`. Name repositories by repo: so that the mirror can answer. Texts are left out: get_issue and get_pull_request have them.",
  input: z.strictObject({
    query: z.string().min(1).max(1_024),
    sort: z.enum(["created", "updated", "comments"]).optional().describe("default: best match"),
    order: direction,
    ...paging,
  }),
  async run(call, { query: q, sort, order, ...page }) {
    const found = await call.get({ part: "issues", what: "this search" }, "/search/issues", {
      q,
      sort,
      order,
      ...page,
    });
    const { total_count, items } = objectOf(found.document);
    const fields = { total: numberOf(total_count), issues: rowsOf(items).map(foundIssueView) };
    return { fields, more: nextPage(found, page) };
  },
});

const listIssues = tool({
  name: "list_issues",
  title: "List a repository's issues",
  description:
    "Lists issues of a repository, newest first. As on GitHub, pull requests are among them (is_pull_request). Use `since` with sort=updated to see what changed. Texts are left out: get_issue has them.",
  input: z.strictObject({
    repository,
    state,
    labels: z.array(label).max(20).optional().describe("issues that have all of them"),
    assignee: z
      .union([login, z.literal("*")])
      .optional()
      .describe("a login, none, or * for any"),
    creator: login.optional(),
    mentioned: login.optional(),
    since: moment.optional().describe("updated at or after this moment, ISO 8601 in UTC"),
    sort: z.enum(["created", "updated", "comments"]).default("created"),
    direction,
    ...paging,
  }),
  async run(call, { repository: name, ...query }) {
    const of = { part: "issues", what: `the issues of ${name}` };
    const found = await call.get(of, repositoryPath(name, "issues"), query);
    return {
      fields: { issues: rowsOf(found.document).map((each) => issueView(each)) },
      more: nextPage(found, query),
    };
  },
});

const getIssue = tool({
  name: "get_issue",
  title: "Read an issue with its comments",
  description:
    "Reads one issue, its text, and a page of its comments, oldest first. For a pull request it has the conversation; get_pull_request has the rest.",
  input: z.strictObject({ repository, number, ...paging, ...textBound }),
  async run(call, { repository: name, number: of, max_text, ...page }) {
    const what = `issue ${of} of ${name}`;
    const texts = new Texts(max_text);
    const [issue, comments] = await Promise.all([
      call.get({ part: "issue", what }, repositoryPath(name, "issues", of)),
      call.get({ part: "comments", what }, repositoryPath(name, "issues", of, "comments"), page),
    ]);
    const fields = {
      issue: issueView(objectOf(issue.document), texts),
      comments: rowsOf(comments.document).map((each) => commentView(each, texts)),
    };
    return { fields, more: [...texts.more, ...nextPage(comments, page)] };
  },
});

export const ISSUE_TOOLS: readonly Tool[] = [searchIssues, listIssues, getIssue];
