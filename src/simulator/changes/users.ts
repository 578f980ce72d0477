import type { NewUser } from "../new-rows.ts";
import { GHOST_ID, type User } from "../records.ts";
import { Refusal } from "../refusal.ts";
import type { World } from "../world.ts";
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
