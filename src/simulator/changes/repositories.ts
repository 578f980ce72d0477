import type { NewRepository } from "../world/new-rows.ts";
import type { Repository, User, Visibility } from "../world/records.ts";
import { invalid } from "../world/refusal.ts";
import type { World } from "../world/world.ts";

export function createRepository(world: World, by: number, input: NewRepository): Repository {
  checkName(world, input.ownerId, input.name);
  const repository = world.addRepository(input);
  tell(world, by, repository, "created");
  return repository;
}

export interface RepositoryEdit {
  readonly description?: string | null;
  readonly homepage?: string | null;
  readonly defaultBranch?: string;
  readonly topics?: readonly string[];
  readonly hasIssues?: boolean;
  readonly hasPullRequests?: boolean;
  readonly hasProjects?: boolean;
  readonly hasWiki?: boolean;
}

export function editRepository(world: World, by: number, repository: Repository, edit: RepositoryEdit): void {
  if (edit.defaultBranch !== undefined && !repository.branches.has(edit.defaultBranch)) {
    const message = `The branch ${edit.defaultBranch} was not found. Please push that ref first or create it via the Git Data API.`;
    throw invalid({ resource: "Repository", field: "default_branch", code: "invalid", message });
  }
  world.changing(repository);
  const changes: Record<string, unknown> = {};
  if (edit.description !== undefined && edit.description !== repository.description) {
    changes.description = { from: repository.description };
    repository.description = edit.description;
  }
  if (edit.homepage !== undefined && edit.homepage !== repository.homepage) {
    changes.homepage = { from: repository.homepage };
    repository.homepage = edit.homepage;
  }
  if (edit.defaultBranch !== undefined && edit.defaultBranch !== repository.defaultBranch) {
    changes.default_branch = { from: repository.defaultBranch };
    repository.defaultBranch = edit.defaultBranch;
  }
  if (edit.topics !== undefined && edit.topics.join() !== repository.topics.join()) {
    changes.topics = { from: repository.topics };
    repository.topics = edit.topics;
  }
  repository.hasIssues = edit.hasIssues ?? repository.hasIssues;
  repository.hasPullRequests = edit.hasPullRequests ?? repository.hasPullRequests;
  repository.hasProjects = edit.hasProjects ?? repository.hasProjects;
  repository.hasWiki = edit.hasWiki ?? repository.hasWiki;
  repository.updatedAt = world.now();
  if (Object.keys(changes).length > 0) tell(world, by, repository, "edited", { changes });
}

export function renameRepository(world: World, by: number, repository: Repository, name: string): void {
  if (name === repository.name) return;
  if (name.toLowerCase() !== repository.name.toLowerCase()) checkName(world, repository.ownerId, name);
  const from = repository.name;
  const fullNameBefore = world.fullName(repository);
  world.changing(repository);
  repository.name = name;
  repository.updatedAt = world.now();
  world.renamed(repository, fullNameBefore);
  tell(world, by, repository, "renamed", { changes: { repository: { name: { from } } } });
}

export function transferRepository(world: World, by: number, repository: Repository, to: User): void {
  if (to.id === repository.ownerId) return;
  checkName(world, to.id, repository.name);
  const ownerFromId = repository.ownerId;
  const fullNameBefore = world.fullName(repository);
  world.changing(repository);
  repository.ownerId = to.id;
  repository.updatedAt = world.now();
  world.renamed(repository, fullNameBefore);
  tell(world, by, repository, "transferred", { ownerFromId });
}

export function archiveRepository(world: World, by: number, repository: Repository, archived: boolean): void {
  if (archived === repository.archived) return;
  world.changing(repository);
  repository.archived = archived;
  repository.updatedAt = world.now();
  tell(world, by, repository, archived ? "archived" : "unarchived");
}

/** To public tells `publicized` and `public`. */
export function setVisibility(world: World, by: number, repository: Repository, visibility: Visibility): void {
  if (visibility === repository.visibility) return;
  world.changing(repository);
  repository.visibility = visibility;
  repository.updatedAt = world.now();
  if (visibility !== "public") {
    tell(world, by, repository, "privatized");
    return;
  }
  tell(world, by, repository, "publicized");
  world.emit({ event: "public", action: null, repository, senderId: by });
}

/** Everything in it is gone with it; pull requests elsewhere that came from it have no `head.repo` any more. */
export function deleteRepository(world: World, by: number, repository: Repository): void {
  tell(world, by, repository, "deleted");
  world.forgetName(repository);
  repository.deleted = true;
  world.repositories.delete(repository.id);
  world.code.forget(repository);
  const { rows } = repository;
  for (const issue of rows.byNumber) {
    if (!issue) continue;
    world.issues.delete(issue.id);
    world.issueEvents.forget(issue);
    if (!issue.pull) continue;
    world.pulls.delete(issue.pull.id);
    for (const review of issue.pull.reviews) world.reviews.delete(review.id);
  }
  for (const comment of rows.commentsById.ascending()) world.comments.delete(comment.id);
  for (const comment of rows.reviewCommentsById.ascending()) world.reviewComments.delete(comment.id);
  for (const id of rows.labels.keys()) world.labels.delete(id);
  for (const id of rows.milestones.keys()) world.milestones.delete(id);
  for (const hook of rows.hooks.values()) {
    hook.deleted = true;
    world.hooks.delete(hook.id);
  }
}

function tell(world: World, by: number, repository: Repository, action: string, extra: object = {}): void {
  world.emit({ event: "repository", action, repository, senderId: by, ...extra });
}

function checkName(world: World, ownerId: number, name: string): void {
  if (!/^[A-Za-z0-9._-]{1,100}$/.test(name)) throw invalid({ resource: "Repository", code: "invalid", field: "name" });
  const taken = world.repositoryByName(world.user(ownerId).login, name);
  if (taken && !taken.moved) {
    throw invalid({
      resource: "Repository",
      code: "custom",
      field: "name",
      message: "name already exists on this account",
    });
  }
}
