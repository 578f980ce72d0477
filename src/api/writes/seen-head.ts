/** The head of a pull request that a caller opens: it may lie in another repository than the pull request. */
import { sql } from "../../../db/sql.ts";
import { type Fields, objectOf, parseStored, textOf } from "../../json.ts";
import { referenceId } from "../../kinds/contract/placeholders.ts";
import { isNamed } from "../../mirror/read/names.ts";
import { mirroredWhere, sees, visible } from "../../mirror/read/repositories.ts";
import { accessOf } from "../callers/permissions.ts";
import { invalid } from "../dialect/fault.ts";
import type { Writer } from "./send-once.ts";

/** A head in another repository: its owner, its name if one is given, and the branch. */
interface ForeignHead {
  owner: string;
  name: string | null;
  branch: string;
}

/**
 * The body that opens the pull request. Upstream judges callers with a token of its own. All others are served with
 * the mirror's credential, which sees more than they do. So their head lies in this repository, in a public one, or in
 * one whose code they are shown; and it is sent with the one name that was checked.
 * @throws ApiFault 422, as for a head that does not exist; as `UpstreamForCallers.get`
 */
export async function bodyWithSeenHead(writer: Writer, body: string): Promise<string> {
  if (writer.caller.by.of === "upstream") return body;
  const given = objectOf(JSON.parse(body));
  const { head, head_repo: headRepo = null, ...others } = given;
  // A key that stands twice in the body is sent once, as it was read here.
  if (head === undefined && headRepo === null) return JSON.stringify(given);
  const foreign = foreignHead(writer, head, headRepo);
  if (foreign === null) return JSON.stringify({ ...others, head });
  const fullName = await seenName(writer, foreign);
  if (fullName === null) throw unseenHead();
  const isOwn = fullName.toLowerCase() === writer.repository.fullName.toLowerCase();
  if (isOwn) return JSON.stringify({ ...others, head: foreign.branch });
  const [owner, name] = fullName.split("/");
  return JSON.stringify({ ...others, head: `${owner}:${foreign.branch}`, head_repo: name });
}

/** Null: the head is a branch of the repository itself. @throws ApiFault 422 for a form that cannot be judged */
function foreignHead({ repository }: Writer, head: unknown, headRepo: unknown): ForeignHead | null {
  if (typeof head !== "string" || (headRepo !== null && typeof headRepo !== "string")) throw unseenHead();
  if (headRepo?.includes("/")) throw unseenHead();
  if (!head.includes(":")) {
    const [owner = ""] = repository.fullName.split("/");
    return headRepo === null ? null : { owner, name: headRepo, branch: head };
  }
  const [, owner, branch] = /^([^:/?#%\s]+):([^:]+)$/.exec(head) ?? [];
  if (owner === undefined || branch === undefined) throw unseenHead();
  return { owner, name: headRepo, branch };
}

/** The full name of the head's repository. Null: the caller is not shown it, or there is none. */
async function seenName(writer: Writer, { owner, name }: ForeignHead): Promise<string | null> {
  const { ctx, caller, repository } = writer;
  const access = accessOf(caller);
  const [baseOwner = "", baseName = ""] = repository.fullName.split("/");
  const isOfSameOwner = owner.toLowerCase() === baseOwner.toLowerCase();
  if (isOfSameOwner && (name === null || name.toLowerCase() === baseName.toLowerCase())) return repository.fullName;
  // Who does not name the repository means the owner's fork, which is mostly called as its origin is.
  const fork = name === null ? await mirroredFork(writer, owner) : null;
  if (fork !== null) return fork;
  const wanted = `${owner}/${name ?? baseName}`;
  const mirrored = await ctx.mirror.repositories.named(wanted, access);
  if (mirrored) return sees(access, mirrored, "contents") ? mirrored.fullName : null;
  // Few forks are mirrored, and the name may be a former one.
  const answer = await ctx.upstream.get(caller, `/repos/${owner}/${encodeURIComponent(name ?? baseName)}`);
  if (answer.kind !== "ok") return null;
  const { id, private: isPrivate, full_name: fullName } = objectOf(answer.body);
  if (id === repository.id || isPrivate === false) return textOf(fullName);
  return sees(access, { id: Number(id), isPrivate: true }, "contents") ? textOf(fullName) : null;
}

/** The full name of the owner's only mirrored repository in the network, if its code is shown to the caller. */
async function mirroredFork({ ctx, caller, repository }: Writer, owner: string): Promise<string | null> {
  const seen = visible(sql`r`, accessOf(caller), "contents");
  const isOwners = isNamed(sql`split_part(r.full_name, '/', 1)`, [owner]);
  const rows = await ctx.db.query<{ id: number; fullName: string; detail: string | null }>(sql`
    select r.id, r.full_name as "fullName", r.detail::text as detail
      ${mirroredWhere(sql`(${isOwners} and ${seen} or r.id = ${repository.id})`)}`);
  const base = rows.find(({ id }) => id === repository.id);
  const network = new Set([repository.id, ...originsOf(base?.detail ?? null)]);
  const forks = rows.filter(
    ({ id, detail }) => id !== repository.id && [id, ...originsOf(detail)].some((one) => network.has(one)),
  );
  const [fork] = forks;
  return forks.length === 1 && fork ? fork.fullName : null;
}

/** The repositories that a fork descends from. */
function originsOf(detail: string | null): number[] {
  const { parent, source } = detail === null ? {} : parseStored<Fields>(detail);
  return [parent, source].flatMap((one) => referenceId(one) ?? []);
}

function unseenHead() {
  return invalid({ resource: "PullRequest", field: "head", code: "invalid" });
}
