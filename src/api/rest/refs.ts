import { type Fields, objectOf, parseStored, textOf } from "../../json.ts";
import { findListedCommit } from "../../mirror/read/history.ts";
import { areRefsHeld, findBranches, findMatchingRefs, findRefs, findTags } from "../../mirror/read/refs.ts";
import { refNameOf } from "../../mirror/store/refs.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { showFields, showList, showOne } from "../call/view.ts";
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

/** Names that are the same in an address. */
const PLAIN_NAME = /^[\w./-]+$/;

/** A branch with its commit. Only upstream can show how a branch is protected, and a commit that no list here has. */
export async function getBranch(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, params } = call;
  const { branch: name = "" } = params;
  // The path may be that of a branch's protection.
  if (/\/protection(\/|$)/.test(name)) throw notHeld();
  const [found] = await findRefs(ctx.db, [{ repositoryId: repository.id, kind: "heads", name }]);
  if (found === null) throw new ApiFault(404, "Branch not found");
  if (found?.isProtected !== false || found.commitSha === null || !PLAIN_NAME.test(name)) throw notHeld();
  const commit = await findListedCommit(ctx.db, { repositoryId: repository.id, sha: found.commitSha });
  if (!commit) throw notHeld();
  const document = JSON.stringify({
    name,
    commit: parseStored<Fields>(commit.document),
    _links: { self: `\u0001/branches/${name}`, html: `\u0003/tree/${name}` },
    protected: false,
  });
  const shown = await showFields(call, { repositoryId: repository.id, document });
  // What protects a branch depends on who asks; that nothing does, everybody is told.
  const protection_url = `${textOf(objectOf(shown._links).self)}/protection`;
  return ok(JSON.stringify({ ...shown, protection: UNPROTECTED, protection_url }));
}

/** As the service shows it of every branch that neither protection nor a ruleset covers. */
const UNPROTECTED = { enabled: false, required_status_checks: { enforcement_level: "off", contexts: [], checks: [] } };

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
