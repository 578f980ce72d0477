import { type Fields, isObject, type Json, objectOf, textOf } from "../../../json.ts";
import { strip } from "../../../mirror/store/template.ts";
import * as issues from "../../writes/issue-writes.ts";
import * as pulls from "../../writes/pull-writes.ts";
import type { Find, Implied, Sayings, Written } from "../../writes/write.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { type Placed, type Resolved, type Sets, setsOf } from "./input.ts";
import { type Done, mutated, performed } from "./perform.ts";

interface PullSets extends Sets {
  baseRefName?: string | null;
  maintainerCanModify?: boolean | null;
}

const ISSUES_OWN: readonly string[] = ["labels", "assignees", "milestone"];

/**
 * Updates a pull request. REST changes its own side or the issue's side, each by a request. A change of both sides is
 * sent as one mutation, so that it never happens by halves.
 */
export async function updatePull(
  call: GraphqlCall,
  pull: Node,
  input: PullSets,
  { writer, place }: Placed,
  resolved: Resolved,
): Promise<Done> {
  const wanted = setsOf(input, resolved);
  const own: Fields = {
    ...(input.baseRefName == null ? {} : { base: input.baseRefName }),
    ...(input.maintainerCanModify == null ? {} : { maintainer_can_modify: input.maintainerCanModify }),
  };
  const isOfIssue = ISSUES_OWN.some((name) => name in wanted);
  if (!isOfIssue) return performed(call, writer, pulls.editPull(place, JSON.stringify({ ...wanted, ...own })));
  if (Object.keys(own).length === 0) {
    // The answer to this write shows the issue's side.
    const { isStored } = await performed(call, writer, issues.editIssue(place, JSON.stringify(wanted)));
    return { answer: null, isStored };
  }
  return updateBoth(call, pull, input, { writer, place }, resolved);
}

const UPDATE = `mutation($input: UpdatePullRequestInput!) {
  done: updatePullRequest(input: $input) { pullRequest { updatedAt closedAt baseRefOid } }
}`;

async function updateBoth(
  call: GraphqlCall,
  pull: Node,
  input: PullSets,
  { writer, place }: Placed,
  resolved: Resolved,
): Promise<Done> {
  const ids = (nodes: Node[]) => nodes.map(({ rest }) => String(rest.node_id));
  const { labels, assignees, milestone } = resolved;
  const { title, body, state, baseRefName, maintainerCanModify } = input;
  const given = givenFields({ title, body, state, baseRefName, maintainerCanModify });
  const sent: Fields = {
    pullRequestId: String(pull.rest.node_id),
    ...given,
    ...(labels ? { labelIds: ids(labels) } : {}),
    ...(assignees ? { assigneeIds: ids(assignees) } : {}),
    ...(milestone === undefined ? {} : { milestoneId: milestone ? String(milestone.rest.node_id) : null }),
  };
  const done = await mutated(
    call,
    writer,
    { document: UPDATE, input: sent, path: `/repositories/${place.id}/pulls/${place.number}` },
    {
      about: issues.sides(place),
      reads: () => issues.sides(place).map(({ kind }) => issues.readOf(kind, place)),
      says: (written, find) => saysUpdate(call.api, input, resolved, { written, find, number: place.number }),
    },
  );
  return { ...done, answer: null };
}

/**
 * What the update changes. The input names the changed fields. The payload adds the times and the new base's commit.
 */
async function saysUpdate(
  api: string,
  input: PullSets,
  resolved: Resolved,
  { written, find, number }: { written: Written; find: Find; number: number },
): Promise<Sayings> {
  const { updatedAt, closedAt, baseRefOid } = objectOf(objectOf(written.answer).pullRequest);
  const { repository } = written.at;
  const home = { api, fullName: repository?.fullName, htmlUrl: repository?.htmlUrl ?? undefined };
  const embedded = strip(embeddedOf(resolved), home);
  const { title, body, state } = setsOf(input, {});
  const common: Fields = {
    ...strip(givenFields({ title, body, state }), home).fields,
    ...(state === undefined ? {} : { closed_at: closedAt ?? null }),
    ...embedded.fields,
  };
  const base = (await find("pull_request", number))?.fields.base;
  const own: Fields = {
    ...(input.baseRefName != null && isObject(base)
      ? {
          base: { ...base, ref: input.baseRefName, label: labelOf(base, input.baseRefName), sha: baseRefOid ?? null },
        }
      : {}),
    ...(input.maintainerCanModify == null ? {} : { maintainer_can_modify: input.maintainerCanModify }),
  };
  const movedAt = textOf(updatedAt);
  const implied: Implied[] = [
    { kind: "issue", key: number, fields: common, movedAt },
    { kind: "pull_request", key: number, fields: { ...common, ...own }, movedAt },
  ];
  return { shown: [{ seen: [], shapes: embedded.shapes }], implied };
}

/** The given fields, without those that are absent or null. */
function givenFields(given: Readonly<Record<string, Json | undefined>>): Fields {
  const fields: Fields = {};
  for (const [key, value] of Object.entries(given)) if (value != null) fields[key] = value;
  return fields;
}

function embeddedOf({ labels, assignees, milestone }: Resolved): Fields {
  const rests = (nodes: Node[]): Json[] => nodes.map(({ rest }) => rest);
  return {
    ...(labels ? { labels: rests(labels) } : {}),
    ...(assignees ? { assignee: assignees[0]?.rest ?? null, assignees: rests(assignees) } : {}),
    ...(milestone === undefined ? {} : { milestone: milestone?.rest ?? null }),
  };
}

/** The branch's label, `owner:branch`. */
function labelOf({ label }: Fields, ref: string): Json {
  return typeof label === "string" ? `${label.split(":", 1)[0]}:${ref}` : null;
}
