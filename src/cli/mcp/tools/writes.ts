import { z } from "zod";
import { objectOf } from "../../../json.ts";
import { ToolFault } from "../api/faults.ts";
import { body, label, login, number, repository, repositoryPath, title } from "./inputs.ts";
import { LONGEST_TEXT, Texts } from "./texts.ts";
import { type Tool, tool } from "./tool.ts";
import { commentView, issueView } from "./views.ts";

const labels = z.array(label).max(100);
const assignees = z.array(login).max(10);
const milestone = number.nullable().describe("its number; null: none");

const createIssue = tool({
  name: "create_issue",
  title: "Open an issue",
  description: "Opens an issue at GitHub, once, in the name of the token's user. The mirror shows it at once.",
  input: z.strictObject({
    repository,
    title,
    body: body.optional(),
    labels: labels.optional(),
    assignees: assignees.optional(),
    milestone: milestone.optional(),
  }),
  isWrite: true,
  async run(call, { repository: name, ...issue }) {
    const of = { part: "issue", what: `the issues of ${name}` };
    const written = await call.write(of, "POST", repositoryPath(name, "issues"), issue);
    return { fields: { issue: issueView(objectOf(written)) } };
  },
});

const addComment = tool({
  name: "add_comment",
  title: "Comment on an issue or pull request",
  description: "Writes a comment at GitHub, once, in the name of the token's user. The mirror shows it at once.",
  input: z.strictObject({ repository, number, body: body.min(1) }),
  isWrite: true,
  async run(call, { repository: name, number: of, body: text }) {
    const asked = { part: "comment", what: `issue ${of} of ${name}` };
    const written = await call.write(asked, "POST", repositoryPath(name, "issues", of, "comments"), { body: text });
    return { fields: { comment: commentView(objectOf(written), new Texts(LONGEST_TEXT)) } };
  },
});

const updateIssue = tool({
  name: "update_issue",
  title: "Change an issue or pull request",
  description:
    "Changes what is given of an issue or pull request, and leaves the rest. `labels` and `assignees` replace all that were there: read the issue first.",
  input: z.strictObject({
    repository,
    number,
    title: title.optional(),
    body: body.optional(),
    state: z.enum(["open", "closed"]).optional(),
    state_reason: z.enum(["completed", "not_planned", "duplicate", "reopened"]).optional(),
    labels: labels.optional(),
    assignees: assignees.optional(),
    milestone: milestone.optional(),
  }),
  isWrite: true,
  async run(call, { repository: name, number: of, ...changes }) {
    if (Object.keys(changes).length === 0) throw new ToolFault("invalid", "Nothing is to be changed: give what is");
    const asked = { part: "issue", what: `issue ${of} of ${name}` };
    const written = await call.write(asked, "PATCH", repositoryPath(name, "issues", of), changes);
    return { fields: { issue: issueView(objectOf(written), new Texts(LONGEST_TEXT)) } };
  },
});

export const WRITE_TOOLS: readonly Tool[] = [createIssue, addComment, updateIssue];
