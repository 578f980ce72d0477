import type { Database } from "../../../../db/database.ts";
import { compiled, type SQL } from "../../../../db/sql.ts";
import { MOST_LABELS } from "../../../mirror/read/label-lists.ts";
import {
  countPages,
  findPages,
  InvalidPositionError,
  type ListPosition,
  type PageRequest,
  type PageRow,
  type PageSource,
  type Parent,
} from "../../../mirror/read/pages.ts";
import type { StoredDocument } from "../../../mirror/render/rendering.ts";
import { readCursor, writeCursor } from "../../dialect/paging.ts";
import type { GraphqlCall, ListNames } from "../call/call.ts";
import type { Count, WrittenTexts } from "../call/kept-lists.ts";
import type { Node, NodeKind } from "../call/node.ts";
import { MAX_PAGE } from "../documents/query.ts";
import { typedError } from "../run/errors.ts";
import { WrittenResource } from "../run/execution.ts";
import { type FieldInfo, selects } from "../run/plan.ts";

export interface PageArguments {
  first?: number | null;
  last?: number | null;
  after?: string | null;
  before?: string | null;
}

/** A node to show. Null: the resource was deleted after it was found. */
type ShownNode = Node | WrittenResource | null;

interface ConnectionPage {
  /** The nodes, as the field with this info shows them. */
  nodes: (info?: FieldInfo) => ShownNode[] | Promise<ShownNode[]>;
  positions: ListPosition[];
  hasNextPage: boolean;
  hasPreviousPage: boolean;
}

/** What a connection's fields ask for; each is computed when it is selected. */
export interface Connection {
  nodes: (args?: unknown, call?: unknown, info?: FieldInfo) => ReturnType<ConnectionPage["nodes"]>;
  edges: () => ConnectionEdge[] | Promise<ConnectionEdge[]>;
  pageInfo: () => PageInfo | Promise<PageInfo>;
  totalCount: () => number | Promise<number>;
}

interface ConnectionEdge {
  cursor: string;
  node: ShownNode;
}

interface PageInfo {
  startCursor: string | null;
  endCursor: string | null;
  hasNextPage: boolean;
  hasPreviousPage: boolean;
}

/**
 * A connection over a list that a resource holds itself. `keyOf` gives the order; nodes with equal keys come by
 * database id.
 */
export function heldConnection(
  info: FieldInfo,
  args: PageArguments,
  held: Node[],
  { keyOf, direction = "asc" }: { keyOf: (node: Node, at: number) => string; direction?: "asc" | "desc" },
): Connection {
  const request = pageRequest(info, args, position);
  const rows = held.map((node, at) => ({ node, key: keyOf(node, at), rowId: Number(node.rest.id) }));
  const order = (a: ListPosition, b: ListPosition) =>
    (a.key < b.key ? -1 : a.key > b.key ? 1 : a.rowId - b.rowId) * (direction === "asc" ? 1 : -1);
  rows.sort(order);
  const load = (wanted: PageRequest): ConnectionPage => {
    const { after, before } = wanted;
    const between = rows.filter((row) => (!after || order(row, after) > 0) && (!before || order(row, before) < 0));
    const found = wanted.fromEnd ? between.slice(-wanted.limit - 1) : between.slice(0, wanted.limit + 1);
    const { page, more } = cut(found, wanted);
    const nodes = page.map(({ node }) => node);
    return { nodes: () => nodes, positions: page, ...neighbours(more, wanted) };
  };
  return connection(request, load, () => rows.length);
}

