/**
 * Connections: pages over rows in a total order (key, then id), forwards and backwards, by opaque cursors.
 *
 * A source yields rows lazily from any place, so a page costs its own length and not the number of rows.
 */
import type { GraphQLResolveInfo } from "graphql";
import type { OrderedIndex } from "../world/ordered-index.ts";
import type { Row as LaggingRow } from "../world/replica-lag.ts";
import { type Call, selects, typedError, work } from "./call.ts";
import { PAGE_LIMIT } from "./cost.ts";
import { decodeCursor, encodeCursor } from "./cursor.ts";

/** Sort keys: epoch seconds, counts, names. Null stands behind everything. */
export type Key = number | string | null;

interface Place {
  readonly key: Key;
  readonly id: number;
}

export interface Source<Row> {
  /** Rows in the connection's order, those after `from` if given. */
  forward(from?: Place): Iterable<Row>;
  /** Rows against the connection's order, those before `from` if given. */
  backward(from?: Place): Iterable<Row>;
  placeOf(row: Row): Place;
  /** Negative when `a` stands before `b` in the connection's order. */
  compare(a: Place, b: Place): number;
  count(): number;
  /** Whether keys are epoch seconds: cursors then say them as ISO time, as the service does. */
  readonly timed: boolean;
}

export interface PageArguments {
  readonly first?: number | null;
  readonly last?: number | null;
  readonly after?: string | null;
  readonly before?: string | null;
}

export interface Connection<Row> {
  nodes(): (Row | null)[];
  edges(): { cursor: string; node: Row | null }[];
  pageInfo(): { startCursor: string | null; endCursor: string | null; hasNextPage: boolean; hasPreviousPage: boolean };
  totalCount(): number;
}

/**
 * The page that a query asked for. Throws the service's errors for missing, excessive and malformed bounds; counting
 * alone needs no bounds.
 */
export function connection<Row>(
  call: Call,
  info: GraphQLResolveInfo,
  args: PageArguments,
  source: Source<Row>,
  see: (row: Row) => Row | null = (row) => lagging(call, row),
): Connection<Row> {
  checkBounds(info, args);
  if (call.faults.resourceLimitAtWork !== undefined && call.work >= call.faults.resourceLimitAtWork) {
    throw typedError("RESOURCE_LIMITS_EXCEEDED", "Resource limits for this query exceeded.");
  }
  const keep = truncation(call, info);
  let page: Page<Row> | undefined;
  const get = (): Page<Row> => {
    page ??= readPage(source, args, keep);
    return page;
  };
  const deliver = (row: Row): Row | null => {
    work(call);
    return see(row);
  };
  const cursorOf = (row: Row): string => {
    const { key, id } = source.placeOf(row);
    return encodeCursor(source.timed && typeof key === "number" ? isoTime(key) : key, id);
  };
  return {
    nodes: () =>
      get()
        .rows.map(deliver)
        .filter((row) => row !== null),
    edges: () =>
      get().rows.flatMap((row) => {
        const node = deliver(row);
        return node === null ? [] : [{ cursor: cursorOf(row), node }];
      }),
    pageInfo: () => {
      const { rows, hasNext, hasPrevious } = get();
      const [start, end] = [rows[0], rows.at(-1)];
      return {
        startCursor: start === undefined ? null : cursorOf(start),
        endCursor: end === undefined ? null : cursorOf(end),
        hasNextPage: hasNext(),
        hasPreviousPage: hasPrevious(),
      };
    },
    totalCount: () => (keep === undefined ? source.count() : Math.min(source.count(), keep)),
  };
}

interface Page<Row> {
  readonly rows: readonly Row[];
  readonly hasNext: () => boolean;
  readonly hasPrevious: () => boolean;
}

function readPage<Row>(source: Source<Row>, args: PageArguments, keep: number | undefined): Page<Row> {
  const after = placeOf(source, args.after);
  const before = placeOf(source, args.before);
  const backwards = args.first == null && args.last != null;
  const size = Math.min((backwards ? args.last : args.first) ?? 0, keep ?? Number.POSITIVE_INFINITY);
  const rows: Row[] = [];
  let more = false;
  const walk = backwards ? source.backward(before) : source.forward(after);
  const bound = backwards ? after : before;
  for (const row of walk) {
    if (bound) {
      const order = source.compare(source.placeOf(row), bound);
      if (backwards ? order <= 0 : order >= 0) break;
    }
    if (rows.length === size) {
      more = true;
      break;
    }
    rows.push(row);
  }
  // Truncation is silent: nothing says that there was more.
  if (keep !== undefined && rows.length === keep) more = false;
  if (backwards) {
    rows.reverse();
    const end = rows.at(-1);
    return {
      rows,
      hasPrevious: () => more,
      hasNext: () => (end === undefined ? before !== undefined : any(source.forward(source.placeOf(end)))),
    };
  }
  const start = rows[0];
  return {
    rows,
    hasNext: () => more,
    hasPrevious: () => (start === undefined ? after !== undefined : any(source.backward(source.placeOf(start)))),
  };
}

function any(rows: Iterable<unknown>): boolean {
  for (const _ of rows) return true;
  return false;
}

function placeOf<Row>(source: Source<Row>, cursor: string | null | undefined): Place | undefined {
  if (cursor == null || cursor === "") return undefined;
  const decoded = decodeCursor(cursor);
  const key = decoded?.[0];
  const time = source.timed && typeof key === "string" ? Date.parse(key) / 1_000 : Number.NaN;
  if (!decoded || (source.timed && typeof key === "string" && Number.isNaN(time))) {
    throw typedError("INVALID_CURSOR_ARGUMENTS", `\`${cursor}\` does not appear to be a valid cursor.`);
  }
  return { key: source.timed && typeof key === "string" ? time : (key ?? null), id: decoded[1] };
}

