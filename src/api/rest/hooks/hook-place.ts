import type { Scope } from "../../../events/target.ts";
import { isRead } from "../../../http/reply.ts";
import { type Fields, type Json, objectOf } from "../../../json.ts";
import { findUser, findUserByLogin } from "../../../mirror/read/users.ts";
import { failureOf, messageOf } from "../../../upstream/protocol/answer.ts";
import { UpstreamRefusedError, UpstreamUnavailableError } from "../../../upstream/protocol/errors.ts";
import type { Call, RepositoryCall } from "../../call/call.ts";
import { mayHook, notAccessible } from "../../callers/permissions.ts";
import { readFault } from "../../callers/upstream-for-callers.ts";
import { ApiFault, notFound, unshown } from "../../dialect/fault.ts";
import { showToAll } from "../accounts.ts";
import { getRepository } from "../repositories.ts";

/** The repository or organization whose hooks are worked on. The caller may administer it. */
export interface HookPlace {
  scope: Scope & { kind: "repository" | "organization" };
  /** The place's address, without a slash at its end. */
  address: string;
  /** The organization's login; null below a repository. */
  login: string | null;
  /** What a ping tells of the place, and of the person who asked for the ping. */
  about: () => Promise<Fields>;
}

/** A repository's hooks. @throws ApiFault 404 or 403, as upstream answers, to a caller who may not administer it */
export async function repositoryPlace(call: RepositoryCall): Promise<HookPlace> {
  const { id, fullName } = call.repository;
  await requireAdmin(call, `/repositories/${id}/hooks`, id);
  const about = async () => ({ repository: await repositoryDocument(call), ...(await callerAsSender(call)) });
  return { scope: { kind: "repository", id }, address: `${call.api}/repos/${fullName}/hooks`, login: null, about };
}

/** An organization's hooks. @throws ApiFault 404 or 403, as upstream answers, to a caller who may not administer it */
export async function organizationPlace(call: Call): Promise<HookPlace> {
  const account = await findUserByLogin(call.ctx.db, call.params.org ?? "");
  if (account?.type !== "Organization") throw unshown();
  await requireAdmin(call, `/orgs/${account.login}/hooks`, null);
  const { id, login } = account;
  const about = async () => ({ organization: { login, id }, ...(await callerAsSender(call)) });
  return { scope: { kind: "organization", id }, address: `${call.api}/orgs/${login}/hooks`, login, about };
}

async function repositoryDocument(call: RepositoryCall): Promise<Json> {
  const { body } = await getRepository(call);
  return JSON.parse(String(body));
}

/** The keys of an account that is embedded (GitHub's OpenAPI, simple-user). */
const SENDER_KEYS: readonly string[] = [
  ...["login", "id", "node_id", "avatar_url", "gravatar_id", "url", "html_url", "followers_url", "following_url"],
  ...["gists_url", "starred_url", "subscriptions_url", "organizations_url", "repos_url", "events_url"],
  ...["received_events_url", "type", "site_admin"],
];

async function callerAsSender(call: Call): Promise<Fields> {
  const user = call.caller.kind === "user" ? await findUser(call.ctx.db, call.caller.userId) : null;
  if (!user) return {};
  const all = objectOf(JSON.parse(await showToAll(call, user)));
  return { sender: Object.fromEntries(SENDER_KEYS.flatMap((key) => (key in all ? [[key, all[key] ?? null]] : []))) };
}

/**
 * A hook hears everything that happens, so callers need the right to register one at upstream: upstream is asked with
 * their token. A token of ours needs `hooks:write`.
 */
async function requireAdmin(call: Call, path: string, repositoryId: number | null): Promise<void> {
  const { caller } = call;
  // Upstream does not tell anonymous callers that there are hooks.
  if (caller.kind !== "user") throw notFound();
  if (caller.by.of === "own") {
    if (mayHook(caller.by.token, repositoryId)) return;
    const permission = repositoryId === null ? "organization_hooks" : "repository_hooks";
    throw new ApiFault(403, notAccessible(caller), {
      headers: { "X-Accepted-GitHub-Permissions": `${permission}=${isRead(call.method) ? "read" : "write"}` },
    });
  }
  try {
    if (isRead(call.method)) {
      const answer = await caller.by.get(`${path}?per_page=1`);
      if (answer.kind === "ok") return;
      throw answer.kind === "missing" ? new ApiFault(answer.status, answer.message) : notFound();
    }
    // Only a write shows what a token may write. This one has no address, so upstream always refuses it: with 422 if
    // the token may register hooks, otherwise with 403 or 404.
    const probe = await caller.by.write({ method: "POST", path, body: '{"name":"web","config":{}}' });
    const { status, headers, body: text } = probe;
    if (status === 422) return;
    if (status >= 500) throw failureOf(path, { status, headers, text });
    throw new ApiFault(status < 400 ? 404 : status, messageOf({ status, headers, text }) || "Not Found");
  } catch (error) {
    if (error instanceof UpstreamRefusedError) throw new ApiFault(error.status, "Not Found", { cause: error });
    if (!(error instanceof UpstreamUnavailableError)) throw error;
    throw readFault(error, { now: call.ctx.clock.now(), isLate: false, whose: "your" });
  }
}
