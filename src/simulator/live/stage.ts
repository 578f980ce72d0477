import * as faker from "../world/faker.ts";
import type { Random } from "../world/random.ts";
import { GHOST_ID, type Issue, type PullIssue, type Repository, type User } from "../world/records.ts";
import { isPull, type World } from "../world/world.ts";

/** The stage: picks at random a person who acts, and the resource that they act on. */
export class Stage {
  readonly world: World;
  readonly random: Random;
  /** Who can act, as long as the number of accounts stays the same. */
  #people: { readonly accounts: number; readonly users: readonly User[] } = { accounts: 0, users: [] };

  constructor(world: World, random: Random) {
    this.world = world;
    this.random = random;
  }

  /** One that people work in. */
  repository(): Repository | undefined {
    const open = [...this.world.repositories.values()].filter((one) => !one.archived && !one.fork && one.hasIssues);
    return open.length === 0 ? undefined : this.random.pick(open);
  }

  person(): User | undefined {
    const { users } = this.world;
    if (this.#people.accounts !== users.size) {
      this.#people = {
        accounts: users.size,
        users: [...users.values()].filter((user) => user.type === "User" && user.id !== GHOST_ID),
      };
    }
    const people = this.#people.users;
    return people.length === 0 ? undefined : this.random.pick(people);
  }

  /** Mostly a recent one. Undefined when a few dozen tries found none. */
  issue(repository: Repository, test: (issue: Issue) => boolean = () => true): Issue | undefined {
    const { lastNumber, rows } = repository;
    for (let attempt = 0; attempt < 40 && lastNumber > 0; attempt++) {
      const issue = rows.byNumber[lastNumber - Math.floor(this.random.next() ** 2 * lastNumber)];
      if (issue && !issue.deleted && test(issue)) return issue;
    }
    return undefined;
  }

  pull(repository: Repository, test: (pull: PullIssue) => boolean = () => true): PullIssue | undefined {
    const found = this.issue(repository, (issue) => isPull(issue) && test(issue));
    return found && isPull(found) ? found : undefined;
  }

  /** One of the repository's labels, in a list; none when it has none. */
  labelIds(repository: Repository): readonly number[] {
    const ids = [...repository.rows.labels.keys()];
    return ids.length === 0 ? [] : [this.random.pick(ids)];
  }

  #surroundings(repository: Repository): faker.Surroundings {
    return { logins: [this.person()?.login ?? "ghost"], lastNumber: repository.lastNumber };
  }

  body(repository: Repository): string {
    return faker.body(this.random, this.#surroundings(repository));
  }

  reply(repository: Repository): string {
    return faker.reply(this.random, this.#surroundings(repository));
  }
}
