import { type Fields, parseStored } from "../../json.ts";
import { isOfSimpleUser } from "../../kinds/user/kind.ts";
import { findHeldPeople } from "../../mirror/read/people.ts";
import { findAssignees } from "../../mirror/read/users.ts";
import { listOfRepository } from "../../mirror/store/people.ts";
import type { Answer, RepositoryCall } from "../call/call.ts";
import { accessLevelOf, learnPublicRights, mayBeForwarded } from "../callers/permissions.ts";
import { notFound, notHeld } from "../dialect/fault.ts";
import { askedPage, numberedPage, pageDb } from "./page.ts";
import { checkListed, listedPage } from "./people.ts";

/** People who can be assigned: upstream's list where it is mirrored, or else as far as the mirror knows. */
export async function listAssignees(call: RepositoryCall): Promise<Answer> {
  if (await isListShown(call)) return await listedPage(call, listOfRepository(call.repository.id, "assignees"));
  const { rows, total } = await findAssignees(pageDb(call), call.repository.id, askedPage(call.query));
  const documents = rows.map(({ document }) => ({ repositoryId: 0, document: embedded(document) }));
  return numberedPage(call, documents, total);
}

/** 204 when the person can be assigned, 404 when not. */
export async function checkAssignee(call: RepositoryCall): Promise<Answer> {
  const login = call.params.assignee ?? "";
  if (await isListShown(call)) return await checkListed(call, listOfRepository(call.repository.id, "assignees"), login);
  const { total } = await findAssignees(call.ctx.db, call.repository.id, { login, limit: 1, offset: 0 });
  if (total === 0) throw notFound();
  return { status: 204, body: null };
}

/**
 * Whether the caller is shown upstream's list, which the mirror's account was shown. It may name members of whom strangers
 * must not know, and GitHub does not say what it shows to whom. Strangers get upstream's answer, or what anybody can read.
 * @throws NotHeldFault if upstream answers
 */
async function isListShown(call: RepositoryCall): Promise<boolean> {
  const { repository, caller, publicRights, ctx } = call;
  if (!repository.mirrors.includes("people")) return false;
  await learnPublicRights(call, [repository]);
  const isStranger = accessLevelOf(caller, repository.id, publicRights) === "stranger";
  if (!isStranger && (await findHeldPeople(ctx.db, listOfRepository(repository.id, "assignees")))) return true;
  if (caller.kind === "user" && mayBeForwarded(ctx, caller)) throw notHeld();
  return false;
}

function embedded(document: string): string {
  const fields = Object.entries(parseStored<Fields>(document)).filter(([key]) => isOfSimpleUser(key));
  return JSON.stringify(Object.fromEntries(fields));
}
