import type { NewUser } from "../world/new-rows.ts";
import { GHOST_ID, type User } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import type { World } from "../world/world.ts";
import { deleteRepository } from "./repositories.ts";

export function createUser(world: World, fields: NewUser): User {
  return world.addUser(fields);
}

/** No webhook tells of it, no issue's `updated_at` moves; it shows wherever the user is nested. */
export function renameUser(world: World, user: User, login: string): void {
  if (!/^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})(?:\[bot\])?$/.test(login)) throw new Refusal(422, `Not a login: ${login}`);
  const taken = world.userByLogin(login);
  if (taken && taken !== user) throw new Refusal(422, `The login ${login} is taken`);
  const before = user.login;
  user.login = login;
  user.updatedAt = world.now();
  world.loginChanged(user, before);
}

/** A person edits their profile. No webhook tells of it, and nothing shows it but the account itself. */
export function editUser(world: World, user: User, edits: Partial<Pick<User, "name" | "company" | "email">>): void {
  Object.assign(user, edits);
  user.updatedAt = world.now();
}

/**
 * The account can no longer be assigned, as one that has left or was blocked: it vanishes from the assignees of every
 * issue. No webhook tells of it, and no `updated_at` moves.
 */
export function vanishFromAssignees(world: World, user: User): void {
  for (const issue of world.issues.values()) {
    if (!issue.assigneeIds.includes(user.id)) continue;
    world.changing(issue);
    issue.assigneeIds = issue.assigneeIds.filter((id) => id !== user.id);
  }
}

/** A person's account becomes an organisation. It keeps its id and what it wrote. No webhook tells of it. */
export function becomeOrganization(world: World, user: User): void {
  user.type = "Organization";
  user.updatedAt = world.now();
}

/** From now on the account's words are shown as the ghost's. Its repositories are deleted. */
export function deleteUser(world: World, by: number, user: User): void {
  if (user.id === GHOST_ID) throw new Refusal(422, "The ghost cannot be deleted");
  for (const repository of [...world.repositories.values()]) {
    if (repository.ownerId === user.id) deleteRepository(world, by, repository);
  }
  user.deleted = true;
  world.loginChanged(user, user.login);
  world.users.delete(user.id);
}
