import { areRefsHeld, findBranches, findMatchingRefs, findRefs, findTags } from "../../mirror/read/refs.ts";
import { refNameOf } from "../../mirror/store/refs.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { showList, showOne } from "../call/view.ts";
import { ApiFault, notFound, notHeld, unread } from "../dialect/fault.ts";
import { prefers } from "../dialect/preferences.ts";
import { askedPage, numberedPage, pageDb } from "./page.ts";

export async function listBranches(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, query } = call;
  if (!(await areRefsHeld(ctx.db, repository.id, "heads"))) throw unread();
  const asked = query.get("protected")?.toLowerCase();
  // The service was seen to take all words for true but these.
  const isProtected = asked ? asked !== "false" && asked !== "0" : null;
  const { rows, total } = await findBranches(pageDb(call), repository.id, { isProtected, ...askedPage(query) });
  return await numberedPage(call, rows, total);
}

/**
 * A branch. The mirror knows which branches exist. But only upstream can show the commit and the branch's protection.
 */
export async function getBranch({ ctx, repository, params }: RepositoryCall): Promise<Answer> {
  const { branch: name = "" } = params;
  // The path may be that of a branch's protection.
  const isOther = /\/protection(\/|$)/.test(name);
  const [found] = await findRefs(ctx.db, [{ repositoryId: repository.id, kind: "heads", name }]);
  if (isOther || found !== null) throw notHeld();
  throw new ApiFault(404, "Branch not found");
}

export async function listTags(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, query } = call;
  if (!(await areRefsHeld(ctx.db, repository.id, "tags"))) throw unread();
  const { rows, total } = await findTags(pageDb(call), repository.id, askedPage(query));
  return await numberedPage(call, rows, total);
}

export async function getRef(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, params } = call;
  const named = refNameOf(`refs/${params.ref}`);
  if (!named) throw notHeld();
  const [found] = await findRefs(ctx.db, [{ repositoryId: repository.id, ...named }]);
  if (found === undefined) throw unread();
  if (found === null) throw notFound();
  return ok(await showOne(call, found));
}

/** All refs whose names begin with this, in one answer. */
export async function listMatchingRefs(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, params } = call;
  const [, kind, name] = /^(heads|tags)(?:\/(.*[^/]))?$/s.exec(params.ref ?? "") ?? [];
  // It is not known how the service treats a slash at the end.
  if (kind !== "heads" && kind !== "tags") throw notHeld();
  // So short a prefix may also match refs that this mirror, or the other one, does not hold.
  if (name === undefined && !prefers(call.headers, "settled")) throw notHeld();
  const found = await findMatchingRefs(ctx.db, repository.id, { kind, name: name ?? "" });
  if (!found) throw unread();
  // An answer with headers of its own is not kept, so callers without the preference never get this one.
  const applied = name === undefined ? { headers: { "Preference-Applied": "settled" } } : {};
  return ok(await showList(call, found), applied);
}
