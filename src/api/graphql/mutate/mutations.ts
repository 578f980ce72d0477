/** The mutations. Each is sent to upstream once; its result is shown from the mirror. */
import { type Fields, objectOf, textOf } from "../../../json.ts";
import { referenceId } from "../../../kinds/contract/placeholders.ts";
import { decodeId } from "../../dialect/node-id.ts";
import { writeCursor } from "../../dialect/paging.ts";
import * as comments from "../../writes/comment-writes.ts";
import * as issues from "../../writes/issue-writes.ts";
import * as pulls from "../../writes/pull-writes.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { rightFor } from "../resolve/fields.ts";
import { typedError } from "../run/errors.ts";
import type { FieldInfo } from "../run/plan.ts";
import { type Input, nodeOfKind, repositoryOfNode, resolved, type Sets, setsOf, writePlace } from "./input.ts";
import { type Done, inOurWords, mutated, performed, writerOf } from "./perform.ts";
import { updatePull } from "./update-pull.ts";

type Mutation<In = never> = (
  root: unknown,
  args: { input: In },
  call: GraphqlCall,
  info: Pick<FieldInfo, "fieldName">,
) => Promise<object>;

function mutation<In extends Input>(run: (call: GraphqlCall, input: In) => Promise<object>): Mutation<In> {
  return async (_root, { input }, call, { fieldName }) => {
    call.mutation = fieldName;
    return { clientMutationId: input.clientMutationId ?? null, ...(await run(call, input)) };
  };
}

