import DataLoader from "dataloader";
import type { OperationDefinitionNode, SelectionNode } from "graphql";
import type { Database } from "../../../../db/database.ts";
import { PEOPLE } from "../../../../db/revisions.ts";
import type { Fields, Json } from "../../../json.ts";
import type { Kind } from "../../../kinds/contract/kind.ts";
import type { Right } from "../../../kinds/contract/rights.ts";
import {
  type FoundNode,
  findById,
  findByNumber,
  findLabelsByName,
  findUsersById,
  findUsersByLogin,
  type RepositoryNodeKind,
} from "../../../mirror/read/nodes.ts";
import {
  type AccessScope,
  type Confirmation,
  findConfirmation,
  findOldestConfirmation,
  findRenamedRepositories,
  hasWhereSeen,
  joinConfirmations,
  type ShownRepository,
  sees,
} from "../../../mirror/read/repositories.ts";
import type { StoredDocument } from "../../../mirror/render/rendering.ts";
import { Unfolding } from "../../../mirror/render/unfolding.ts";
import { want } from "../../../mirror/store/wanted-lists.ts";
import type { Kept, Reading } from "../../../mirror/unchanged/unchanged.ts";
import type { ApiContext } from "../../call/call.ts";
import { classOf, notAccessible, type User } from "../../callers/permissions.ts";
import type { QuotaFigures } from "../../callers/quota.ts";
import { nextId } from "../../dialect/node-id.ts";
import type { ChangeStreams } from "../../streams/change-streams.ts";
import type { Writer } from "../../writes/send-once.ts";
import type { Cost } from "../documents/query.ts";
import { BeyondMirrorError, notGiven, typedError } from "../run/errors.ts";
import { askNames } from "./asked-names.ts";
import { type Count, IssueTexts, type WrittenTexts } from "./kept-lists.ts";
import { asActor, type Node, type NodeKind } from "./node.ts";

/** Fields that find a repository before the rows in it, or that show no repository. */
const FINDS: ReadonlySet<string> = new Set(["__typename", "rateLimit", "repository"]);

/** All fields of a level ask before the event loop turns. */
const OF_A_LEVEL = { batchScheduleFn: setImmediate };

/** What the pages and the counts of one field are loaded by. */
export interface ListNames {
  name: string;
  countName: string;
}

/** What fields reach directly. No database is among it: a field may stand at a hundred thousand places. */
type FieldContext = Pick<ApiContext, "config" | "clock" | "mirror" | "upstream">;

