import { digitsOf, type Fields, type Json, numberOf, objectOf, rowsOf, textOf, textsOf, wholeOf } from "../../json.ts";
import { failureOf, shownObject } from "../protocol/answer.ts";
import { UpstreamRefusedError } from "../protocol/errors.ts";
import { pages } from "../protocol/pagination.ts";
import type { RawAnswer, Upstream } from "../protocol/upstream.ts";
import { isDuplicateHook } from "../protocol/wording.ts";

/** A repository whose hooks are worked on. Its name may be another's by now, so upstream is asked by the id. */
export interface HookedRepository {
  id: number;
  /** `owner/name`, for messages. */
  fullName: string;
}

export interface RepositoryHook {
  repository: HookedRepository;
  /** The address to which upstream sends deliveries. Upstream refuses addresses of its own machine. */
  url: string;
  secret: string;
  events: readonly string[];
}

/**
 * Upstream may be a Tain, whose payloads come from its own upstream. Their addresses do not lead to UPSTREAM_URL,
 * unless this word in `Prefer` asks for it. The service would refuse such a key in a hook's config.
 */
const OUR_ADDRESSES = "rewrite-urls";

/** A client that manages hooks at upstream. */
type HookClient = Pick<Upstream, "get" | "write">;

/**
 * Creates or updates the repository's hook at upstream, and answers its id and path. A hook with the same address always
 * gets the secret again, because upstream does not show the present one. Safe to run twice.
 * @throws UpstreamRefusedError when the token may not manage hooks (upstream then answers 404) or upstream refuses the
 *   hook; no error carries the secret
 */
export async function placeRepositoryHook(
  upstream: HookClient,
  hook: RepositoryHook,
): Promise<{ id: number; path: string }> {
  const found = await findHook(upstream, hook);
  if (found.id !== null) return updateHook(upstream, hook, found.path, found.id);

  const created = await upstream.write({
    method: "POST",
    path: found.path,
    body: JSON.stringify({ name: "web", ...wanted(hook) }),
    prefer: OUR_ADDRESSES,
  });
  if (created.status === 201) return createdHook(found.path, created);
  if (isDuplicateHook(created.status, created.body)) {
    // Another process was quicker, or upstream's list lagged: the hook is there now.
    const again = await findHook(upstream, hook);
    if (again.id !== null) return updateHook(upstream, hook, again.path, again.id);
  }
  throw hookRefusal(created, found.path, hook.secret);
}

/** A hook as upstream shows it: whether it has a secret, and never which. */
export interface HookAtUpstream {
  id: number;
  /** Below UPSTREAM_URL. */
  path: string;
  url: string;
  isActive: boolean;
  events: string[];
  hasSecret: boolean;
  /** The outcome of the last delivery. `code` is null before the first. */
  lastResponse: { code: number | null; status: string };
}

/**
 * All hooks of the repository, ours and others'.
 * @throws UpstreamRefusedError when the token may not see them (upstream then answers 404)
 */
export async function listRepositoryHooks(
  upstream: Pick<Upstream, "get">,
  repository: HookedRepository,
): Promise<HookAtUpstream[]> {
  const { path, hooks } = await readHooks(upstream, repository);
  return hooks.map((hook) => {
    const id = numberOf(hook.id) ?? 0;
    const config = objectOf(hook.config);
    const last = objectOf(hook.last_response);
    return {
      id,
      path: `${path}/${id}`,
      url: textOf(config.url) ?? "",
      isActive: hook.active !== false,
      events: textsOf(hook.events),
      hasSecret: Boolean(config.secret),
      lastResponse: { code: numberOf(last.code), status: textOf(last.message) ?? textOf(last.status) ?? "unused" },
    };
  });
}

/**
 * The id of a repository or an account, by its path: `/repos/owner/name`, `/users/login`.
 * @throws UpstreamRefusedError when upstream shows none
 */
export async function findId(upstream: Pick<Upstream, "get">, path: string): Promise<number> {
  const first = await upstream.get(path, { priority: "caller" });
  const moved = first.kind === "moved" ? first.location : null;
  const answer = moved === null ? first : await upstream.get(moved, { priority: "caller" });
  const id = answer.kind === "ok" ? numberOf(objectOf(answer.body).id) : null;
  if (id !== null) return id;
  const status = answer.kind === "missing" ? answer.status : 301;
  throw new UpstreamRefusedError(status, `upstream shows no ${path.split("/").slice(2).join("/")}`, null);
}

/** Asks upstream to send the hook a ping, which it does a moment later. @throws UpstreamRefusedError */
export async function pingRepositoryHook(upstream: Pick<Upstream, "write">, { path }: { path: string }): Promise<void> {
  const answer = await upstream.write({ method: "POST", path: `${path}/pings`, body: null });
  if (answer.status !== 204) throw hookRefusal(answer, path, "");
}

/** Deletes the hook, if it is still there. @throws UpstreamRefusedError */
export async function deleteRepositoryHook(
  upstream: Pick<Upstream, "write">,
  { path }: { path: string },
): Promise<void> {
  const answer = await upstream.write({ method: "DELETE", path, body: null });
  if (answer.status !== 204 && answer.status !== 404) throw hookRefusal(answer, path, "");
}

