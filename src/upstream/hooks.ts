import { failureOf } from "./answer.ts";
import type { RawAnswer, Upstream } from "./client.ts";
import { UpstreamRefusedError } from "./errors.ts";
import { pages } from "./pagination.ts";

export interface RepositoryHook {
  /** `owner/name`. */
  fullName: string;
  /** Where deliveries go. Upstream refuses addresses of its own machine. */
  url: string;
  secret: string;
  events: readonly string[];
}

/**
 * Makes the repository's hook at upstream be as given, and answers its id. A hook with the same address is updated, its
 * secret included, since upstream does not tell the secret it has; otherwise one is created. Safe to run twice.
 * @throws UpstreamRefusedError when the token may not manage hooks (upstream says 404 to that) or upstream refuses the
 *   hook; no error carries the secret
 */
export async function ensureRepositoryHook(
  upstream: Pick<Upstream, "get" | "write">,
  hook: RepositoryHook,
): Promise<number> {
  const found = await findHook(upstream, hook);
  if (found.id !== null) return updateHook(upstream, hook, found.path, found.id);

  const created = await upstream.write({
    method: "POST",
    path: found.path,
    body: JSON.stringify({ name: "web", ...wanted(hook) }),
  });
  if (created.status === 201) return hookId(created);
  if (created.status === 422 && created.body.includes("already exists")) {
    // Another process was quicker, or upstream's list lagged behind: it is there now.
    const again = await findHook(upstream, hook);
    if (again.id !== null) return updateHook(upstream, hook, again.path, again.id);
  }
  throw refusal(created, found.path, hook.secret);
}

async function updateHook(
  upstream: Pick<Upstream, "write">,
  hook: RepositoryHook,
  list: string,
  id: number,
): Promise<number> {
  const path = `${list}/${id}`;
  const updated = await upstream.write({ method: "PATCH", path, body: JSON.stringify(wanted(hook)) });
  if (updated.status !== 200) throw refusal(updated, path, hook.secret);
  return hookId(updated);
}

/** `path` is where the repository's hooks are, which is elsewhere once it was renamed. */
async function findHook(
  upstream: Pick<Upstream, "get">,
  { fullName, url }: RepositoryHook,
): Promise<{ path: string; id: number | null }> {
  let path = `/repos/${fullName.split("/").map(encodeURIComponent).join("/")}/hooks`;
  for (let moves = 0; ; moves++) {
    let location: string | null = null;
    for await (const page of pages(upstream, `${path}?per_page=100`, { priority: "caller" })) {
      if (page.kind === "missing") {
        throw new UpstreamRefusedError(
          page.status,
          `${page.message} (${fullName}: no such repository, or the token may not manage its hooks)`,
          null,
        );
      }
      if (page.kind === "moved") location = page.location;
      if (page.kind !== "ok") break;
      const found = (page.body as { id: number; config?: { url?: string } }[]).find((each) => each.config?.url === url);
      if (found) return { path, id: found.id };
    }
    if (location === null) return { path, id: null };
    if (moves > 0) throw new UpstreamRefusedError(301, `${fullName} is moved again and again`, null);
    path = location.split("?")[0] ?? location;
  }
}

function wanted({ url, secret, events }: RepositoryHook) {
  return { active: true, events, config: { url, secret, content_type: "json", insecure_ssl: "0" } };
}

function hookId(answer: RawAnswer): number {
  const { id } = JSON.parse(answer.body) as { id: unknown };
  if (typeof id !== "number") throw new UpstreamRefusedError(answer.status, "the hook has no id", null);
  return id;
}

/** Upstream may repeat what it was sent, JSON inside JSON: the secret is taken out in each form it may have there. */
function refusal(answer: RawAnswer, path: string, secret: string): Error {
  const escaped = (text: string) => JSON.stringify(text).slice(1, -1);
  const forms = [escaped(escaped(escaped(secret))), escaped(escaped(secret)), escaped(secret), secret];
  const text = forms.reduce((rest, form) => rest.replaceAll(form, "…"), answer.body);
  return failureOf(path, { status: answer.status, headers: answer.headers, text });
}
