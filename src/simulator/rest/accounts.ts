import { repositorySummary } from "../views/repository.ts";
import { organization, privateUser, publicUser } from "../views/user.ts";
import { wasGiven } from "../world/access.ts";
import type { Repository, User } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import { isIntegration } from "../world/tokens.ts";
import { type Answer, type Call, inaccessible, notFound, ok } from "./call.ts";
import { paged } from "./pagination.ts";
import { timeOf } from "./times.ts";

export function viewer(call: Call): User {
  if (!call.token) throw new Refusal(401, "Requires authentication");
  if (isIntegration(call.token)) throw inaccessible(call.token);
  return call.world.user(call.token.userId);
}

export function getViewer(call: Call): Answer {
  const user = viewer(call);
  const mayKnow =
    call.token?.kind === "fine-grained" ||
    call.token?.scopes.some((scope) => scope === "user" || scope === "read:user");
  return ok(mayKnow ? privateUser(call.view, user) : publicUser(call.view, user), { lastModified: user.updatedAt });
}

export function getUser(call: Call): Answer {
  const id = call.params.id;
  const user = id === undefined ? call.world.userByLogin(call.params.login ?? "") : call.world.users.get(Number(id));
  if (!user) throw notFound();
  return ok(publicUser(call.view, user), { lastModified: user.updatedAt });
}

export function getOrganization(call: Call): Answer {
  const user = findOrganization(call);
  return ok(organization(call.view, user), { lastModified: user.updatedAt });
}

export function findOrganization(call: Call): User {
  const id = call.params.id;
  const user = id === undefined ? call.world.userByLogin(call.params.login ?? "") : call.world.users.get(Number(id));
  if (user?.type !== "Organization") throw notFound();
  return user;
}

const SORTS = ["created", "updated", "pushed", "full_name"];

/** Nobody is notified of anything here, and nothing happens that only followers are told. */
export function listNothing(call: Call): Answer {
  viewer(call);
  return ok([], { headers: { "X-Poll-Interval": "60" } });
}

export function listViewerRepositories(call: Call): Answer {
  const user = viewer(call);
  const { query } = call;
  if (query.has("type") && (query.has("visibility") || query.has("affiliation"))) {
    throw new Refusal(422, "If you specify visibility or affiliation, you cannot specify type.");
  }
  const type = query.get("type") ?? "all";
  const visibility =
    known(query.get("visibility"), ["public", "private"]) ?? (type === "public" || type === "private" ? type : "all");
  const byType = type === "owner" ? "owner" : type === "member" ? "collaborator,organization_member" : undefined;
  const all = ["owner", "collaborator", "organization_member"];
  const asked = (byType ?? query.get("affiliation") ?? "").split(",").filter((one) => all.includes(one));
  const wanted = asked.length > 0 ? asked : all;
  const since = timeParameter(query, "since");
  const before = timeParameter(query, "before");
  const rows = visibleRepositories(call).filter((repository) => {
    const relation = relationOf(call, user, repository);
    if (!relation || !wanted.includes(relation)) return false;
    if (visibility !== "all" && (visibility === "public") !== (repository.visibility === "public")) return false;
    return (since === null || repository.updatedAt > since) && (before === null || repository.updatedAt < before);
  });
  return listed(call, sorted(call, rows, { sort: "full_name", direction: "asc", odd: "desc" }));
}

function known(word: string | null, words: readonly string[]): string | null {
  return word !== null && words.includes(word) ? word : null;
}

export function relationOf(
  call: Call,
  user: User,
  repository: Repository,
): "owner" | "collaborator" | "organization_member" | null {
  if (repository.ownerId === user.id) return "owner";
  if (call.world.user(repository.ownerId).memberIds.includes(user.id)) return "organization_member";
  if (repository.collaborators.has(user.id)) return "collaborator";
  return call.token && wasGiven(call.token, repository) ? "collaborator" : null;
}

export function listUserRepositories(call: Call): Answer {
  const user =
    call.params.id === undefined
      ? call.world.userByLogin(call.params.login ?? "")
      : call.world.users.get(Number(call.params.id));
  if (!user) throw notFound();
  const type = call.query.get("type") ?? "owner";
  // GitHub docs: "Lists public repositories for the specified user", to every caller.
  const rows = [...call.world.repositories.values()].filter((repository) => {
    if (repository.visibility !== "public") return false;
    const owns = repository.ownerId === user.id;
    const member = repository.collaborators.has(user.id);
    return type === "all" ? owns || member : type === "member" ? member : owns;
  });
  return listed(call, sorted(call, rows, { sort: "full_name", direction: "asc", odd: "desc" }));
}

export function listOrganizationRepositories(call: Call): Answer {
  const owner = findOrganization(call);
  const type = call.query.get("type") ?? "all";
  const rows = visibleRepositories(call).filter((repository) => {
    if (repository.ownerId !== owner.id) return false;
    switch (type) {
      case "public":
        return repository.visibility === "public";
      case "private":
        return repository.visibility !== "public";
      case "forks":
        return repository.fork;
      case "sources":
        return !repository.fork;
      default:
        return true;
    }
  });
  return listed(call, sorted(call, rows, { sort: "created", direction: "asc", odd: "asc" }));
}

function summary(call: Call, repository: Repository): unknown {
  const seen = call.world.lag.seen(repository);
  return seen && repositorySummary(call.view, seen);
}

function listed(call: Call, rows: Repository[]): Answer {
  return paged(call, { rows, size: rows.length }, (row) => summary(call, row));
}

export function visibleRepositories(call: Call): Repository[] {
  return [...call.world.repositories.values()].filter((repository) => call.view.roleOf(repository) !== undefined);
}

/** Seen in 2026: an unknown sort is `created`, and an unknown direction is `odd`. Nothing is refused. */
function sorted(
  call: Call,
  rows: Repository[],
  unsent: { sort: string; direction: string; odd: string },
): Repository[] {
  const asked = call.query.get("sort");
  const named = asked === "name" && unsent.sort === "created" ? "full_name" : asked;
  const sort = named === null ? unsent.sort : SORTS.includes(named) ? named : "created";
  const usual = asked === null ? unsent.direction : sort === "full_name" ? "asc" : "desc";
  const sent = call.query.get("direction");
  const direction = sent === null ? usual : sent === "asc" || sent === "desc" ? sent : unsent.odd;
  const sign = direction === "asc" ? 1 : -1;
  const { world } = call;
  if (sort === "full_name") {
    const names = new Map(rows.map((row) => [row, world.fullName(row).toLowerCase()]));
    return rows.sort((a, b) => sign * ((names.get(a) ?? "") < (names.get(b) ?? "") ? -1 : 1));
  }
  const key = (row: Repository) =>
    sort === "created" ? row.createdAt : sort === "updated" ? row.updatedAt : (row.pushedAt ?? 0);
  return rows.sort((a, b) => sign * (key(a) - key(b) || a.id - b.id));
}

function timeParameter(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (text === null) return null;
  return Math.floor(timeOf(name, text) / 1_000);
}
