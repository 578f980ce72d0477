import { createLabel } from "../changes/labels.ts";
import { isOneOf } from "../world/json.ts";
import type { Issue, Label, Milestone, PullIssue, Repository, User } from "../world/records.ts";
import { isPull, type World } from "../world/world.ts";

type Json = Readonly<Record<string, unknown>>;

/** Arguments of a named change: names in place of rows. Every reader throws a sentence about what is wrong. */
export class Arguments {
  readonly #world: World;
  readonly #json: Json;

  constructor(world: World, json: Json) {
    this.#world = world;
    this.#json = json;
  }

  has(name: string): boolean {
    return this.#json[name] !== undefined;
  }

  text(name: string): string {
    const value = this.optional(name);
    if (value === undefined) throw new Error(`${name} is missing`);
    return value;
  }

  optional(name: string): string | undefined {
    const value = this.#json[name];
    if (value !== undefined && typeof value !== "string") throw new Error(`${name} should be a string`);
    return value;
  }

  choice<Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
    const value = this.optional(name);
    if (value === undefined || isOneOf(choices, value)) return value;
    throw new Error(`${name} should be one of ${choices.join(", ")}`);
  }

  /**
   * These of the given values, as they came: the change itself checks what they mean. `never` fits each of its fields.
   */
  picked(...names: readonly string[]): Record<string, never> {
    return Object.fromEntries(names.filter((name) => this.has(name)).map((name) => [name, this.#json[name]])) as Record<
      string,
      never
    >;
  }

  /** Who does it: `by` (a login), or the owner of the repository. */
  actor(): number {
    if (this.has("by")) return this.user("by").id;
    return this.has("repository") ? this.repository().ownerId : this.#world.user(0).id;
  }

  user(name: string): User {
    const user = this.#world.userByLogin(this.text(name));
    if (!user) throw new Error(`There is no account ${this.text(name)}`);
    return user;
  }

  userIds(name: string): number[] | undefined {
    const logins = this.#json[name];
    if (logins === undefined) return undefined;
    if (!Array.isArray(logins)) throw new Error(`${name} should be a list of logins`);
    return logins.map((login) => {
      const user = this.#world.userByLogin(String(login));
      if (!user) throw new Error(`There is no account ${login}`);
      return user.id;
    });
  }

  /** `owner/name`, or the numeric id. */
  repository(name = "repository"): Repository {
    const value = this.#json[name];
    if (typeof value === "number") {
      const found = this.#world.repositories.get(value);
      if (found) return found;
    }
    const [owner = "", title = ""] = String(value ?? "").split("/");
    const found = this.#world.repositoryByName(owner, title);
    if (!found) throw new Error(`There is no repository ${String(value)}; ${name} should be owner/name`);
    return found.repository;
  }

  issue(): Issue {
    const repository = this.repository();
    const issue = this.#world.issue(repository, Number(this.#json.number));
    if (!issue) throw new Error(`There is no #${String(this.#json.number)} in ${this.#world.fullName(repository)}`);
    return issue;
  }

  pull(): PullIssue {
    const issue = this.issue();
    if (!isPull(issue)) throw new Error(`#${issue.number} is not a pull request`);
    return issue;
  }

  /** By id. */
  row<Row>(name: string, rows: ReadonlyMap<number, Row>): Row {
    const row = rows.get(Number(this.#json[name]));
    if (!row) throw new Error(`There is no ${name} ${String(this.#json[name])}`);
    return row;
  }

  label(name: string): Label {
    const label = this.#world.labelByName(this.repository(), this.text(name));
    if (!label) throw new Error(`There is no label ${this.text(name)}`);
    return label;
  }

  /** By number. */
  milestone(name: string): Milestone {
    const milestone = this.#world.milestoneByNumber(this.repository(), Number(this.#json[name]));
    if (!milestone) throw new Error(`There is no milestone ${String(this.#json[name])}`);
    return milestone;
  }

  /** `labels` and `assignees` by name, `milestone` by number (null: none); new labels are made. */
  sets(by: number): { labelIds?: number[]; assigneeIds?: number[]; milestoneId?: number | null } {
    const labels = this.#json.labels;
    const assigneeIds = this.userIds("assignees");
    const repository = this.repository();
    return {
      ...(Array.isArray(labels) ? { labelIds: labels.map((name) => this.#labelId(repository, String(name), by)) } : {}),
      ...(assigneeIds ? { assigneeIds } : {}),
      ...(this.has("milestone")
        ? { milestoneId: this.#json.milestone === null ? null : this.milestone("milestone").id }
        : {}),
    };
  }

  #labelId(repository: Repository, name: string, by: number): number {
    return (this.#world.labelByName(repository, name) ?? createLabel(this.#world, by, { repository, name })).id;
  }
}
