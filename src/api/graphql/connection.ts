import { type FieldNode, type GraphQLResolveInfo, Kind, type SelectionSetNode } from "graphql";
import {
  countPages,
  findPages,
  InvalidPositionError,
  type PageRequest,
  type PageSource,
  type Parent,
  type Position,
} from "../../mirror/find-pages.ts";
import type { StoredDocument } from "../../mirror/rendering.ts";
import { readCursor, writeCursor } from "../cursor.ts";
import type { GraphqlCall, Node, NodeKind } from "./call.ts";
import { MAX_PAGE } from "./cost.ts";
import { typedError } from "./errors.ts";

export interface PageArguments {
  first?: number | null;
  last?: number | null;
  after?: string | null;
  before?: string | null;
}

interface Page {
  nodes: Node[];
  positions: Position[];
  hasNextPage: boolean;
  hasPreviousPage: boolean;
}

/** What a connection's fields ask for; each is computed when it is selected. */
export interface Connection {
  nodes: () => Promise<Node[]>;
  edges: () => Promise<{ cursor: string; node: Node }[]>;
  pageInfo: () => Promise<{
    startCursor: string | null;
    endCursor: string | null;
    hasNextPage: boolean;
    hasPreviousPage: boolean;
  }>;
  totalCount: () => Promise<number>;
}

/** A connection over rows of the mirror: pages of all parents at one level come from one statement. */
export function storedConnection(
  call: GraphqlCall,
  info: GraphQLResolveInfo,
  args: PageArguments,
  { kind, source, parent }: { kind: NodeKind; source: PageSource; parent: Parent },
): Connection & { sum: (measure: string) => Promise<number> } {
  const request = pageRequest(info, args, position);
  // Fields with the same arguments share their statement, whatever their parents.
  const name = JSON.stringify([info.parentType.name, info.fieldName, source.from, args]);
  const load = async (wanted: PageRequest): Promise<Page> => {
    const rows = await call
      .batch<Parent, Awaited<ReturnType<typeof findPages>>[number]>(`page ${name}`, async (parents) => {
        try {
          return await findPages(call.ctx.db, source, parents, wanted);
        } catch (error) {
          if (error instanceof InvalidPositionError) throw invalidCursor(args.after ?? args.before ?? "");
          throw error;
        }
      })
      .load(parent);
    const { page, more } = cut(rows, wanted);
    const nodes = await call.render(
      kind,
      page.map(({ columns }) => columns as unknown as StoredDocument),
    );
    return { nodes, positions: page, ...neighbours(more, wanted) };
  };
  const count = (measure?: string) =>
    call
      .batch<Parent, { count: number; sum: number }>(`count ${measure} ${name}`, (parents) =>
        countPages(call.ctx.db, source, parents, measure),
      )
      .load(parent);
  return {
    ...connection(request, load, async () => (await count()).count),
    sum: async (measure) => (await count(measure)).sum,
  };
}

/** A connection over what a resource holds itself. `keyOf` orders; the node's database id breaks ties. */
export function heldConnection(
  info: GraphQLResolveInfo,
  args: PageArguments,
  held: Node[],
  { keyOf, direction = "asc" }: { keyOf: (node: Node, at: number) => string; direction?: "asc" | "desc" },
): Connection {
  const request = pageRequest(info, args, position);
  const rows = held.map((node, at) => ({ node, key: keyOf(node, at), tie: Number(node.rest.id) }));
  const order = (a: Position, b: Position) =>
    (a.key < b.key ? -1 : a.key > b.key ? 1 : a.tie - b.tie) * (direction === "asc" ? 1 : -1);
  rows.sort(order);
  const load = async (wanted: PageRequest): Promise<Page> => {
    const { after, before } = wanted;
    const between = rows.filter((row) => (!after || order(row, after) > 0) && (!before || order(row, before) < 0));
    const found = wanted.fromEnd ? between.slice(-wanted.limit - 1) : between.slice(0, wanted.limit + 1);
    const { page, more } = cut(found, wanted);
    return { nodes: page.map(({ node }) => node), positions: page, ...neighbours(more, wanted) };
  };
  return connection(request, load, async () => rows.length);
}

function connection(
  request: PageRequest | null,
  load: (request: PageRequest) => Promise<Page>,
  totalCount: () => Promise<number>,
): Connection {
  let loading: Promise<Page> | null = null;
  const page = () => {
    if (!request) throw new Error("A page was asked for without its bounds, which is refused before");
    loading ??= load(request);
    return loading;
  };
  const cursor = ({ key, tie }: Position) => writeCursor([key, tie]);
  return {
    totalCount,
    nodes: async () => (await page()).nodes,
    edges: async () => {
      const { nodes, positions } = await page();
      return nodes.map((node, at) => ({ node, cursor: cursor(positions[at] as Position) }));
    },
    pageInfo: async () => {
      const { positions, hasNextPage, hasPreviousPage } = await page();
      const [first, last] = [positions[0], positions.at(-1)];
      return {
        startCursor: first ? cursor(first) : null,
        endCursor: last ? cursor(last) : null,
        hasNextPage,
        hasPreviousPage,
      };
    },
  };
}

/** There is one row more than was asked for when there is a further page. */
function cut<Row>(rows: Row[], { limit, fromEnd }: PageRequest): { page: Row[]; more: boolean } {
  const more = rows.length > limit;
  if (!more) return { page: rows, more };
  return { page: fromEnd ? rows.slice(rows.length - limit) : rows.slice(0, limit), more };
}

/** On the side of the cursor there is at least the row that it names. */
function neighbours(
  more: boolean,
  { fromEnd, after, before }: PageRequest,
): Pick<Page, "hasNextPage" | "hasPreviousPage"> {
  return fromEnd
    ? { hasNextPage: before !== null, hasPreviousPage: more }
    : { hasNextPage: more, hasPreviousPage: after !== null };
}

/**
 * `read` reads a cursor. Null: only the count is selected, for which the service asks no bounds.
 * @throws GraphQLError for bounds that the service refuses
 */
export function pageRequest<Place>(
  info: GraphQLResolveInfo,
  { first, last, after, before }: PageArguments,
  read: (cursor: string) => Place | null,
): { after: Place | null; before: Place | null; fromEnd: boolean; limit: number } | null {
  const name = info.fieldName;
  if (first == null && last == null) {
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
  const [side, limit] = first != null ? ["first", first] : ["last", last as number];
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
  return { after: placeAt(after), before: placeAt(before), fromEnd: first == null, limit };
}

/** Null for what is no cursor of a list. */
function position(text: string): Position | null {
  const [key, tie] = readCursor(text) ?? [];
  return typeof key === "string" && tie !== undefined ? { key, tie } : null;
}

function invalidCursor(text: string): Error {
  return typedError("INVALID_CURSOR_ARGUMENTS", `\`${text}\` does not appear to be a valid cursor.`);
}

const PAGE_FIELDS = new Set(["nodes", "edges", "pageInfo"]);

function selectsPage({ fieldNodes, fragments }: GraphQLResolveInfo): boolean {
  const selects = (set: SelectionSetNode | undefined): boolean =>
    set?.selections.some((selection) => {
      if (selection.kind === Kind.FIELD) return PAGE_FIELDS.has((selection as FieldNode).name.value);
      if (selection.kind === Kind.INLINE_FRAGMENT) return selects(selection.selectionSet);
      return selects(fragments[selection.name.value]?.selectionSet);
    }) ?? false;
  return fieldNodes.some(({ selectionSet }) => selects(selectionSet));
}