function checkBounds(info: GraphQLResolveInfo, args: PageArguments): void {
  for (const name of ["first", "last"] as const) {
    const value = args[name];
    if (value == null) continue;
    if (value < 0)
      throw typedError(
        "UNPROCESSABLE",
        `\`${name}\` on the \`${info.fieldName}\` connection cannot be less than zero.`,
      );
    if (value > PAGE_LIMIT) {
      const message = `Requesting ${value} records on the \`${info.fieldName}\` connection exceeds the \`${name}\` limit of ${PAGE_LIMIT} records.`;
      throw typedError("EXCESSIVE_PAGINATION", message);
    }
  }
  if (args.first == null && args.last == null && selects(info, "nodes", "edges", "pageInfo")) {
    const message = `You must provide a \`first\` or \`last\` value to properly paginate the \`${info.fieldName}\` connection.`;
    throw typedError("MISSING_PAGINATION_BOUNDARIES", message);
  }
}

/** How many nodes this connection may show, where the truncation fault strikes. */
function truncation(call: Call, info: GraphQLResolveInfo): number | undefined {
  const fault = call.faults.truncateNested;
  if (!fault) return undefined;
  const path: string[] = [];
  let nested = false;
  for (let at: typeof info.path | undefined = info.path; at; at = at.prev) {
    if (typeof at.key === "string") path.push(at.key);
    else nested = true;
  }
  if (!nested) return undefined;
  const key = path.join(".");
  const parents = (call.nested.get(key) ?? 0) + 1;
  call.nested.set(key, parents);
  return parents >= fault.parents ? fault.keep : undefined;
}

function lagging<Row>(call: Call, row: Row): Row | null {
  // Only rows of the world can lag; what is put together per query (threads, requests) is as new as its parts.
  return isLagging(row) ? call.world.lag.seen(row) : row;
}

function isLagging<Row>(row: Row): row is Row & LaggingRow {
  return typeof row === "object" && row !== null && "deleted" in row && !("login" in row);
}

function isoTime(seconds: number): string {
  return `${new Date(seconds * 1_000).toISOString().slice(0, 19)}Z`;
}

// --- Sources

type Indexed = { readonly id: number; readonly deleted: boolean };

export interface IndexSourceOptions<Row> {
  readonly keyOf: (row: Row) => number;
  readonly descending: boolean;
  readonly filter?: (row: Row) => boolean;
  /** Only rows whose key is at least this: the walk starts or ends there. */
  readonly since?: number | undefined;
  /** A count that is known without a walk. */
  readonly count?: (() => number) | undefined;
}

/** Rows of a time index. */
export function indexSource<Row extends Indexed>(
  index: OrderedIndex<Row>,
  options: IndexSourceOptions<Row>,
): Source<Row> {
  const { keyOf, descending, since } = options;
  const filter = options.filter ?? (() => true);
  function* up(from?: Place): Generator<Row> {
    const start = from ? { key: Number(from.key), id: from.id } : undefined;
    const least = since === undefined ? undefined : { key: since, id: -1 };
    const place =
      start && (!least || start.key > least.key || (start.key === least.key && start.id > least.id)) ? start : least;
    for (const row of index.ascending(place)) if (filter(row)) yield row;
  }
  function* down(from?: Place): Generator<Row> {
    for (const row of index.descending(from ? { key: Number(from.key), id: from.id } : undefined)) {
      if (since !== undefined && keyOf(row) < since) return;
      if (filter(row)) yield row;
    }
  }
  return {
    forward: descending ? down : up,
    backward: descending ? up : down,
    placeOf: (row) => ({ key: keyOf(row), id: row.id }),
    compare: (a, b) => comparePlaces(a, b, descending),
    count: options.count ?? (() => [...up()].length),
    timed: true,
  };
}

export interface ArraySourceOptions<Row> {
  readonly keyOf: (row: Row) => Key;
  readonly idOf?: (row: Row) => number;
  readonly descending?: boolean;
  readonly timed?: boolean;
}

/** Rows of a short list, sorted here. */
export function arraySource<Row>(rows: readonly Row[], options: ArraySourceOptions<Row>): Source<Row> {
  // Rows without an id come with `idOf`.
  const idOf = options.idOf ?? ((row: Row) => (row as { readonly id: number }).id);
  const descending = options.descending ?? false;
  const placeOf = (row: Row): Place => ({ key: options.keyOf(row), id: idOf(row) });
  const compare = (a: Place, b: Place) => comparePlaces(a, b, descending);
  let cached: Row[] | undefined;
  const sorted = (): Row[] => {
    cached ??= [...rows].sort((a, b) => compare(placeOf(a), placeOf(b)));
    return cached;
  };
  return {
    forward: (from) => (from ? sorted().filter((row) => compare(placeOf(row), from) > 0) : sorted()),
    backward: (from) =>
      sorted()
        .filter((row) => !from || compare(placeOf(row), from) < 0)
        .reverse(),
    placeOf,
    compare,
    count: () => rows.length,
    timed: options.timed ?? false,
  };
}

function comparePlaces(a: Place, b: Place, descending: boolean): number {
  const order = compareKeys(a.key, b.key) || a.id - b.id;
  return descending ? -order : order;
}

function compareKeys(a: Key, b: Key): number {
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  return a < b ? -1 : 1;
}
