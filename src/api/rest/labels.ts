import { findLabel, findLabels } from "../../mirror/find-labels.ts";
import { findMilestone, findMilestones } from "../../mirror/find-milestones.ts";
import { type Answer, ok, type RepositoryCall } from "../call.ts";
import { notFound } from "../fault.ts";
import { choice, direction } from "../query.ts";
import { showOne } from "../view.ts";
import { askedPage, numberedPage, smallNumberParam } from "./page.ts";

export async function listLabels(call: RepositoryCall): Promise<Answer> {
  const { id } = call.repository;
  const { rows, total } = await findLabels(call.ctx.db, id, askedPage(call.query));
  return numberedPage(
    call,
    rows.map(({ document }) => ({ repositoryId: id, document })),
    total,
  );
}

export async function getLabel(call: RepositoryCall): Promise<Answer> {
  const { id } = call.repository;
  const label = await findLabel(call.ctx.db, id, call.params.name ?? "");
  if (!label) throw notFound();
  return ok(await showOne(call, { repositoryId: id, document: label.document }));
}

export async function listMilestones(call: RepositoryCall): Promise<Answer> {
  const { id } = call.repository;
  const { rows, total } = await findMilestones(call.ctx.db, id, {
    state: choice(call.query, "state", "Milestone", ["open", "closed", "all"]),
    sort: choice(call.query, "sort", "Milestone", ["due_on", "completeness"]),
    direction: direction(call.query, "Milestone") ?? "asc",
    ...askedPage(call.query),
  });
  return numberedPage(
    call,
    rows.map(({ document }) => ({ repositoryId: id, document })),
    total,
  );
}

export async function getMilestone(call: RepositoryCall): Promise<Answer> {
  const { id } = call.repository;
  const number = smallNumberParam(call.params.number);
  const milestone = number === null ? null : await findMilestone(call.ctx.db, id, number);
  if (!milestone) throw notFound();
  return ok(await showOne(call, { repositoryId: id, document: milestone.document }), {
    lastModified: milestone.updatedAt,
  });
}
