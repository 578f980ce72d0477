import { type Fields, parseStored } from "../json.ts";
import { isPublicKey } from "../mirror/render/public-keys.ts";
import type { StoredDocument } from "../mirror/render/rendering.ts";
import type { Call } from "./call.ts";
import { hasMirrorsRights } from "./callers/permissions.ts";

/** As a stored document has the address of a repository other than its own. */
const ELSEWHERE = '"\\u0002/repos/';
const NAMES = /"\\u0002\/repos\/([^/"{?#]+\/[^/"{?#]+)/g;
/** Upstream's only key that names another repository's issue, beside those that are not known yet. */
const PARENT = "parent_issue_url";

type Looking = Pick<Call, "caller" | "sight"> & Partial<Pick<Call, "met">> & { ctx: { mirror: Mirror } };
type Mirror = Pick<Call["ctx"]["mirror"], "repositories">;

/**
 * Documents without what names a repository that the caller does not see: the credential that read them for the mirror saw it. Where
 * it cannot be seen the key is left out, as where there is no parent.
 */
export async function withoutHiddenAddresses(call: Looking, documents: StoredDocument[]): Promise<StoredDocument[]> {
  if (hasMirrorsRights(call.caller) || !documents.some(namesAnother)) return documents;
  return await Promise.all(
    documents.map(async (one) => (namesAnother(one) ? { ...one, document: await shown(call, one.document) } : one)),
  );
}

function namesAnother({ document }: StoredDocument): boolean {
  return document.includes(ELSEWHERE);
}

async function shown(call: Looking, document: string): Promise<string> {
  const fields = parseStored<Fields>(document);
  const kept: Fields = {};
  for (const [key, value] of Object.entries(fields)) {
    const isChecked = key === PARENT || !isPublicKey(key);
    const names = isChecked ? [...JSON.stringify(value).matchAll(NAMES)].map(([, name = ""]) => name) : [];
    const found = await Promise.all(names.map((name) => call.ctx.mirror.repositories.named(name, call.sight)));
    if (found.includes(null)) continue;
    // A kept answer ends once they are hidden.
    for (const repository of found) if (repository) call.met?.add(repository.id);
    kept[key] = value;
  }
  return JSON.stringify(kept);
}
