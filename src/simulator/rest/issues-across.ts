import { issueView } from "../views/issue.ts";
import { repositorySummary } from "../views/repository.ts";
import { allows, kindOf } from "../world/access.ts";
import type { Issue, Repository, User } from "../world/records.ts";
import { invalid } from "../world/refusal.ts";
import { commentCount } from "../world/world.ts";
import { findOrganization, relationOf, viewer, visibleRepositories } from "./accounts.ts";
import type { Answer, Call } from "./call.ts";
import { sinceOf } from "./issue-list.ts";
import { paged } from "./pagination.ts";

/** `GET /issues`: of all repositories that the caller has to do with. */
export function listIssuesAcross(call: Call): Answer {
  const user = viewer(call);
  return listed(call, user, (repository) => relationOf(call, user, repository) !== null);
}

/** `GET /user/issues`: GitHub docs: "across owned and member repositories". */
export function listOwnIssues(call: Call): Answer {
  const user = viewer(call);
  return listed(call, user, (repository) => {
    const relation = relationOf(call, user, repository);
    return relation === "owner" || relation === "collaborator";
  });
}

export function listOrganizationIssues(call: Call): Answer {
  const owner = findOrganization(call);
  return listed(call, viewer(call), (repository) => repository.ownerId === owner.id);
}

function listed(call: Call, user: User, isWanted: (repository: Repository) => boolean): Answer {
  const { query, world } = call;
  const state = query.get("state") ?? "open";
  if (state !== "open" && state !== "closed" && state !== "all")
    throw invalid({ resource: "Issue", field: "state", code: "invalid", value: state });
  const since = sinceOf(query);
  const names = (query.get("labels") ?? "").toLowerCase().split(",").filter(Boolean);
  const isTheirs = takes(call, user);
  const rows: Issue[] = [];
  for (const repository of visibleRepositories(call)) {
    if (!isWanted(repository)) continue;
    const kinds = (["issues", "pull_requests"] as const).filter((kind) =>
      allows(world, call.token, repository, [{ permission: kind, level: "read" }]),
    );
    for (const issue of repository.rows.issuesByCreated.descending()) {
      if (!kinds.includes(kindOf(issue)) || !isTheirs(issue)) continue;
      if ((state !== "all" && issue.state !== state) || (since !== undefined && issue.updatedAt < since)) continue;
      const carried = issue.labelIds.map((id) => world.labels.get(id)?.name.toLowerCase());
      if (names.every((name) => carried.includes(name.trim()))) rows.push(issue);
    }
  }
  return paged(call, { rows: sorted(query, rows), size: rows.length }, (row) => {
    const seen = world.lag.seen(row);
    return seen && { ...issueView(call.view, seen), repository: repositorySummary(call.view, row.repository) };
  });
}

/** Who has what to do with the issue. The simulated world has no subscriptions: whoever wrote or has it subscribes. */
function takes({ query }: Call, { id, login }: User): (issue: Issue) => boolean {
  const isCreated = (issue: Issue) => issue.authorId === id;
  const isAssigned = (issue: Issue) => issue.assigneeIds.includes(id);
  switch (query.get("filter")) {
    case "all":
    case "repos":
      return () => true;
    case "created":
      return isCreated;
    case "mentioned":
      return ({ body }) => (body ?? "").toLowerCase().includes(`@${login.toLowerCase()}`);
    case "subscribed":
      return (issue) => isCreated(issue) || isAssigned(issue);
    default:
      return isAssigned;
  }
}

function sorted(query: URLSearchParams, rows: Issue[]): Issue[] {
  const sign = query.get("direction") === "asc" ? 1 : -1;
  const sort = query.get("sort");
  const key = (issue: Issue) =>
    sort === "updated" ? issue.updatedAt : sort === "comments" ? commentCount(issue) : issue.createdAt;
  return rows.sort((a, b) => sign * (key(a) - key(b) || a.id - b.id));
}
