import { linksOf, parentOf, relink } from "../world/issue-links.ts";
import type { Issue } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import type { World } from "../world/world.ts";

const MOST_SUB_ISSUES = 100;

/** Each link is told from both sides. */
export function addSubIssue(world: World, by: number, parent: Issue, child: Issue, replaceParent = false): void {
  refuseUnlinkable(parent, child);
  const before = parentOf(world, child);
  if (before === parent) throw new Refusal(422, "Issue may not contain duplicate sub-issues");
  if (before && !replaceParent) throw new Refusal(422, "Sub issue may only have one parent");
  for (let above: Issue | null = parent; above; above = parentOf(world, above))
    if (above === child) throw new Refusal(422, "A sub-issue cannot be above its parent");
  if (linksOf(parent).subIssueIds.length >= MOST_SUB_ISSUES)
    throw new Refusal(422, `Parent cannot have more than ${MOST_SUB_ISSUES} sub-issues`);
  if (before) removeSubIssue(world, by, before, child);
  relink(world, parent, { subIssueIds: [...linksOf(parent).subIssueIds, child.id] });
  relink(world, child, { parentId: parent.id });
  tellSubIssue(world, by, parent, child, "added");
}

export function removeSubIssue(world: World, by: number, parent: Issue, child: Issue): void {
  if (parentOf(world, child) !== parent) throw new Refusal(404, "Not Found");
  relink(world, parent, { subIssueIds: linksOf(parent).subIssueIds.filter((id) => id !== child.id) });
  relink(world, child, { parentId: null });
  tellSubIssue(world, by, parent, child, "removed");
}

/** Moves a sub-issue behind another, or to the front. No event tells of it. */
export function moveSubIssue(world: World, parent: Issue, child: Issue, after: Issue | null): void {
  const others = linksOf(parent).subIssueIds.filter((id) => id !== child.id);
  const place = after ? others.indexOf(after.id) + 1 : 0;
  if (parentOf(world, child) !== parent || (after && place === 0)) throw new Refusal(404, "Not Found");
  relink(world, parent, { subIssueIds: others.toSpliced(place, 0, child.id) });
}

export function addBlocker(world: World, by: number, blocked: Issue, blocking: Issue): void {
  refuseUnlinkable(blocked, blocking);
  if (linksOf(blocked).blockedByIds.includes(blocking.id)) throw new Refusal(422, "Issue is already blocked by it");
  relink(world, blocked, { blockedByIds: [...linksOf(blocked).blockedByIds, blocking.id] });
  relink(world, blocking, { blockingIds: [...linksOf(blocking).blockingIds, blocked.id] });
  tellDependency(world, by, blocked, blocking, "added");
}

export function removeBlocker(world: World, by: number, blocked: Issue, blocking: Issue): void {
  if (!linksOf(blocked).blockedByIds.includes(blocking.id)) throw new Refusal(404, "Not Found");
  relink(world, blocked, { blockedByIds: linksOf(blocked).blockedByIds.filter((id) => id !== blocking.id) });
  relink(world, blocking, { blockingIds: linksOf(blocking).blockingIds.filter((id) => id !== blocked.id) });
  tellDependency(world, by, blocked, blocking, "removed");
}

function refuseUnlinkable(one: Issue, other: Issue): void {
  if (one === other || one.pull || other.pull) throw new Refusal(422, "Only two different issues can be linked");
  if (one.repository.ownerId !== other.repository.ownerId)
    throw new Refusal(422, "Both issues must belong to the same owner");
}

function tellSubIssue(world: World, by: number, from: Issue, to: Issue, done: "added" | "removed"): void {
  const told = { event: "sub_issues", senderId: by, link: { from, to } } as const;
  world.emit({ ...told, action: `sub_issue_${done}`, repository: from.repository, issue: from });
  world.emit({ ...told, action: `parent_issue_${done}`, repository: to.repository, issue: to });
}

function tellDependency(world: World, by: number, to: Issue, from: Issue, done: "added" | "removed"): void {
  const told = { event: "issue_dependencies", senderId: by, link: { from, to } } as const;
  world.emit({ ...told, action: `blocked_by_${done}`, repository: to.repository, issue: to });
  world.emit({ ...told, action: `blocking_${done}`, repository: from.repository, issue: from });
}