/** One attempt of upstream to send a delivery to a hook, with its outcome. */
export interface SentDelivery {
  /** The attempt's id, in digits. Each attempt has one of its own, and all have the event's GUID. */
  id: string;
  guid: string;
  event: string;
  /** Null: the delivery concerns no repository. */
  repositoryId: number | null;
  /** By upstream's clock. */
  deliveredAt: Date;
  /** The receiver's answer; upstream's own 502 or 504 where there was none. */
  statusCode: number;
  /** "OK", or what went wrong in upstream's words. */
  status: string;
}

/**
 * A list's last hundred deliveries, the newest first, of the three days that upstream keeps; null: upstream shows none.
 */
export async function recentDeliveries(upstream: Pick<Upstream, "get">, list: string): Promise<SentDelivery[] | null> {
  const answer = await upstream.get(`${list}?per_page=100`, { priority: "caller" });
  return answer.kind === "ok" ? sentDeliveries(answer.body) : null;
}

/**
 * Asks upstream to send a delivery again, which it does a moment later under the same GUID. @throws
 * UpstreamRefusedError
 */
export async function askToResend(
  upstream: Pick<Upstream, "write">,
  list: string,
  { id }: Pick<SentDelivery, "id">,
): Promise<void> {
  const path = `${list}/${id}/attempts`;
  const answer = await upstream.write({ method: "POST", path, body: null });
  if (answer.status !== 202) throw hookRefusal(answer, path, "");
}

/** A page of deliveries. */
export function sentDeliveries(page: Json): SentDelivery[] {
  return rowsOf(page).map((row) => ({
    id: digitsOf(row.id) ?? "",
    guid: textOf(row.guid) ?? "",
    event: textOf(row.event) ?? "",
    repositoryId: wholeOf(row.repository_id),
    deliveredAt: new Date(textOf(row.delivered_at) ?? ""),
    statusCode: numberOf(row.status_code) ?? 0,
    status: textOf(row.status) ?? "",
  }));
}

/** The id of the hook with this address, among a list of hooks; null: none has it. */
export function hookAt(hooks: Json, url: string): number | null {
  return numberOf(rowsOf(hooks).find(({ config }) => objectOf(config).url === url)?.id);
}

async function updateHook(
  upstream: Pick<Upstream, "write">,
  hook: RepositoryHook,
  list: string,
  id: number,
): Promise<{ id: number; path: string }> {
  const path = `${list}/${id}`;
  const updated = await upstream.write({
    method: "PATCH",
    path,
    body: JSON.stringify(wanted(hook)),
    prefer: OUR_ADDRESSES,
  });
  if (updated.status !== 200) throw hookRefusal(updated, path, hook.secret);
  return createdHook(list, updated);
}

async function findHook(
  upstream: Pick<Upstream, "get">,
  { repository, url }: RepositoryHook,
): Promise<{ path: string; id: number | null }> {
  const { path, hooks } = await readHooks(upstream, repository);
  return { path, id: hookAt(hooks, url) };
}

/** The repository's hooks, and the path of their list. There are at most 20 for an event. */
async function readHooks(
  upstream: Pick<Upstream, "get">,
  { id, fullName }: HookedRepository,
): Promise<{ path: string; hooks: Fields[] }> {
  const path = `/repositories/${id}/hooks`;
  const hooks: Fields[] = [];
  for await (const page of pages(upstream, `${path}?per_page=100`, { priority: "caller" })) {
    if (page.kind === "missing") {
      throw new UpstreamRefusedError(
        page.status,
        `${page.message} (${fullName}: no such repository, or the token may not manage its hooks)`,
        null,
      );
    }
    if (page.kind === "moved")
      throw new UpstreamRefusedError(301, `${fullName} has moved, though it was asked for by id`, null);
    if (page.kind === "ok") hooks.push(...rowsOf(page.body));
  }
  return { path, hooks };
}

function createdHook(list: string, answer: RawAnswer): { id: number; path: string } {
  const id = numberOf(shownObject(list, { status: answer.status, text: answer.body }).id);
  if (id === null) throw new UpstreamRefusedError(answer.status, "the hook has no id", null);
  return { id, path: `${list}/${id}` };
}

function wanted({ url, secret, events }: RepositoryHook) {
  return { active: true, events, config: { url, secret, content_type: "json", insecure_ssl: "0" } };
}

/**
 * The error of a refused write. Upstream may repeat the request, even as JSON inside JSON, so the secret is taken out
 * in each form.
 */
export function hookRefusal(answer: RawAnswer, path: string, secret: string): Error {
  const escaped = (text: string) => JSON.stringify(text).slice(1, -1);
  if (secret === "") return failureOf(path, { status: answer.status, headers: answer.headers, text: answer.body });
  const forms = [escaped(escaped(escaped(secret))), escaped(escaped(secret)), escaped(secret), secret];
  const text = forms.reduce((rest, form) => rest.replaceAll(form, "…"), answer.body);
  return failureOf(path, { status: answer.status, headers: answer.headers, text });
}
