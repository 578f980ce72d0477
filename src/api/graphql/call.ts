import {
  type FoundNode,
  findById,
  findByNumber,
  findLabelsByName,
  findRepositoriesById,
  findRepositoriesByName,
  findUsersById,
  findUsersByLogin,
  type RepositoryNodeKind,
} from "../../mirror/find-nodes.ts";
import { renderDocuments, type StoredDocument } from "../../mirror/rendering.ts";
import type { Sight } from "../../mirror/sight.ts";
import type { Fields, Json } from "../../mirror/template.ts";
import type { ApiContext } from "../call.ts";
import type { User } from "../caller.ts";
import type { QuotaFigures } from "../quota.ts";
import { Batch } from "./batch.ts";
import type { ChangeStreams } from "./change-streams.ts";
import type { Cost } from "./cost.ts";

type ActorKind = "User" | "Organization" | "Bot" | "Mannequin";
export type NodeKind =
  | RepositoryNodeKind
  | "Repository"
  | ActorKind
  | "Commit"
  | "ReviewRequest"
  | "Team"
  | "PullRequestCommit"
  | "RepositoryTopic"
  | "ProjectCard";

/** A resource as REST shows it, on its way to be shown by GraphQL. */
export interface Node {
  kind: NodeKind;
  /** The repository that it belongs to, or its own id; 0 for accounts. */
  repositoryId: number;
  rest: Fields;
}

/** One GraphQL request: who asks, what it costs, and everything that its fields load, gathered level by level. */
export class GraphqlCall {
  readonly ctx: ApiContext;
  readonly caller: User;
  /** What of the mirror the caller sees. */
  readonly sight: Sight;
  /** The API's address as the caller wrote it. */
  readonly api: string;
  readonly cost: Cost;
  /** Null: there is no limit. */
  readonly figures: QuotaFigures | null;
  readonly requestId: string;
  readonly changes: ChangeStreams;
  /** What the answer shows of them. */
  readonly shownRepositories = new Set<number>();
  readonly #batches = new Map<string, Batch<never, unknown>>();

  constructor(
    parts: Pick<GraphqlCall, "ctx" | "caller" | "sight" | "api" | "cost" | "figures" | "requestId" | "changes">,
  ) {
    this.ctx = parts.ctx;
    this.caller = parts.caller;
    this.sight = parts.sight;
    this.api = parts.api;
    this.cost = parts.cost;
    this.figures = parts.figures;
    this.requestId = parts.requestId;
    this.changes = parts.changes;
  }

  /** What was loaded before a write is not what is shown after it. */
  forget(): void {
    this.#batches.clear();
  }

  /** The batch of this name, which gathers everything that is asked under it. */
  batch<Key, Value>(name: string, run: (keys: Key[]) => Promise<Value[]>): Batch<Key, Value> {
    const known = this.#batches.get(name) as Batch<Key, Value> | undefined;
    if (known) return known;
    const batch = new Batch(run);
    this.#batches.set(name, batch as unknown as Batch<never, unknown>);
    return batch;
  }

  /** Renders documents together with all others that are asked for at this moment. */
  async render(kind: NodeKind, documents: StoredDocument[]): Promise<Node[]> {
    const texts = await this.batch<StoredDocument[], string[]>("render", async (groups) => {
      for (const { repositoryId } of groups.flat()) if (repositoryId !== 0) this.shownRepositories.add(repositoryId);
      const all = await renderDocuments(this.ctx.db, groups.flat(), { api: this.api });
      return groups.map(({ length }) => all.splice(0, length));
    }).load(documents);
    return texts.map((text, at) => ({
      kind,
      repositoryId: documents[at]?.repositoryId ?? 0,
      rest: JSON.parse(text) as Fields,
    }));
  }

  repository(id: number): Promise<Node | null> {
    return this.#found(
      "repositories by id",
      "Repository",
      (ids: number[]) => findRepositoriesById(this.ctx.db, ids, this.sight),
      String,
    ).load(id);
  }

  repositoryNamed(fullName: string, followRenames: boolean): Promise<Node | null> {
    const name = `repositories by name, ${followRenames}`;
    const find = (names: string[]) => findRepositoriesByName(this.ctx.db, names, { followRenames, sight: this.sight });
    return this.#found(name, "Repository", find, String).load(fullName.toLowerCase());
  }

  numbered(kind: "Issue" | "PullRequest" | "Milestone", repositoryId: number, number: number): Promise<Node | null> {
    const find = (wanted: { repositoryId: number; number: number }[]) => findByNumber(this.ctx.db, kind, wanted);
    return this.#found(`${kind} by number`, kind, find, (key) => `${key.repositoryId}/${key.number}`).load({
      repositoryId,
      number,
    });
  }

  label(repositoryId: number, name: string): Promise<Node | null> {
    const find = (wanted: { repositoryId: number; name: string }[]) => findLabelsByName(this.ctx.db, wanted);
    return this.#found("labels by name", "Label", find, (key) => `${key.repositoryId}/${key.name}`).load({
      repositoryId,
      name: name.toLowerCase(),
    });
  }

  byId(kind: RepositoryNodeKind, id: number): Promise<Node | null> {
    return this.#found(
      `${kind} by id`,
      kind,
      (ids: number[]) => findById(this.ctx.db, kind, ids, this.sight),
      String,
    ).load(id);
  }

  /** The whole of an account, with what only a single one shows. */
  async user(id: number): Promise<Node | null> {
    return asActor(
      await this.#found("users by id", "User", (ids: number[]) => findUsersById(this.ctx.db, ids), String).load(id),
    );
  }

  async userNamed(login: string): Promise<Node | null> {
    const find = (logins: string[]) => findUsersByLogin(this.ctx.db, logins);
    return asActor(await this.#found("users by login", "User", find, String).load(login.toLowerCase()));
  }

  #found<Key>(
    name: string,
    kind: NodeKind,
    find: (keys: Key[]) => Promise<FoundNode[]>,
    keyOf: (key: Key) => string,
  ): Batch<Key, Node | null> {
    return this.batch<Key, Node | null>(name, async (keys) => {
      const rows = await find(keys);
      const nodes = await this.render(kind, rows);
      const byKey = new Map(rows.map((row, at) => [row.key, nodes[at] as Node]));
      return keys.map((key) => byKey.get(keyOf(key)) ?? null);
    });
  }
}

/** REST shows deleted accounts as this user; GraphQL as null. */
const GHOST_ID = 10_137;

/** The account that a resource of REST's embeds. */
export function actorOf(value: Json | undefined): Node | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  return value.id === GHOST_ID && value.login === "ghost"
    ? null
    : asActor({ kind: "User", repositoryId: 0, rest: value });
}

const ACTORS: readonly ActorKind[] = ["User", "Organization", "Bot", "Mannequin"];

function asActor(node: Node | null): Node | null {
  return node && { ...node, kind: ACTORS.find((kind) => kind === node.rest.type) ?? "User" };
}
