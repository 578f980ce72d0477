import type { ListPosition, PageRequest } from "../../../mirror/read/pages.ts";
import { readCursor, writeCursor } from "../../dialect/cursor.ts";
import { typedError } from "../errors.ts";
import type { Node } from "../node.ts";
import { MAX_PAGE } from "../run/cost.ts";
import type { WrittenResource } from "../run/execution.ts";
import type { FieldInfo } from "../run/plan.ts";
import { selects } from "../run/selections.ts";

export interface PageArguments {
  first?: number | null;
  last?: number | null;
  after?: string | null;
  before?: string | null;
}

/** A node to show. Null: the resource was deleted after it was found. */
export type ShownNode = Node | WrittenResource | null;

export interface ConnectionPage {
  /** The nodes, as the field with this info shows them. */
  nodes: (info?: FieldInfo) => ShownNode[] | Promise<ShownNode[]>;
  positions: ListPosition[];
  hasNextPage: boolean;
  hasPreviousPage: boolean;
}

/** What a connection's fields ask for; each is computed when it is selected. */
export interface Connection {
  nodes: (args?: unknown, call?: unknown, info?: FieldInfo) => ReturnType<ConnectionPage["nodes"]>;
  edges: () => Edge[] | Promise<Edge[]>;
  pageInfo: () => PageInfo | Promise<PageInfo>;
  totalCount: () => number | Promise<number>;
}

interface Edge {
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
 * A connection over a list that a resource holds itself. `keyOf` gives the order; the node's database id breaks ties.
 */
export function heldConnection(
  info: FieldInfo,
  args: PageArguments,
  held: Node[],
  { keyOf, direction = "asc" }: { keyOf: (node: Node, at: number) => string; direction?: "asc" | "desc" },
): Connection {
  const request = pageRequest(info, args, position);
  const rows = held.map((node, at) => ({ node, key: keyOf(node, at), tie: Number(node.rest.id) }));
  const order = (a: ListPosition, b: ListPosition) =>
    (a.key < b.key ? -1 : a.key > b.key ? 1 : a.tie - b.tie) * (direction === "asc" ? 1 : -1);
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
export function connection<Loaded extends ConnectionPage | Promise<ConnectionPage>>(
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
  const cursor = ({ key, tie }: ListPosition) => writeCursor([key, tie]);
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

/** Cuts rows to a page. One row more than was asked for means that there is a further page. */
export function cut<Row>(rows: Row[], { limit, fromEnd }: PageRequest): { page: Row[]; more: boolean } {
  const more = rows.length > limit;
  if (!more) return { page: rows, more };
  return { page: fromEnd ? rows.slice(rows.length - limit) : rows.slice(0, limit), more };
}

/** Whether there are pages on either side. Beyond a cursor there is at least the row that the cursor names. */
export function neighbours(
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
export function position(text: string): ListPosition | null {
  const [key, tie] = readCursor(text) ?? [];
  return typeof key === "string" && tie !== undefined ? { key, tie } : null;
}

export function invalidCursor(text: string): Error {
  return typedError("INVALID_CURSOR_ARGUMENTS", `\`${text}\` does not appear to be a valid cursor.`);
}

/** Whether a body is selected anywhere below the field, of whatever type. */
function selectsBody(info: FieldInfo): boolean {
  return selects(info, ({ name }) => name.value === "body");
}

const PAGE_FIELDS = new Set(["nodes", "edges", "pageInfo"]);

function selectsPage(info: FieldInfo): boolean {
  return selects(info, ({ name }) => PAGE_FIELDS.has(name.value), { isDeep: false });
}
