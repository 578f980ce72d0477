/** How issues hang together: sub-issues below a parent, and issues that block each other. */
import type { Issue, IssueLinks } from "./records.ts";
import type { World } from "./world.ts";

const NO_LINKS: IssueLinks = { parentId: null, subIssueIds: [], blockedByIds: [], blockingIds: [] };

export function linksOf({ links }: Issue): IssueLinks {
  return links ?? NO_LINKS;
}

export function linkedIssues(world: World, ids: readonly number[]): Issue[] {
  return ids.flatMap((id) => world.issues.get(id) ?? []);
}

export function parentOf(world: World, issue: Issue): Issue | null {
  const { parentId } = linksOf(issue);
  return (parentId !== null && world.issues.get(parentId)) || null;
}

export function subIssuesSummary(world: World, issue: Issue) {
  const below = linkedIssues(world, linksOf(issue).subIssueIds);
  const completed = below.filter(({ state }) => state === "closed").length;
  const percentCompleted = below.length === 0 ? 0 : Math.floor((100 * completed) / below.length);
  return { total: below.length, completed, percentCompleted };
}

/** Closed ones count only in the totals. */
export function dependenciesSummary(world: World, issue: Issue) {
  const { blockedByIds, blockingIds } = linksOf(issue);
  const open = (ids: readonly number[]) => linkedIssues(world, ids).filter(({ state }) => state === "open").length;
  return {
    blocked_by: open(blockedByIds),
    total_blocked_by: blockedByIds.length,
    blocking: issue.state === "open" ? open(blockingIds) : 0,
    total_blocking: blockingIds.length,
  };
}

/** No reading is known of what moves `updated_at` here: neither side's does. */
export function relink(world: World, issue: Issue, links: Partial<IssueLinks>): void {
  world.changing(issue);
  issue.links = { ...linksOf(issue), ...links };
}

/** Takes a deleted issue out of all links. No event tells of the other issues. */
export function unlinkAll(world: World, { id, links }: Issue): void {
  if (!links) return;
  const without = (ids: readonly number[]) => ids.filter((one) => one !== id);
  const { parentId, subIssueIds, blockedByIds, blockingIds } = links;
  for (const other of linkedIssues(world, parentId === null ? [] : [parentId]))
    relink(world, other, { subIssueIds: without(linksOf(other).subIssueIds) });
  for (const other of linkedIssues(world, subIssueIds)) relink(world, other, { parentId: null });
  for (const other of linkedIssues(world, blockedByIds))
    relink(world, other, { blockingIds: without(linksOf(other).blockingIds) });
  for (const other of linkedIssues(world, blockingIds))
    relink(world, other, { blockedByIds: without(linksOf(other).blockedByIds) });
}