/** A connection over pages that `load` reads. A page that is there already is answered without waiting. */
function connection<Loaded extends ConnectionPage | Promise<ConnectionPage>>(
  request: PageRequest | null,
  load: (request: PageRequest, shownBy: FieldInfo | undefined) => Loaded,
  totalCount: Connection["totalCount"],
): Connection {
  let loading: Loaded | null = null;
  const ofPage = <T>(show: (page: ConnectionPage) => T | Promise<T>, shownBy?: FieldInfo): T | Promise<T> => {
    if (!request) throw new Error("A page was asked for without its bounds, which is refused before");
    loading ??= load(request, shownBy);
    return loading instanceof Promise ? loading.then(show) : show(loading);
  };
  const cursor = ({ key, rowId }: ListPosition) => writeCursor([key, rowId]);
  return {
    totalCount,
    nodes: (_args, _call, info) => ofPage(({ nodes }) => nodes(info), info),
    edges: () =>
      ofPage((page) => {
        const edgesOf = (nodes: ShownNode[]) =>
          page.positions.map((position, at) => ({ node: nodes[at] ?? null, cursor: cursor(position) }));
        const nodes = page.nodes();
        return nodes instanceof Promise ? nodes.then(edgesOf) : edgesOf(nodes);
      }),
    pageInfo: () =>
      ofPage(({ positions, hasNextPage, hasPreviousPage }) => {
        const [first, last] = [positions[0], positions.at(-1)];
        return {
          startCursor: first ? cursor(first) : null,
          endCursor: last ? cursor(last) : null,
          hasNextPage,
          hasPreviousPage,
        };
      }),
  };
}

/** The same connection with other nodes. One that was deleted after it was found stays null. */
export function mapped(of: Connection, change: (node: Node) => Node): Connection {
  const changed = (node: ShownNode) => (node !== null && "rest" in node ? change(node) : node);
  return {
    ...of,
    nodes: async (...asked) => (await of.nodes(...asked)).map(changed),
    edges: async () => (await of.edges()).map((edge) => ({ ...edge, node: changed(edge.node) })),
  };
}

/** Cuts rows to a page. One row more than was asked for means that there is a further page. */
function cut<Row>(rows: Row[], { limit, fromEnd }: PageRequest): { page: Row[]; more: boolean } {
  const more = rows.length > limit;
  if (!more) return { page: rows, more };
  return { page: fromEnd ? rows.slice(rows.length - limit) : rows.slice(0, limit), more };
}

/** Whether there are pages on either side. Beyond a cursor there is at least the row that the cursor names. */
function neighbours(
  more: boolean,
  { fromEnd, after, before }: PageRequest,
): Pick<ConnectionPage, "hasNextPage" | "hasPreviousPage"> {
  return fromEnd
    ? { hasNextPage: before !== null, hasPreviousPage: more }
    : { hasNextPage: more, hasPreviousPage: after !== null };
}

/**
 * The page that is asked for. `read` reads a cursor. Null: only the count is selected, for which the service asks no
 * bounds.
 * @throws GraphQLError for bounds that the service refuses
 */
export function pageRequest<Place>(
  info: FieldInfo,
  { first, last, after, before }: PageArguments,
  read: (cursor: string) => Place | null,
): { after: Place | null; before: Place | null; fromEnd: boolean; limit: number; withBody: boolean } | null {
  const name = info.fieldName;
  const limit = first ?? last ?? null;
  if (limit === null) {
    if (!selectsPage(info)) return null;
    throw typedError(
      "MISSING_PAGINATION_BOUNDARIES",
      `You must provide a \`first\` or \`last\` value to properly paginate the \`${name}\` connection.`,
    );
  }
  if (first != null && last != null) {
    throw typedError(
      "INVALID_PAGINATION_ARGUMENTS",
      `Passing both \`first\` and \`last\` to paginate the \`${name}\` connection is not supported.`,
    );
  }
  const side = first != null ? "first" : "last";
  if (limit < 0)
    throw typedError(
      "INVALID_PAGINATION_ARGUMENTS",
      `\`${side}\` on the \`${name}\` connection cannot be less than zero.`,
    );
  if (limit > MAX_PAGE) {
    throw typedError(
      "EXCESSIVE_PAGINATION",
      `Requesting ${limit} records on the \`${name}\` connection exceeds the \`${side}\` limit of ${MAX_PAGE} records.`,
    );
  }
  const placeAt = (cursor: string | null | undefined) => {
    if (cursor == null || cursor === "") return null;
    const place = read(cursor);
    if (place === null) throw invalidCursor(cursor);
    return place;
  };
  return { after: placeAt(after), before: placeAt(before), fromEnd: first == null, limit, withBody: selectsBody(info) };
}

