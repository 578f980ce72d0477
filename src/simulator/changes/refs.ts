/** Branches and tags made, moved and deleted: what `git push` does beside bringing commits. */
import { commitOf, hashOf, history, NO_SHA } from "../world/commits.ts";
import type { Repository } from "../world/records.ts";
import type { Tag } from "../world/records-code.ts";
import { invalid, Refusal } from "../world/refusal.ts";
import type { World } from "../world/world.ts";
import { closePullsFrom, pushBranch } from "./pulls.ts";

/** So many at once are told; with more, none is. */
const TAGS_TOLD = 3;

export interface TagInput {
  readonly name: string;
  readonly sha: string;
  /** Makes it annotated. */
  readonly message?: string;
}

/** Tags that one push brings. Tells `create` and `push` of each, unless there are too many. */
export function createTags(
  world: World,
  by: number,
  repository: Repository,
  inputs: readonly TagInput[],
): readonly Tag[] {
  const { tags } = world.code.of(repository);
  for (const { name, sha } of inputs) {
    if (tags.has(name)) throw new Refusal(422, "Reference already exists");
    if (!commitOf(world, repository, sha)) throw new Refusal(422, "Object does not exist");
  }
  return inputs.map(({ name, sha, message }) => {
    const at = world.now();
    const object =
      message === undefined ? null : { sha: hashOf(`tag ${name} ${sha} ${at}`), message, taggerId: by, at };
    const tag: Tag = { name, sha, object };
    tags.set(name, tag);
    world.changing(repository);
    repository.pushedAt = at;
    if (inputs.length > TAGS_TOLD) return tag;
    const ref = { name, type: "tag" } as const;
    world.emit({ event: "create", action: null, repository, senderId: by, ref });
    const push = { ref: `refs/tags/${name}`, before: NO_SHA, after: object?.sha ?? sha };
    world.emit({ event: "push", action: null, repository, senderId: by, push });
    return tag;
  });
}

/** No event tells that a tag moved but the push. */
export function moveTag(world: World, by: number, repository: Repository, tag: Tag, sha: string): void {
  if (!commitOf(world, repository, sha)) throw new Refusal(422, "Object does not exist");
  world.code.of(repository).tags.set(tag.name, { ...tag, sha, object: null });
  const push = { ref: `refs/tags/${tag.name}`, before: tag.object?.sha ?? tag.sha, after: sha, forced: true };
  world.emit({ event: "push", action: null, repository, senderId: by, push });
}

export function deleteTag(world: World, by: number, repository: Repository, tag: Tag): void {
  world.code.of(repository).tags.delete(tag.name);
  tellDeleted(world, by, repository, { name: tag.name, type: "tag" }, tag.object?.sha ?? tag.sha);
}

/** Moves a branch. Without `force` only forward. */
export function moveBranch(
  world: World,
  by: number,
  repository: Repository,
  name: string,
  to: { readonly sha: string; readonly force: boolean },
): void {
  const before = repository.branches.get(name);
  if (before === undefined) throw new Refusal(422, "Reference does not exist");
  if (!commitOf(world, repository, to.sha)) throw new Refusal(422, "Object does not exist");
  if (before === to.sha) return;
  const isForward = [...history(world, repository, to.sha)].some(({ sha }) => sha === before);
  if (!isForward && !to.force) throw new Refusal(422, "Update is not a fast forward");
  pushBranch(world, by, repository, name, to.sha, !isForward);
}

/** Pull requests from it are closed, as the service does. */
export function deleteBranch(world: World, by: number, repository: Repository, name: string): void {
  const sha = repository.branches.get(name);
  if (sha === undefined) throw new Refusal(422, "Reference does not exist");
  if (name === repository.defaultBranch)
    throw invalid({ resource: "Reference", code: "custom", message: "Cannot delete the default branch" });
  world.changing(repository);
  repository.branches.delete(name);
  repository.pushedAt = world.now();
  tellDeleted(world, by, repository, { name, type: "branch" }, sha);
  closePullsFrom(world, by, repository, name);
}

function tellDeleted(
  world: World,
  by: number,
  repository: Repository,
  ref: { readonly name: string; readonly type: "branch" | "tag" },
  before: string,
): void {
  const kind = ref.type === "branch" ? "heads" : "tags";
  world.emit({ event: "delete", action: null, repository, senderId: by, ref });
  const push = { ref: `refs/${kind}/${ref.name}`, before, after: NO_SHA, deleted: true };
  world.emit({ event: "push", action: null, repository, senderId: by, push });
}
