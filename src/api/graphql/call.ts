import {
  type FoundNode,
  type FoundRepository,
  findById,
  findByNumber,
  findLabelsByName,
  findRepositoriesById,
  findRepositoriesByName,
  findUsersById,
  findUsersByLogin,
  type RepositoryNodeKind,
} from "../../mirror/read/nodes.ts";
import { type Sight, sees } from "../../mirror/read/sight.ts";
import type { StoredDocument } from "../../mirror/render/rendering.ts";
import { Unfolding } from "../../mirror/render/unfolding.ts";
import type { Fields, Json } from "../../mirror/store/template.ts";
import type { ApiContext } from "../call.ts";
import { classOf, type User } from "../callers/caller.ts";
import type { QuotaFigures } from "../callers/quota.ts";
import { Batch } from "./run/batch.ts";
import type { Cost } from "./run/cost.ts";
import { type Memory, Recollection, type Texts } from "./run/memory.ts";
import type { ChangeStreams } from "./subscribe/change-streams.ts";

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
  /** Where it is shown at one place alone: wants to know what it was written as. */
  keep?: (text: string) => void;
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
  /** Null: everything is read anew. */
  readonly memory: Memory | null;
  /** What the answer shows of them. */
  readonly shownRepositories = new Set<number>();
  /** When upstream last confirmed repositories that are shown, so far as that is known; null: never. */
  readonly confirmations = new Map<number, Date | null>();
  readonly #batches = new Map<string, Batch<never, unknown>>();
  #isByFormerName = false;
  #recollection: Recollection | null;
  #unfolding: Unfolding;
  #unfoldings: StoredDocument[][] = [];
  #unfolded: Promise<Fields[][]> | null = null;

  constructor(
    parts: Pick<
      GraphqlCall,
      "ctx" | "caller" | "sight" | "api" | "cost" | "figures" | "requestId" | "changes" | "memory"
    >,
  ) {
    this.ctx = parts.ctx;
    this.caller = parts.caller;
    this.sight = parts.sight;
    this.api = parts.api;
    this.cost = parts.cost;
    this.figures = parts.figures;
    this.requestId = parts.requestId;
    this.changes = parts.changes;
    this.memory = parts.memory;
    this.#recollection = this.memory && new Recollection(this.memory);
    this.#unfolding = this.#newUnfolding();
  }

  /** What was loaded before a write is not what is shown after it. */
  forget(): void {
    this.#batches.clear();
    this.confirmations.clear();
    this.#recollection = this.memory && new Recollection(this.memory);
    this.#unfolding = this.#newUnfolding();
  }

  #newUnfolding(): Unfolding {
    return new Unfolding(this.ctx.db, { api: this.api, revisionOf: (id) => this.#recollection?.revisionOf(id) });
  }

  /** The repositories on which the answer depends; null: also on which there are. */
  get met(): ReadonlySet<number> | null {
    return this.#isByFormerName ? null : this.#unfolding.met;
  }

  /** What the issues of a repository were written as in this view. Some fields show the caller. */
  texts(repositoryId: number, view: string): Texts | null {
    const name = `${view} ${this.caller.userId} ${classOf(this.caller)} ${this.api}`;
    return this.#recollection?.texts(repositoryId, name) ?? null;
  }

  /** What `read` answers of this repository, or answered before if that is still so. */
  remembered<T>(repositoryId: number, key: string, read: () => Promise<T>): T | Promise<T> {
    return this.#recollection ? this.#recollection.value(repositoryId, key, read) : read();
  }

  /** The batch of this name, which gathers everything that is asked under it. */
  batch<Key, Value>(name: string, run: (keys: Key[]) => Promise<Value[]>): Batch<Key, Value> {
    const known = this.#batches.get(name) as Batch<Key, Value> | undefined;
    if (known) return known;
    const batch = new Batch(run);
    this.#batches.set(name, batch as unknown as Batch<never, unknown>);
    return batch;
  }

  /** Unfolds documents together with all others that are asked for at this moment. */
  async unfold(kind: NodeKind, documents: StoredDocument[]): Promise<Node[]> {
    for (const { repositoryId } of documents) if (repositoryId !== 0) this.shownRepositories.add(repositoryId);
    const waiting = this.#unfoldings.push(documents) - 1;
    this.#unfolded ??= nextTurn().then(() => {
      const groups = this.#unfoldings;
      this.#unfoldings = [];
      this.#unfolded = null;
      return this.#unfolding.unfold(groups.flat()).then((all) => groups.map(({ length }) => all.splice(0, length)));
    });
    const unfolded = (await this.#unfolded)[waiting] as Fields[];
    return unfolded.map((rest, at) => ({ kind, repositoryId: documents[at]?.repositoryId ?? 0, rest }));
  }

  repository(id: number): Promise<Node | null> {
    return this.#repositories.load(id);
  }

  get #repositories(): Batch<number, Node | null> {
    return this.#found(
      "repositories by id",
      "Repository",
      async (ids: number[]) => this.#located(await findRepositoriesById(this.ctx.db, ids, this.sight)),
      String,
    );
  }

  async repositoryNamed(fullName: string, followRenames: boolean): Promise<Node | null> {
    const name = fullName.toLowerCase();
    const found = (await this.#recalled(name)) ?? (await this.#readNamed(name, followRenames));
    // Whoever is found by name is found by id.
    if (found) this.#repositories.settle(found.repositoryId, found);
    // Another repository may get the name, of which this one's revision tells nothing.
    if (found && String(found.rest.full_name).toLowerCase() !== name) this.#isByFormerName = true;
    return found;
  }

  async #recalled(name: string): Promise<Node | null> {
    const found = await this.#recollection?.repository(name);
    if (!found || (found.isPrivate && !sees(this.sight, found.repositoryId))) return null;
    const [node = null] = await this.unfold("Repository", this.#located([found]));
    return node;
  }

  #readNamed(name: string, followRenames: boolean): Promise<Node | null> {
    const find = async (names: string[]) => {
      const found = await findRepositoriesByName(this.ctx.db, names, { followRenames, sight: this.sight });
      for (const one of found) this.#recollection?.keepRepository(one.key, one);
      return this.#located(found);
    };
    return this.#found(`repositories by name, ${followRenames}`, "Repository", find, String).load(name);
  }

  /** Takes note of where repositories are, and of how fresh they are. */
  #located(found: FoundRepository[]): FoundRepository[] {
    for (const { repositoryId, home, confirmedAt } of found) {
      this.#unfolding.settle(repositoryId, home);
      this.confirmations.set(repositoryId, confirmedAt);
    }
    return found;
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

  /** An account that something shown already refers to, whole; undefined: `user` has to ask. */
  knownUser(id: number): Fields | null | undefined {
    return this.#unfolding.user(id);
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
      const nodes = await this.unfold(kind, rows);
      const byKey = new Map(rows.map((row, at) => [row.key, nodes[at] as Node]));
      return keys.map((key) => byKey.get(keyOf(key)) ?? null);
    });
  }
}

/** REST shows deleted accounts as this user; GraphQL as null. */
const GHOST_ID = 10_137;

const embedded = new Map<NodeKind, WeakMap<Fields, Node>>();

/** A resource that another holds: one node for one object, wherever it is held. */
export function embeddedNode(kind: NodeKind, repositoryId: number, rest: Fields): Node {
  let nodes = embedded.get(kind);
  if (!nodes) {
    nodes = new WeakMap();
    embedded.set(kind, nodes);
  }
  let node = nodes.get(rest);
  if (!node) {
    node = { kind, repositoryId, rest };
    nodes.set(rest, node);
  }
  return node;
}

/** The account that a resource of REST's embeds. */
export function actorOf(value: Json | undefined): Node | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  return value.id === GHOST_ID && value.login === "ghost" ? null : embeddedNode(kindOf(value), 0, value);
}

const ACTORS: readonly ActorKind[] = ["User", "Organization", "Bot", "Mannequin"];

function kindOf({ type }: Fields): ActorKind {
  return ACTORS.find((kind) => kind === type) ?? "User";
}

function asActor(node: Node | null): Node | null {
  return node && { ...node, kind: kindOf(node.rest) };
}

/** All fields of a level are asked before the event loop turns. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