/** The position that a cursor names. Null: the text is no cursor of a list. */
function position(text: string): ListPosition | null {
  const [key, rowId] = readCursor(text) ?? [];
  return typeof key === "string" && rowId !== undefined ? { key, rowId } : null;
}

function invalidCursor(text: string): Error {
  return typedError("INVALID_CURSOR_ARGUMENTS", `\`${text}\` does not appear to be a valid cursor.`);
}

/** Whether a body is selected anywhere below the field, of whatever type. */
function selectsBody(info: FieldInfo): boolean {
  return selects(info, ({ name }) => name.value === "body");
}

const PAGE_FIELDS: ReadonlySet<string> = new Set(["nodes", "edges", "pageInfo"]);

function selectsPage(info: FieldInfo): boolean {
  return selects(info, ({ name }) => PAGE_FIELDS.has(name.value), { isDeep: false });
}

/** Rows whose texts may be kept, so that their documents need not be read. A row is named by its `rowId`. */
export interface KeptRows {
  /** The texts that were written in this view; null: there are none to use. */
  textsIn: (view: string) => Promise<WrittenTexts | null>;
  documents: (rowIds: readonly number[], request: PageRequest) => Promise<ReadonlyMap<number, StoredDocument>>;
}

interface StoredParts {
  kind: NodeKind;
  source: PageSource;
  parent: Parent;
  kept?: KeptRows;
}

/** A connection over rows of the mirror: pages of all parents at one level come from one statement. */
export function storedConnection(
  call: GraphqlCall,
  info: FieldInfo,
  args: PageArguments,
  stored: StoredParts,
): Connection & { sum: (measure: SQL) => Promise<number> } {
  refuseManyLabels(args);
  const list = new StoredList(call, info, args, stored);
  const load = (wanted: PageRequest, shownBy: FieldInfo | undefined) => list.page(wanted, shownBy);
  return {
    ...connection(pageRequest(info, args, position), load, async () => (await list.count()).count),
    sum: async (measure) => (await list.counted(measure)).sum,
  };
}

/** @throws GraphQLError for more labels than an issue can have */
function refuseManyLabels({
  labels,
  filterBy,
}: PageArguments & {
  labels?: readonly string[] | null;
  filterBy?: { labels?: readonly string[] | null } | null;
}): void {
  const most = Math.max(labels?.length ?? 0, filterBy?.labels?.length ?? 0);
  if (most > MOST_LABELS)
    throw typedError("ARGUMENT_LIMIT", `You may not provide more than ${MOST_LABELS} labels; you provided ${most}.`);
}

/** Names the pages and the counts of a field. */
function connectionNames({ parentType, fieldName }: FieldInfo, args: PageArguments, { from }: PageSource): ListNames {
  const field = [parentType.name, fieldName, compiled(from).text];
  const { first: _first, last: _last, after: _after, before: _before, ...filter } = args;
  return { name: JSON.stringify([...field, args]), countName: JSON.stringify([...field, filter]) };
}

/** One parent's rows of a list. Fields with the same arguments share their statement, whatever their parents. */
class StoredList {
  readonly #call: GraphqlCall;
  readonly #args: PageArguments;
  readonly #stored: StoredParts;
  readonly #names: ListNames;
  readonly #isOfRepository: boolean;

  constructor(call: GraphqlCall, info: FieldInfo, args: PageArguments, stored: StoredParts) {
    this.#call = call;
    this.#args = args;
    this.#stored = stored;
    this.#names = call.listNames.getOrInsertComputed(args, () => connectionNames(info, args, stored.source));
    // People are not rows of a repository, so their counts do not change with it.
    this.#isOfRepository = info.parentType.name === "Repository" && stored.kind !== "User";
  }

