import type { Sql } from "../../../../db/sql.ts";
import {
  countPages,
  findPages,
  InvalidPositionError,
  type PageRequest,
  type PageRow,
  type PageSource,
  type Parent,
} from "../../../mirror/read/pages.ts";
import type { StoredDocument } from "../../../mirror/render/rendering.ts";
import type { Count, GraphqlCall, WrittenTexts } from "../call.ts";
import type { Node, NodeKind } from "../node.ts";
import { WrittenResource } from "../run/execution.ts";
import type { FieldInfo } from "../run/plan.ts";
import {
  type Connection,
  type ConnectionPage,
  connection,
  cut,
  invalidCursor,
  neighbours,
  type PageArguments,
  pageRequest,
  position,
  type ShownNode,
} from "./connection.ts";

/** Rows whose texts may be kept, so that their documents need not be read. A row is named by its `tie`. */
export interface KeptRows {
  /** The texts that were written in this view; null: there are none to use. */
  textsIn: (view: string) => Promise<WrittenTexts | null>;
  documents: (ties: readonly number[], request: PageRequest) => Promise<ReadonlyMap<number, StoredDocument>>;
}

interface Stored {
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
  stored: Stored,
): Connection & { sum: (measure: Sql) => Promise<number> } {
  const list = new StoredList(call, info, args, stored);
  const load = (wanted: PageRequest, shownBy: FieldInfo | undefined) => list.page(wanted, shownBy);
  return {
    ...connection(pageRequest(info, args, position), load, async () => (await list.count()).count),
    sum: async (measure) => (await list.counted(measure)).sum,
  };
}

/** The names of lists, by the field's arguments: one object serves all parents. Naming a long list would take long. */
const names = new WeakMap<PageArguments, ReturnType<typeof namesOf>>();

/** Names the pages and the counts of a field. */
function namesOf({ parentType, fieldName }: FieldInfo, args: PageArguments, { from }: PageSource) {
  const field = [parentType.name, fieldName, from.pieces];
  const { first: _first, last: _last, after: _after, before: _before, ...filter } = args;
  return { name: JSON.stringify([...field, args]), countName: JSON.stringify([...field, filter]) };
}

/** One parent's rows of a list. Fields with the same arguments share their statement, whatever their parents. */
class StoredList {
  readonly #call: GraphqlCall;
  readonly #args: PageArguments;
  readonly #stored: Stored;
  readonly #names: ReturnType<typeof namesOf>;
  readonly #isOfRepository: boolean;

  constructor(call: GraphqlCall, info: FieldInfo, args: PageArguments, stored: Stored) {
    this.#call = call;
    this.#args = args;
    this.#stored = stored;
    this.#names = names.getOrInsertComputed(args, () => namesOf(info, args, stored.source));
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

  count(): Promise<Count> {
    return this.#isOfRepository
      ? this.#call.counted(this.#stored.parent.r, this.#names.countName, () => this.counted())
      : this.counted();
  }

  /** Counts the rows anew, and sums up `measure` if there is one. */
  counted(measure?: Sql): Promise<Count> {
    const { source, parent } = this.#stored;
    const count = (parents: Parent[]) => countPages(this.#call.db, source, parents, measure);
    return this.#call
      .loader<Parent, Count>(`count ${measure?.compiled().text} ${this.#names.countName}`, count)
      .load(parent);
  }

  async #find(wanted: PageRequest) {
    const name = `page ${this.#names.name} ${wanted.withBody} ${wanted.withoutDocuments}`;
    const rows = await this.#call
      .loader<Parent, PageRow[]>(name, (parents) => this.#findAll(parents, wanted))
      .load(this.#stored.parent);
    const { page, more } = cut(rows, wanted);
    return { positions: page, ...neighbours(more, wanted) };
  }

  async #findAll(parents: Parent[], wanted: PageRequest): Promise<PageRow[][]> {
    try {
      return await findPages(this.#call.db, this.#stored.source, parents, wanted);
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
    const ties = rows.map(({ tie }) => tie);
    const documents = (await this.#stored.kept?.documents(ties, wanted)) ?? new Map<number, StoredDocument>();
    const nodes = await this.#nodesOf([...documents.values()]);
    const byTie = new Map([...documents.keys()].map((tie, at) => [tie, nodes[at] ?? null]));
    return ties.map((tie) => byTie.get(tie) ?? null);
  }
}

/** The kept text of each row. A row without one gets its resource, whose text is kept once it is written. */
async function writtenOr(
  written: WrittenTexts,
  rows: readonly PageRow[],
  load: (rows: readonly PageRow[]) => Promise<(Node | null)[]>,
): Promise<ShownNode[]> {
  const shown = rows.map(({ tie }) => {
    const text = written.get(tie);
    return text === undefined ? null : new WrittenResource(text);
  });
  const missing = rows.filter((_, at) => shown[at] === null);
  if (missing.length === 0) return shown;
  const loaded = (await load(missing)).values();
  return rows.map(({ tie }, at) => {
    if (shown[at]) return shown[at];
    const node = loaded.next().value;
    return node ? { ...node, keep: (text: string) => written.add(tie, text) } : null;
  });
}
