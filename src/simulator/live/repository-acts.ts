import { createLabel, deleteLabel, editLabel } from "../changes/labels.ts";
import { createMilestone, editMilestone } from "../changes/milestones.ts";
import { renameRepository, transferRepository } from "../changes/repositories.ts";
import { deleteUser, editUser, renameUser } from "../changes/users.ts";
import * as faker from "../world/faker.ts";
import { GHOST_ID, type Label, type Repository, type User } from "../world/records.ts";
import type { Act } from "./act.ts";
import type { Stage } from "./stage.ts";

const MILESTONE_S = 90 * 86_400;

/** What people do with a repository, its labels and milestones, and with accounts. */
export const REPOSITORY_ACTS = {
  createLabel: ({ world, random }, repository, by) =>
    createLabel(world, by, {
      repository,
      name: `${random.pick(faker.LABELS).name} ${random.int(2, 9_999)}`,
      color: random.hex(6),
    }).repository,

  renameLabel: (stage, repository, by) => {
    const { world, random } = stage;
    const label = labelOf(stage, repository);
    if (!label) return undefined;
    const edited = random.chance(0.3)
      ? { color: random.hex(6) }
      : { name: `${label.name.slice(0, 30)} ${random.int(2, 99)}` };
    editLabel(world, by, label, edited);
    return repository;
  },

  deleteLabel: (stage, repository, by) => {
    const label = labelOf(stage, repository);
    if (!label) return undefined;
    deleteLabel(stage.world, by, label);
    return repository;
  },

  createMilestone: ({ world, random }, repository, by) =>
    createMilestone(world, by, {
      repository,
      title: `v${random.int(4, 99)}.${random.int(0, 9_999)}`,
      dueOn: world.now() + MILESTONE_S,
    }).repository,

  editMilestone: (stage, repository, by) => {
    const { world, random } = stage;
    const milestones = [...repository.rows.milestones.values()];
    if (milestones.length === 0) return undefined;
    const milestone = random.pick(milestones);
    if (random.chance(0.4))
      editMilestone(world, by, milestone, { state: milestone.state === "open" ? "closed" : "open" });
    else editMilestone(world, by, milestone, { description: stage.reply(repository) });
    return repository;
  },

  renameUser: (stage, repository) => {
    const author = authorIn(stage, repository);
    if (!author) return undefined;
    renameUser(stage.world, author, anotherName(stage, author.login, 30));
    return author;
  },

  editUser: (stage, repository) => {
    const author = authorIn(stage, repository);
    if (!author) return undefined;
    const { world, random } = stage;
    editUser(world, author, { name: random.chance(0.2) ? null : faker.personName(random) });
    return author;
  },

  deleteUser: (stage, repository, by) => {
    const author = authorIn(stage, repository);
    if (!author) return undefined;
    if ([...stage.world.repositories.values()].some(({ ownerId }) => ownerId === author.id)) return undefined;
    deleteUser(stage.world, by, author);
    return author;
  },

  renameRepository: (stage, repository, by) => {
    renameRepository(stage.world, by, repository, anotherName(stage, repository.name, 80));
    return repository;
  },

  transferRepository: (stage, repository, by) => {
    const owner = stage.person();
    if (!owner || owner.id === repository.ownerId) return undefined;
    transferRepository(stage.world, by, repository, owner);
    return repository;
  },
} satisfies Record<string, Act>;

function labelOf(stage: Stage, repository: Repository): Label | undefined {
  const [labelId] = stage.labelIds(repository);
  return labelId === undefined ? undefined : stage.world.labels.get(labelId);
}

/** A person who has written here. */
function authorIn(stage: Stage, repository: Repository): User | undefined {
  const author = stage.world.users.get(stage.issue(repository)?.authorId ?? GHOST_ID);
  return author?.type === "User" && author.id !== GHOST_ID ? author : undefined;
}

/** The name with a number behind it, in place of the one that it may have had. */
function anotherName({ random }: Stage, name: string, maxLength: number): string {
  return `${name.replace(/-\d+$/, "").slice(0, maxLength)}-${random.int(2, 999_999)}`;
}
