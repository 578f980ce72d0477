import { type DocumentNode, Kind, type OperationDefinitionNode, visit } from "graphql";
import { LRUCache } from "lru-cache";
import { PEOPLE } from "../../../../db/revisions.ts";
import type { Revisions, Standing } from "../../../mirror/unchanged/standings.ts";
import { classOf, type User } from "../../callers/caller.ts";
import type { Encoding } from "../../compression.ts";
import { ownBytes } from "../../own-bytes.ts";

/** An answer without errors, which may be given again as long as none of `revisions` has changed. */
interface KeptAnswer {
  bytes: Buffer;
  /** The same, compressed for those who asked for it so. */
  encoded: Map<Encoding, Buffer>;
  /** What it costs each time. */
  points: number;
  /** The repositories whose resources it shows. */
  shown: readonly number[];
  /** Of everything that it depends on, from before it was made. */
  revisions: ReadonlyMap<number, string | null>;
}

/** How everything that an answer depends on stood before it was made. */
type Standings = ReadonlyMap<number, Standing>;

interface Found {
  /** Null: it has to be made. */
  kept: (KeptAnswer & { confirmedAt: Date | null }) | null;
  /** Null: this is asked for the first time, and what it will depend on is not known. */
  standings: Standings | null;
}

/** What is remembered of a request that was answered once: on what the answer depended. */
type Entry = { met: readonly number[] } | KeptAnswer;

/** Longer requests are not remembered. */
const MAX_KEY = 16 * 1024;
/** Of an entry, beside its bytes and its key. */
const OVERHEAD_BYTES = 1_000;
/** Compressed twice an answer has a third of its bytes once more. */
const COMPRESSED = 1.4;
/** An answer that would push out all others is not kept. */
const LARGEST_PART = 1 / 8;

/**
 * Gives answers to queries again. It is asked each time whether anything has changed of what the answer depends on, so what
 * is read after a change was committed, by whichever process, shows the change. On what an answer depends is known once it was
 * made: so it is kept from the second time on.
 */
export class AnswerCache {
  readonly #revisions: Revisions;
  readonly #largestBytes: number;
  readonly #entries: LRUCache<string, Entry> | null;

  /** @param maxBytes 0: nothing is kept */
  constructor(revisions: Revisions, maxBytes: number) {
    this.#revisions = revisions;
    this.#largestBytes = maxBytes * LARGEST_PART;
    this.#entries = maxBytes === 0 ? null : new LRUCache({ maxSize: maxBytes, sizeCalculation: sizeOf });
  }

  async find(key: string): Promise<Found> {
    const entry = this.#entries?.get(key);
    if (!entry) return { kept: null, standings: null };
    const isKept = "bytes" in entry;
    const standings = await this.#revisions.now(isKept ? entry.revisions.keys() : entry.met);
    const confirmedAt = isKept ? confirmation(entry, standings) : undefined;
    return { kept: isKept && confirmedAt !== undefined ? { ...entry, confirmedAt } : null, standings };
  }

  /** Keeps an answer without errors, which depends on people and on these repositories. */
  keep(
    key: string,
    body: string,
    { points, met, shown }: { points: number; met: Iterable<number>; shown: Iterable<number> },
    standings: Standings | null,
  ): void {
    if (!this.#entries || key.length > MAX_KEY || body.length > this.#largestBytes) return;
    const all = new Set([PEOPLE, ...met, ...shown]);
    const revisions = new Map<number, string | null>();
    for (const id of all) {
      const standing = standings?.get(id);
      if (!standing) {
        this.#entries.set(key, { met: [...all] });
        return;
      }
      revisions.set(id, standing.revision);
    }
    this.#entries.set(key, { bytes: ownBytes(body), encoded: new Map(), points, shown: [...shown], revisions });
  }
}

/** Names what is asked, and by whom: some fields show the caller. */
export function answerKey(body: string, { api, caller }: { api: string; caller: User }): string {
  return `${caller.userId} ${classOf(caller)} ${api}\n${body}`;
}

/** Fields that show what no revision tells of: which repositories there are. */
const UNBOUND = new Set(["repositories"]);
const keepable = new WeakMap<DocumentNode, boolean>();

/** Whether all that an operation of the document can show are single repositories, and what is in them. */
export function isKeepable(document: DocumentNode, operation: OperationDefinitionNode): boolean {
  if (operation.operation !== "query") return false;
  let known = keepable.get(document);
  if (known === undefined) {
    known = operation.selectionSet.selections.every(
      (one) => one.kind === Kind.FIELD && one.name.value === "repository",
    );
    const look = (set: OperationDefinitionNode["selectionSet"]) =>
      visit(set, {
        Field: ({ name }) => {
          if (UNBOUND.has(name.value)) known = false;
        },
      });
    for (const definition of document.definitions) {
      if (definition.kind === Kind.OPERATION_DEFINITION && definition !== operation) known = false;
      if ("selectionSet" in definition) look(definition.selectionSet as OperationDefinitionNode["selectionSet"]);
    }
    keepable.set(document, known);
  }
  return known;
}

/** When upstream confirmed what is shown, of which that is longest ago; undefined: the answer has to be made anew. */
function confirmation({ revisions, shown }: KeptAnswer, standings: Standings): Date | null | undefined {
  for (const [id, revision] of revisions) if (standings.get(id)?.revision !== revision) return undefined;
  let oldest: Date | null | undefined;
  for (const id of shown) {
    const standing = standings.get(id);
    if (!standing?.isMirrored) return undefined;
    const { confirmedAt } = standing;
    if (oldest === undefined || confirmedAt === null || (oldest !== null && confirmedAt < oldest)) oldest = confirmedAt;
  }
  return oldest;
}

function sizeOf(entry: Entry, key: string): number {
  const own = "bytes" in entry ? entry.bytes.length * COMPRESSED : 0;
  return Math.ceil(own) + key.length * 2 + OVERHEAD_BYTES;
}