export const mutationResolvers: Readonly<Record<string, Mutation>> = {
  createIssue: mutation<Sets & { repositoryId: string }>(async (call, { repositoryId, ...input }) => {
    const repository = await nodeOfKind(call, repositoryId, "Repository");
    const writer = writerOf(call, repository, "issues");
    const { milestone, ...wanted } = setsOf(input, await resolved(call, input));
    const body = JSON.stringify({ ...wanted, ...(milestone == null ? {} : { milestone }) });
    return {
      issue: await createdNode(
        call,
        repository,
        await performed(call, writer, issues.createIssue(writer.repository, body)),
      ),
    };
  }),
  updateIssue: mutation<Sets & { id: string }>(async (call, { id, ...input }) => {
    const issue = await nodeOfKind(call, id, "Issue");
    const wanted = setsOf(input, await resolved(call, input));
    return { actor: await viewer(call), issue: await editedIssue(call, issue, wanted) };
  }),
  closeIssue: mutation<Input & { issueId: string; stateReason?: string | null }>(
    async (call, { issueId, stateReason }) => {
      const state_reason = (stateReason ?? "COMPLETED").toLowerCase();
      return {
        issue: await editedIssue(call, await nodeOfKind(call, issueId, "Issue"), { state: "closed", state_reason }),
      };
    },
  ),
  reopenIssue: mutation<Input & { issueId: string }>(async (call, { issueId }) => ({
    issue: await editedIssue(call, await nodeOfKind(call, issueId, "Issue"), { state: "open" }),
  })),
  addComment: mutation<Input & { subjectId: string; body: string }>(async (call, { subjectId, body }) => {
    const subject = await nodeOfKind(call, subjectId, "Issue", "PullRequest");
    const { writer, place } = await writePlace(call, subject);
    const done = await performed(call, writer, comments.createComment(place, JSON.stringify({ body })));
    const node = await shownComment(call, subject.repositoryId, done);
    const id = Number(objectOf(done.answer).id);
    return { commentEdge: { cursor: writeCursor([String(id), id]), node }, subject: await again(call, subject) };
  }),
  updateIssueComment: mutation<Input & { id: string; body: string }>(async (call, { id, body }) => {
    const comment = await nodeOfKind(call, id, "IssueComment");
    const writer = writerOf(call, await repositoryOfNode(call, comment), await rightFor(call, comment));
    const write = comments.editComment(
      "issue_comment",
      writer.repository,
      Number(comment.rest.id),
      JSON.stringify({ body }),
    );
    return { issueComment: await shownComment(call, comment.repositoryId, await performed(call, writer, write)) };
  }),
  deleteIssueComment: mutation<Input & { id: string }>(async (call, { id }) => {
    const comment = await nodeOfKind(call, id, "IssueComment");
    const writer = writerOf(call, await repositoryOfNode(call, comment), await rightFor(call, comment));
    const commentId = Number(comment.rest.id);
    const write = await comments.deleteComment(writer.ctx, "issue_comment", writer.repository, commentId);
    await performed(call, writer, write);
    return {};
  }),
  createPullRequest: mutation<NewPull>(async (call, input) => {
    const repository = await nodeOfKind(call, input.repositoryId, "Repository");
    const writer = writerOf(call, repository, "pulls");
    const wanted: Fields = {
      title: input.title,
      ...(input.body == null ? {} : { body: input.body }),
      base: input.baseRefName,
      ...(await headOf(call, input)),
      draft: input.draft ?? false,
      maintainer_can_modify: input.maintainerCanModify ?? true,
    };
    const done = await performed(call, writer, pulls.createPull(writer.repository, JSON.stringify(wanted)));
    return { pullRequest: await createdNode(call, repository, done, "PullRequest") };
  }),
  updatePullRequest: mutation<Sets & { pullRequestId: string }>(async (call, input) => {
    const pull = await nodeOfKind(call, input.pullRequestId, "PullRequest");
    const done = await updatePull(call, pull, input, await writePlace(call, pull), await resolved(call, input));
    return { actor: await viewer(call), pullRequest: await again(call, pull, done) };
  }),
  closePullRequest: mutation<Input & { pullRequestId: string }>(async (call, { pullRequestId }) => ({
    pullRequest: await editedPull(call, await nodeOfKind(call, pullRequestId, "PullRequest"), { state: "closed" }),
  })),
  reopenPullRequest: mutation<Input & { pullRequestId: string }>(async (call, { pullRequestId }) => ({
    pullRequest: await editedPull(call, await nodeOfKind(call, pullRequestId, "PullRequest"), { state: "open" }),
  })),
  addLabelsToLabelable: mutation<Input & { labelableId: string; labelIds: string[] }>(
    async (call, { labelableId, labelIds }) => {
      const labelable = await nodeOfKind(call, labelableId, "Issue", "PullRequest");
      const { writer, place } = await writePlace(call, labelable);
      const { labels } = setsOf({ labelIds }, await resolved(call, { labelIds }));
      const body = JSON.stringify({ labels });
      await performed(call, writer, issues.changeLabels(place, { method: "POST", body }));
      return { labelable: await again(call, labelable) };
    },
  ),
  removeLabelsFromLabelable: mutation<Input & { labelableId: string; labelIds: string[] }>(removeLabels),
  addAssigneesToAssignable: mutation<Input & { assignableId: string; assigneeIds: string[] }>(
    async (call, { assignableId, assigneeIds }) => {
      const assignable = await nodeOfKind(call, assignableId, "Issue", "PullRequest");
      const { writer, place } = await writePlace(call, assignable);
      const { assignees } = setsOf({ assigneeIds }, await resolved(call, { assigneeIds }));
      await performed(call, writer, issues.changeAssignees(place, "POST", JSON.stringify({ assignees })));
      return { assignable: await again(call, assignable) };
    },
  ),
};

interface NewPull extends Input {
  repositoryId: string;
  baseRefName: string;
  headRefName: string;
  headRepositoryId?: string | null;
  title: string;
  body?: string | null;
  draft?: boolean | null;
  maintainerCanModify?: boolean | null;
}