  async page(wanted: PageRequest, loadedFor: FieldInfo | undefined): Promise<ConnectionPage> {
    const texts = await this.#textsFor(loadedFor);
    const withoutDocuments = texts !== null && !texts.isEmpty;
    const found = await this.#find({ ...wanted, withoutDocuments });
    const load = (rows: readonly PageRow[]) =>
      withoutDocuments ? this.#readNodes(rows, wanted) : this.#nodesOf(rows.map(({ stored }) => stored));
    let all: Promise<(Node | null)[]> | null = null;
    return {
      ...found,
      nodes: async (shownBy) => {
        const written = await this.#textsFor(shownBy);
        if (written) return writtenOr(written, found.positions, load);
        all ??= load(found.positions);
        return all;
      },
    };
  }

  /** Where the list is read: lists that no index orders have a place of their own. */
  #among(db: Database): Database {
    return this.#stored.source.isFiltered ? this.#call.searchDb : db;
  }

  count(): Promise<Count> {
    return this.#isOfRepository
      ? this.#call.counted(this.#stored.parent.r, this.#names.countName, () => this.counted())
      : this.counted();
  }

  /** Counts the rows anew, and sums up `measure` if there is one. */
  counted(measure?: SQL): Promise<Count> {
    const { source, parent } = this.#stored;
    const count = (parents: Parent[], db: Database) => countPages(this.#among(db), source, parents, measure);
    return this.#call
      .loader<Parent, Count>(`count ${measure && compiled(measure).text} ${this.#names.countName}`, count)
      .load(parent);
  }

  async #find(wanted: PageRequest) {
    const name = `page ${this.#names.name} ${wanted.withBody} ${wanted.withoutDocuments}`;
    const rows = await this.#call
      .loader<Parent, PageRow[]>(name, (parents, db) => this.#findAll(parents, wanted, this.#among(db)))
      .load(this.#stored.parent);
    const { page, more } = cut(rows, wanted);
    return { positions: page, ...neighbours(more, wanted) };
  }

  async #findAll(parents: Parent[], wanted: PageRequest, db: Database): Promise<PageRow[][]> {
    try {
      return await findPages(db, this.#stored.source, parents, wanted);
    } catch (error) {
      const { after, before } = this.#args;
      if (error instanceof InvalidPositionError) throw invalidCursor(after ?? before ?? "");
      throw error;
    }
  }

  async #textsFor(shownBy: FieldInfo | undefined): Promise<WrittenTexts | null> {
    const { kept } = this.#stored;
    return kept && shownBy?.view ? kept.textsIn(shownBy.view) : null;
  }

  #nodesOf(documents: StoredDocument[]): Promise<Node[]> {
    return this.#call.unfold(this.#stored.kind, documents);
  }

  /** The nodes of rows that were found without their documents. */
  async #readNodes(rows: readonly PageRow[], wanted: PageRequest): Promise<(Node | null)[]> {
    const rowIds = rows.map(({ rowId }) => rowId);
    const documents = (await this.#stored.kept?.documents(rowIds, wanted)) ?? new Map<number, StoredDocument>();
    const nodes = await this.#nodesOf([...documents.values()]);
    const byRowId = new Map([...documents.keys()].map((rowId, at) => [rowId, nodes[at] ?? null]));
    return rowIds.map((rowId) => byRowId.get(rowId) ?? null);
  }
}

/** The kept text of each row. A row without one gets its resource, whose text is kept once it is written. */
async function writtenOr(
  written: WrittenTexts,
  rows: readonly PageRow[],
  load: (rows: readonly PageRow[]) => Promise<(Node | null)[]>,
): Promise<ShownNode[]> {
  const shown = rows.map(({ rowId }) => {
    const text = written.get(rowId);
    return text === undefined ? null : new WrittenResource(text);
  });
  const missing = rows.filter((_, at) => shown[at] === null);
  if (missing.length === 0) return shown;
  const loaded = (await load(missing)).values();
  return rows.map(({ rowId }, at) => {
    if (shown[at]) return shown[at];
    const node = loaded.next().value;
    return node ? { ...node, keep: (text: string) => written.add(rowId, text) } : null;
  });
}
