import { countHeldLists, findListed } from "../../mirror/read/lists.ts";
import type { ListName } from "../../mirror/store/lists.ts";
import type { Answer, RepositoryCall } from "../call/call.ts";
import { notHeld, unread } from "../dialect/fault.ts";
import { askedPage, numberedPage, smallNumberParam } from "./page.ts";

export async function listPullCommits(call: RepositoryCall): Promise<Answer> {
  return await pullListPage(call, "commits");
}

export async function listPullFiles(call: RepositoryCall): Promise<Answer> {
  return await pullListPage(call, "files");
}

/** A list of the pull request. @throws NotHeldFault if the list is incomplete, or there is no such pull request */
async function pullListPage(call: RepositoryCall, list: ListName): Promise<Answer> {
  const { ctx, repository, params, query } = call;
  const number = smallNumberParam(params.number);
  if (number === null) throw notHeld();
  const key = { repositoryId: repository.id, number };
  const [total] = await countHeldLists(ctx.db, list, [key]);
  if (total === null || total === undefined) throw unread();
  const rows = await findListed(ctx.db, { ...key, list }, askedPage(query));
  return await numberedPage(call, rows, total);
}