/** One GraphQL request: its caller, its cost, and all that its fields load, gathered level by level. */
export class GraphqlCall {
  readonly ctx: FieldContext;
  readonly #ctx: ApiContext;
  /** The database that this request reads. Only loaders are given it. */
  readonly #db: Database;
  /** Where this request's searches and filtered lists run, one at a time. */
  readonly searchDb: Database;
  readonly caller: User;
  /** What of the mirror the caller sees. */
  readonly access: AccessScope;
  /** The API's address as the caller wrote it. */
  readonly api: string;
  readonly cost: Cost;
  /** Null: there is no limit. */
  readonly figures: QuotaFigures | null;
  readonly requestId: string;
  readonly changes: ChangeStreams;
  /** Fires once only upstream can answer the document. Null: the mirror answers it, whatever it asks for. */
  readonly beyond: AbortController | null;
  /** Whether the caller is another mirror. It would take what is unknown here for absent: see `Preference`. */
  readonly isForMirror: boolean;
  /** Whether the caller wants each id in the newer form. */
  readonly hasNextIds: boolean;
  /** What this request has learnt of how repositories stand. */
  readonly reading: Reading;
  /** Counts of lists, by repository and list. */
  readonly counts: Kept<Count>;
  /** Texts of issues, by repository, view and caller. */
  readonly texts: Kept<IssueTexts>;
  /** The mutation that runs now: they run one after another. */
  mutation: string | null = null;
  /** The repositories that the answer shows. */
  readonly shownRepositories = new Set<number>();
  /** Upstream's confirmations of repositories that are shown, as far as they are known. */
  readonly confirmations = new Map<number, Confirmation>();
  /** By the field's arguments: one object serves all parents, and to name the list for each would take long. */
  readonly listNames = new WeakMap<object, ListNames>();
  readonly #loaders = new Map<string, object>();
  /** Whether the answer depends on more than the revisions of what it shows. */
  #isOfNow = false;
  #isPart = false;
  /** When the oldest list was read that counts for itself. Null: none is shown. */
  #readAt: Date | null = null;
  /** The older ids that the caller used, each with its newer form. */
  readonly #oldIds = new Map<string, string>();
  #unfolding: Unfolding;
  readonly #unfoldings = new DataLoader(
    async (groups: readonly StoredDocument[][]) => {
      const all = await this.#unfolding.unfold(groups.flat());
      return groups.map(({ length }) => all.splice(0, length));
    },
    { ...OF_A_LEVEL, cache: false },
  );

  constructor(
    parts: Pick<
      GraphqlCall,
      | "searchDb"
      | "caller"
      | "access"
      | "api"
      | "cost"
      | "figures"
      | "requestId"
      | "changes"
      | "beyond"
      | "isForMirror"
      | "hasNextIds"
      | "reading"
      | "counts"
      | "texts"
    > & { ctx: ApiContext; db: Database },
  ) {
    this.ctx = parts.ctx;
    this.#ctx = parts.ctx;
    this.#db = parts.db;
    this.searchDb = parts.searchDb;
    this.caller = parts.caller;
    this.access = parts.access;
    this.api = parts.api;
    this.cost = parts.cost;
    this.figures = parts.figures;
    this.requestId = parts.requestId;
    this.changes = parts.changes;
    this.beyond = parts.beyond;
    this.isForMirror = parts.isForMirror;
    this.hasNextIds = parts.hasNextIds;
    this.reading = parts.reading;
    this.counts = parts.counts;
    this.texts = parts.texts;
    this.#unfolding = new Unfolding(this.ctx.mirror.shared, this, this.ctx.mirror.pace);
  }

  /** The id in the form that the caller wants. */
  idOf(id: Json | undefined, repositoryId: number): Json {
    if (typeof id !== "string") return null;
    return (this.hasNextIds && nextId(id, repositoryId)) || id;
  }

  /** Notes that the caller named something by an id of the older form, which the service warns of. */
  named(id: string, { repositoryId }: Node): void {
    const next = nextId(id, repositoryId);
    if (next !== null) this.#oldIds.set(id, next);
  }

  /** What the service says beside a result of ids of the older form; undefined: nothing. */
  get extensions(): Fields | undefined {
    if (this.#oldIds.size === 0) return undefined;
    const warnings = [...this.#oldIds].map(([legacy_global_id, next_global_id]) => ({
      type: "DEPRECATION",
      message: `The id ${legacy_global_id} is deprecated. Update your cache to use the next_global_id from the data payload.`,
      data: { legacy_global_id, next_global_id },
      link: "https://docs.github.com",
    }));
    return { warnings };
  }

  /** Notes that the mirror cannot show what is asked for. If upstream may answer the document, the work here ends. */
  lacks(): void {
    this.beyond?.abort(new BeyondMirrorError("Only upstream can answer the document"));
  }

  /** Notes that the mirror can show only a part of what is asked for, since nothing confines it to mirrored repositories. */
  hasPart(): void {
    this.lacks();
    this.#isPart = true;
  }

  /** Whether the answer shows a part of something: then it has to say so. */
  get isPart(): boolean {
    return this.#isPart;
  }

  /** Forgets all that was loaded. A write may have outdated it. */
  forget(): void {
    this.#loaders.clear();
    this.confirmations.clear();
    this.#unfolding = new Unfolding(this.ctx.mirror.shared, this, this.ctx.mirror.pace);
  }

  /** The repositories on which the answer depends. Null: it depends on more than these. */
  get met(): ReadonlySet<number> | null {
    return this.#isOfNow ? null : this.#unfolding.met;
  }

  /** Notes that the answer becomes another as time passes, so it is not kept. */
  dependsOnTime(): void {
    this.#isOfNow = true;
  }

  /** Notes that the answer shows what was read at this time, whenever upstream confirmed its repository. */
  showsReadAt(readAt: Date): void {
    this.#readAt = this.#readAt && this.#readAt < readAt ? this.#readAt : readAt;
    // A kept answer would have the repository's time.
    this.#isOfNow = true;
  }

  /**
   * Notes that the answer shows what upstream permits the caller. No revision tells of that, so the answer is not kept.
   */
  showsRights(): void {
    if (this.caller.by.of === "upstream") this.#isOfNow = true;
  }

  /**
   * The confirmation that is read before the rows of a document where a replica alone is read, since one that was cut off
   * replays minutes in a moment. Null: the document itself finds each repository before the rows in it, so its confirmation is early
   * enough.
   */
  async confirmedBefore({ selectionSet }: OperationDefinitionNode): Promise<Confirmation | null> {
    const isFound = (one: SelectionNode) => one.kind === "Field" && FINDS.has(one.name.value);
    if (!this.#db.isReadOnly || selectionSet.selections.every(isFound)) return null;
    return await findOldestConfirmation(this.#ctx.readDb, this.access);
  }

  /** The confirmation of all that the answer shows: its least fresh repository decides. Undefined: it shows none. */
  async confirmation(before: Confirmation | null): Promise<Confirmation | undefined> {
    const ids = [...this.shownRepositories];
    if (ids.length === 0) return undefined;
    const known = ids.flatMap((id) => this.confirmations.get(id) ?? []);
    const shown = known.length === ids.length ? known : [await findConfirmation(this.#ctx.db, ids)];
    const read = this.#readAt && { confirmedAt: this.#readAt, missing: null };
    return joinConfirmations([...shown, before, read].filter((one) => one != null));
  }

  /** Counts with `read` in this repository, or answers the kept count if nothing has changed. */
  async counted(repositoryId: number, list: string, read: () => Promise<Count>): Promise<Count> {
    const key = `${repositoryId} ${list}`;
    const kept = await this.counts.get(key, this.reading);
    if (kept) return kept;
    const before = this.reading.soFar();
    const count = await read();
    this.counts.keep(key, () => count, { shown: [PEOPLE, repositoryId], before });
    return count;
  }

  /**
   * The texts of this repository's issues that were written in this view. Null: there are none, or something has
   * changed.
   */
  async issueTexts(repositoryId: number, view: string): Promise<WrittenTexts | null> {
    // The key names the caller, since some fields show who asks.
    const isWhole = this.beyond !== null;
    const key = `${view} ${isWhole} ${this.caller.userId} ${classOf(this.caller)} ${this.api}\n${repositoryId}`;
    const kept = await this.texts.get(key, this.reading);
    const shown = [PEOPLE, repositoryId];
    const texts = kept ?? this.texts.keep(key, () => new IssueTexts(), { shown, before: this.reading.soFar() });
    if (!texts) return null;
    return {
      isEmpty: texts.bytes === 0,
      get: (number) => texts.get(number),
      add: (number, text) => {
        // Otherwise the text could show another repository, or lack what only upstream knows.
        if (this.beyond?.signal.aborted || this.#isPart || !this.met || [...this.met].some((id) => id !== repositoryId))
          return;
        texts.add(number, text);
        this.texts.weigh(key, texts);
      },
    };
  }

  /**
   * The loader of this name, for what the fields of one level ask for together: the number of statements does not grow
   * with the number of rows, nor with the number of places that ask. No field gets a database otherwise.
   * @param load answers one value for each key, in the keys' order, with a number of statements that does not grow with
   *   theirs
   */
  loader<Key, Value>(
    name: string,
    load: (keys: Key[], db: Database) => Promise<readonly Value[]>,
  ): DataLoader<Key, Value, string> {
    // No type can say that a name always goes with the same keys and values.
    const known = this.#loaders.get(name) as DataLoader<Key, Value, string> | undefined;
    if (known) return known;
    const loader = new DataLoader<Key, Value, string>((keys) => load([...keys], this.#db), {
      ...OF_A_LEVEL,
      cacheKeyFn: (key) => JSON.stringify(key),
    });
    this.#loaders.set(name, loader);
    return loader;
  }

  /** Unfolds these documents together with all others that are asked for at this moment. */
  async unfold(kind: NodeKind, documents: StoredDocument[]): Promise<Node[]> {
    for (const { repositoryId } of documents) if (repositoryId !== 0) this.shownRepositories.add(repositoryId);
    const unfolded = await this.#unfoldings.load(documents);
    return unfolded.map((rest, at) => ({ kind, repositoryId: documents[at]?.repositoryId ?? 0, rest }));
  }

  /** The same of documents some of which were not found. */
  async unfoldEach(kind: NodeKind, documents: readonly (StoredDocument | null)[]): Promise<(Node | null)[]> {
    const nodes = await this.unfold(
      kind,
      documents.filter((one) => one !== null),
    );
    return documents.map((one) => (one === null ? null : (nodes.shift() ?? null)));
  }

  /** The caller as one who writes to this repository, by the mutation that runs now. */
  asWriter(repository: Writer["repository"]): Writer {
    const route = `mutation ${this.mutation}`;
    return { ctx: this.#ctx, caller: this.caller, requestId: this.requestId, route, repository };
  }

  /** Has the repository's list read again, as the caller's share permits: see `want`. */
  async wantList(kind: Kind, repositoryId: number): Promise<void> {
    const { clock, upstream } = this.ctx;
    const mayAsk = () => upstream.takeDoubt(this.caller);
    await this.loader<number, null>(`wanted ${kind}`, async (ids) => {
      // One after the other, since the receiver and writes share these connections.
      for (const id of ids)
        await want(this.#ctx.db, { kind, repositoryId: id, parentId: null }, { now: clock.now(), mayAsk });
      return ids.map(() => null);
    }).load(repositoryId);
  }

  repository(id: number): Promise<Node | null> {
    return this.#repositories.load(id);
  }

  /** @throws GraphQLError NOT_FOUND for a repository that the caller does not see */
  async requireRepositoryById(id: number): Promise<Node> {
    const repository = await this.repository(id);
    if (repository) return repository;
    this.lacks();
    throw typedError("NOT_FOUND", "Could not resolve to a Repository.");
  }

  /**
   * Runs `show` for callers who have the right. Most callers have it in every repository that they see.
   * @throws GraphQLError FORBIDDEN; NOT_FOUND for a repository that the caller does not see
   */
  withRight<Shown>(
    { repositoryId, right }: { repositoryId: number; right: Right },
    show: () => Shown | Promise<Shown>,
  ): Shown | Promise<Shown> {
    return hasWhereSeen(this.access, right) ? show() : this.#requireRight(repositoryId, right).then(show);
  }

  async #requireRight(repositoryId: number, right: Right): Promise<void> {
    const { rest } = await this.requireRepositoryById(repositoryId);
    const isSeen = sees(this.access, { id: repositoryId, isPrivate: rest.private === true }, right);
    if (!isSeen) throw notGiven(notAccessible(this.caller));
  }

  get #repositories(): DataLoader<number, Node | null, string> {
    const { repositories } = this.ctx.mirror;
    return this.loader("repositories by id", (ids: number[]) =>
      Promise.all(ids.map(async (id) => this.#located(await repositories.byId(id, this.access)))),
    );
  }

  async repositoryNamed(fullName: string, followRenames: boolean): Promise<Node | null> {
    const name = fullName.toLowerCase();
    const found = await this.loader(`repositories by name, ${followRenames}`, (names: string[], db) =>
      this.#allNamed(names, db, followRenames),
    ).load(name);
    // A repository that is found by its name is found by its id.
    if (found) this.#repositories.prime(found.repositoryId, found);
    // Another repository may get the former name, and the revision of this repository would not show that.
    if (found && String(found.rest.full_name).toLowerCase() !== name) this.#isOfNow = true;
    return found;
  }

  /** The repository of this name. @throws GraphQLError NOT_FOUND, also for a repository that the caller may not see */
  async requireRepository(owner: string, name: string, followRenames: boolean): Promise<Node> {
    const repository = await this.repositoryNamed(`${owner}/${name}`, followRenames);
    if (repository) return repository;
    this.lacks();
    throw typedError("NOT_FOUND", `Could not resolve to a Repository with the name '${owner}/${name}'.`);
  }

  async #allNamed(names: readonly string[], db: Database, followRenames: boolean): Promise<(Node | null)[]> {
    const { repositories } = this.ctx.mirror;
    const found = await Promise.all(names.map((name) => repositories.namedOrKept(name, this.access, this.reading)));
    const missing = followRenames ? names.filter((_, at) => !found[at]) : [];
    const renamed = missing.length > 0 ? await findRenamedRepositories(db, missing, this.access) : null;
    return Promise.all(names.map((name, at) => this.#located(found[at] ?? renamed?.get(name) ?? null)));
  }

  async #located(found: ShownRepository | null): Promise<Node | null> {
    const rest = found && (await this.#unfolding.repository(found.id));
    if (!found || !rest) return null;
    this.shownRepositories.add(found.id);
    this.confirmations.set(found.id, found);
    return { kind: "Repository", repositoryId: found.id, rest };
  }

  numbered(kind: "Issue" | "PullRequest" | "Milestone", repositoryId: number, number: number): Promise<Node | null> {
    const find = (wanted: { repositoryId: number; number: number }[], db: Database) => findByNumber(db, kind, wanted);
    return this.#found(`${kind} by number`, kind, find, (key) => `${key.repositoryId}/${key.number}`).load({
      repositoryId,
      number,
    });
  }

  label(repositoryId: number, name: string): Promise<Node | null> {
    const find = (wanted: { repositoryId: number; name: string }[], db: Database) => findLabelsByName(db, wanted);
    return this.#found("labels by name", "Label", find, (key) => `${key.repositoryId}/${key.name}`).load({
      repositoryId,
      name,
    });
  }

  byId(kind: RepositoryNodeKind, id: number): Promise<Node | null> {
    return this.#found(`${kind} by id`, kind, (ids: number[], db) => findById(db, kind, ids, this.access), String).load(
      id,
    );
  }

  /** The whole account, with the fields that only a read of the single account shows. */
  async user(id: number): Promise<Node | null> {
    return asActor(
      await this.#found("users by id", "User", (ids: number[], db) => findUsersById(db, ids), String).load(id),
    );
  }

  /** The whole account, if something shown already refers to it. Undefined: `user` has to ask. */
  knownUser(id: number): Fields | null | undefined {
    return this.#unfolding.user(id);
  }

  /** What upstream shows at once of an account whose name the mirror does not know yet. Null: it cannot be asked. */
  askedName(id: number): Promise<Fields | null> {
    return this.loader("asked names", (ids: number[]) => askNames(this.#ctx, this, ids)).load(id);
  }

  async userNamed(login: string): Promise<Node | null> {
    const find = (logins: string[], db: Database) => findUsersByLogin(db, logins);
    return asActor(await this.#found("users by login", "User", find, String).load(login.toLowerCase()));
  }

  #found<Key>(
    name: string,
    kind: NodeKind,
    find: (keys: Key[], db: Database) => Promise<FoundNode[]>,
    keyOf: (key: Key) => string,
  ): DataLoader<Key, Node | null, string> {
    return this.loader<Key, Node | null>(name, async (keys, db) => {
      const rows = await find(keys, db);
      const nodes = await this.unfold(kind, rows);
      const byKey = new Map(rows.map((row, at) => [row.key, nodes[at]]));
      return keys.map((key) => byKey.get(keyOf(key)) ?? null);
    });
  }
}