/** REST takes labels off one by one, and refuses those that are not there; the mutation takes them off at once. */
async function removeLabels(
  call: GraphqlCall,
  { labelableId, labelIds }: { labelableId: string; labelIds: string[] },
): Promise<object> {
  const labelable = await nodeOfKind(call, labelableId, "Issue", "PullRequest");
  const { writer, place } = await writePlace(call, labelable);
  const { labels = [] } = await resolved(call, { labelIds });
  const gone = labels.map(({ rest: { id } }) => id);
  const document = `mutation($input: RemoveLabelsFromLabelableInput!) {
    done: removeLabelsFromLabelable(input: $input) { labelable { ... on Issue { updatedAt } ... on PullRequest { updatedAt } } }
  }`;
  const input = {
    labelableId: String(labelable.rest.node_id),
    labelIds: labels.map(({ rest }) => String(rest.node_id)),
  };
  await mutated(
    call,
    writer,
    { document, input, path: `/repositories/${place.id}/issues/${place.number}` },
    {
      about: issues.sides(place),
      reads: () => issues.sides(place).map(({ kind }) => issues.readOf(kind, place)),
      says: async ({ answer }, find) => {
        const before = (await find("issue", place.number)) ?? (await find("pull_request", place.number));
        const carried = before?.fields.labels;
        const left = (Array.isArray(carried) ? carried : []).filter((label) => !gone.includes(referenceId(label)));
        const movedAt = textOf(objectOf(objectOf(answer).labelable).updatedAt);
        return issues.saysLabels(place, find, left, { movedAt });
      },
    },
  );
  return { labelable: await again(call, labelable) };
}

async function editedIssue(call: GraphqlCall, issue: Node, wanted: Fields): Promise<Node> {
  const { writer, place } = await writePlace(call, issue);
  return again(call, issue, await performed(call, writer, issues.editIssue(place, JSON.stringify(wanted))));
}

async function editedPull(call: GraphqlCall, pull: Node, wanted: Fields): Promise<Node> {
  const { writer, place } = await writePlace(call, pull);
  return again(call, pull, await performed(call, writer, pulls.editPull(place, JSON.stringify(wanted))));
}

/** The pull request's head: `owner:branch`, and the fork's name if one was given. REST finds a fork by both. */
async function headOf(
  call: GraphqlCall,
  { headRefName, headRepositoryId }: Pick<NewPull, "headRefName" | "headRepositoryId">,
): Promise<Fields> {
  if (headRepositoryId == null) return { head: headRefName };
  const [owner = "", name = ""] = (await headRepository(call, headRepositoryId)).split("/");
  return { head: `${owner}:${headRefName.split(":").at(-1)}`, head_repo: name };
}

/** The fork's full name. Few forks are mirrored, so a public one is looked up at upstream. */
async function headRepository(call: GraphqlCall, globalId: string): Promise<string> {
  const decoded = decodeId(globalId);
  const unknown = () => typedError("NOT_FOUND", `Could not resolve to a node with the global id of '${globalId}'`);
  if (decoded?.type !== "Repository") throw unknown();
  const mirrored = await call.repository(decoded.id);
  if (mirrored) call.named(globalId, mirrored);
  if (mirrored) return String(mirrored.rest.full_name);
  const path = `/repositories/${decoded.id}`;
  const answer = await inOurWords(() => call.ctx.upstream.get(call.caller, path));
  const fork = answer.kind === "ok" ? objectOf(answer.body) : null;
  if (fork?.private !== false) throw unknown();
  return String(fork.full_name);
}

function viewer(call: GraphqlCall): Promise<Node | null> {
  return call.user(call.caller.userId);
}

/** The new resource, from the mirror. A resource that could not be stored is shown as upstream answered it. */
async function createdNode(
  call: GraphqlCall,
  { repositoryId }: Node,
  { answer, isStored }: Done,
  kind: "Issue" | "PullRequest" = "Issue",
): Promise<Node> {
  const rest = objectOf(answer);
  const node = isStored ? await call.numbered(kind, repositoryId, Number(rest.number)) : null;
  return node ?? { kind, repositoryId, rest };
}

async function shownComment(call: GraphqlCall, repositoryId: number, { answer, isStored }: Done): Promise<Node> {
  const rest = objectOf(answer);
  const node = isStored ? await call.byId("IssueComment", Number(rest.id)) : null;
  return node ?? { kind: "IssueComment", repositoryId, rest };
}

/** The changed resource, as the mirror has it now. */
async function again(call: GraphqlCall, subject: Node, done?: Done): Promise<Node> {
  const rest = objectOf(done?.answer);
  if (done && !done.isStored && rest.number !== undefined) return { ...subject, rest: { ...subject.rest, ...rest } };
  const kind = subject.kind === "PullRequest" ? "PullRequest" : "Issue";
  return (await call.numbered(kind, subject.repositoryId, Number(subject.rest.number))) ?? subject;
}
