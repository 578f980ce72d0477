import { findLabel, findLabels } from "../../mirror/read/labels.ts";
import { findMilestone, findMilestones, type MilestoneRow } from "../../mirror/read/milestones.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { showOne } from "../call/view.ts";
import { notFound } from "../dialect/fault.ts";
import { choice, sentDirection } from "../dialect/protocol.ts";
import { askedPage, numberedPage, pageDb, smallNumberParam } from "./page.ts";

export async function listLabels(call: RepositoryCall): Promise<Answer> {
  const { id } = call.repository;
  const { rows, total } = await findLabels(pageDb(call), id, askedPage(call.query));
  const documents = rows.map(({ document }) => ({ repositoryId: id, document }));
  return numberedPage(call, documents, total);
}

/** The labels of the issues and pull requests in a milestone. */
export async function listMilestoneLabels(call: RepositoryCall): Promise<Answer> {
  const { id } = call.repository;
  const milestone = await requireMilestone(call);
  const { rows, total } = await findLabels(pageDb(call), id, { ...askedPage(call.query), milestoneId: milestone.id });
  const documents = rows.map(({ document }) => ({ repositoryId: id, document }));
  return numberedPage(call, documents, total);
}

export async function getLabel(call: RepositoryCall): Promise<Answer> {
  const { id } = call.repository;
  const label = await findLabel(call.ctx.db, id, call.params.name ?? "");
  if (!label) throw notFound();
  return ok(await showOne(call, { repositoryId: id, document: label.document }), { lastModified: label.changedAt });
}

export async function listMilestones(call: RepositoryCall): Promise<Answer> {
  const { id } = call.repository;
  const { rows, total } = await findMilestones(pageDb(call), id, {
    state: choice(call.query, "state", ["open", "closed", "all"]),
    sort: choice(call.query, "sort", ["due_on", "completeness"]),
    direction: sentDirection(call.query, "asc") ?? "asc",
    ...askedPage(call.query),
  });
  const documents = rows.map(({ document }) => ({ repositoryId: id, document }));
  return numberedPage(call, documents, total);
}

export async function getMilestone(call: RepositoryCall): Promise<Answer> {
  const { document, updatedAt } = await requireMilestone(call);
  return ok(await showOne(call, { repositoryId: call.repository.id, document }), { lastModified: updatedAt });
}

/** The milestone that is asked for. @throws ApiFault 404 */
async function requireMilestone({ ctx, repository, params }: RepositoryCall): Promise<MilestoneRow> {
  const number = smallNumberParam(params.number);
  const milestone = number === null ? null : await findMilestone(ctx.db, repository.id, number);
  if (!milestone) throw notFound();
  return milestone;
}
