import { createHash } from "node:crypto";
import { type DocumentNode, type FieldNode, GraphQLError, type GraphQLSchema } from "graphql";
import { LRUCache } from "lru-cache";
import { mostEntries } from "../../../work/bounded.ts";
import { CallersLine } from "../../../work/callers-line.ts";
import { Thread, TooMuchWorkError } from "../../../work/thread.ts";
import { placeRefused } from "../../dialect/fault.ts";
import { resourceLimit, typedError } from "../run/errors.ts";
import type { UnheldField } from "../run/plan.ts";
import { type Packed, unpacked } from "./packed.ts";
import type { LackingDocument } from "./reduced.ts";
import { type ServiceNames, serviceNames } from "./service-only.ts";
import { sizeOf } from "./size.ts";
import { MOST_NODES, MOST_NODES_AT_ONCE, parsedDocument, readDocument, readReduced } from "./validity.ts";

/**
 * The characters of all remembered documents together. A parsed document takes 100 to 400 times as much memory as its
 * text. The longest pause for collecting garbage grows with what stays in memory.
 */
const MAX_REMEMBERED_CHARACTERS = 256 * 1024;
/** The longest document that is remembered: a few longer ones would push out all others. */
const LONGEST_REMEMBERED = MAX_REMEMBERED_CHARACTERS / 8;
/** The longest document that is validated on this thread, in up to 10 ms. One of 20,000 tokens may take a second. */
const MAX_CHARACTERS_AT_ONCE = 4_000;

/** A mistake in a document, as the thread reports it. */
interface Fault {
  message: string;
  locations: GraphQLError["locations"];
  path: GraphQLError["path"];
  extensions: GraphQLError["extensions"];
}

/** What the thread does with a text: it validates it whole, or makes and validates what the mirror may have of it. */
export interface DocumentTask {
  text: string;
  of: "whole" | "reduced";
}

/** What came of it: a whole document without faults is valid, and of a reduced one null is left if nothing is. */
export interface DocumentDone {
  faults: Fault[];
  reduced: Packed | null;
}

type Validation = Thread<DocumentTask, DocumentDone>;
type Threaded = Pick<Validation, "run">;
type ParsedDocument = DocumentNode | readonly GraphQLError[];

/** What the mirror has of a document. A `__typename` stands for each field that is not held. */
export interface Reduced {
  document: DocumentNode;
  unheld: ReadonlyMap<FieldNode, UnheldField>;
}

/** The thread that validates long documents of the schema that is served, and reduces them. */
export function openValidation(): Validation {
  return new Thread(new URL("./validation-thread.ts", import.meta.url), { budgetMs: 2_000 });
}

/** Long documents are validated one after the other, each for up to two seconds. Callers take turns. */
const TURNS = { most: 1, mostEach: 1, mostWaitingEach: 10, mostWaiting: 50, patienceMs: 10_000 };

/** Reads documents, and remembers those that are valid. */
export class Documents {
  readonly #schema: GraphQLSchema;
  readonly #validation: Threaded | null;
  readonly #turns = new CallersLine(TURNS);
  readonly #known = new LRUCache<string, DocumentNode>({
    maxSize: MAX_REMEMBERED_CHARACTERS,
    maxEntrySize: LONGEST_REMEMBERED,
    sizeCalculation: (_, text) => text.length,
  });
  readonly #reduced = new LRUCache<string, Reduced>({
    maxSize: LONGEST_REMEMBERED,
    // A short text may be long once it is reduced: see `reduced.ts`. A field takes a few characters, however short.
    sizeCalculation: ({ document }, text) => Math.max(text.length, 4 * sizeOf(document)),
  });
  /** Read once it is needed. */
  #service: ServiceNames | null = null;
  /** The texts that were too much to validate, by their digests. */
  readonly #tooMuch = new LRUCache<string, true>(mostEntries(10_000));
  /** The documents that are being read: many callers may send the same text at once. */
  readonly #underWay = new Map<string, Promise<ParsedDocument>>();

  /** @param validation the thread that validates long documents; null: this thread validates them */
  constructor(schema: GraphQLSchema, validation: Threaded | null = null) {
    this.#schema = schema;
    this.#validation = validation;
  }

  /**
   * The document, or what is wrong with it.
   * @param caller whose turn a long document takes
   * @throws ApiFault 403 or 503 with `Retry-After` for a long document that finds no turn
   */
  async read(text: string, caller: string): Promise<ParsedDocument> {
    const known = this.#known.get(text);
    if (known) return known;
    const validation = text.length > MAX_CHARACTERS_AT_ONCE ? this.#validation : null;
    const document = await (validation ? this.#readLong(text, validation, caller) : readDocument(this.#schema, text));
    if ("kind" in document) this.#known.set(text, document);
    return document;
  }

  /**
   * What the mirror can answer of a document that our schema refuses. Null: the service's schema refuses it too, or it
   * asks for too much.
   * @param help what a caller can do who wants all of it
   * @throws as `read`
   */
  async reduced(text: string, { caller, help }: { caller: string; help: string }): Promise<Reduced | null> {
    const known = this.#reduced.get(text);
    if (known) return known;
    const found = await this.#readReduced(text, caller);
    if (!found) return null;
    const left = withErrors(found, help);
    this.#reduced.set(text, left);
    return left;
  }

  async #readReduced(text: string, caller: string): Promise<LackingDocument | null> {
    this.#service ??= serviceNames();
    const parts = { schema: this.#schema, service: this.#service };
    const validation = this.#validation;
    if (!validation || text.length <= MAX_CHARACTERS_AT_ONCE) {
      const found = readReduced(text, { ...parts, most: validation ? MOST_NODES_AT_ONCE : MOST_NODES });
      if (typeof found === "object") return found;
      if (found === "refused" || !validation) return null;
    }
    const done = await this.#inTurn(`reduced ${text}`, caller, async () => {
      const { reduced: left } = await validation.run({ text, of: "reduced" });
      return { found: left && unpacked(left, text) };
    });
    return done?.found ?? null;
  }

  #readLong(text: string, validation: Threaded, caller: string): Promise<ParsedDocument> {
    const underWay = this.#underWay.get(text);
    if (underWay) return underWay;
    const reading = this.#validated(text, validation, caller).finally(() => this.#underWay.delete(text));
    this.#underWay.set(text, reading);
    return reading;
  }

  async #validated(text: string, validation: Threaded, caller: string): Promise<ParsedDocument> {
    const read = await this.#inTurn(`whole ${text}`, caller, async () => {
      const document = parsedDocument(text);
      if (!("kind" in document)) return document;
      const { faults } = await validation.run({ text, of: "whole" });
      return faults.length > 0 ? faults.map(errorOf) : document;
    });
    return read ?? [resourceLimit()];
  }

  /** Does long work in the caller's turn. Null: the thread took too long for it, now or before. */
  async #inTurn<Done>(name: string, caller: string, work: () => Promise<Done>): Promise<Done | null> {
    const digest = createHash("sha256").update(name).digest("base64");
    if (this.#tooMuch.has(digest)) return null;
    using _ = await this.#turns.enter(caller).catch(placeRefused);
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof TooMuchWorkError)) throw error;
      this.#tooMuch.set(digest, true);
      return null;
    }
  }
}

/** Each lack as the error that its fields are answered with. One error serves all fields that lack the same. */
function withErrors({ document, lacks }: LackingDocument, help: string): Reduced {
  const errors = new Map<string, GraphQLError>();
  const unheld = new Map<FieldNode, UnheldField>();
  for (const [node, { message, isRequired }] of lacks) {
    const error = errors.getOrInsertComputed(message, () => typedError("FORBIDDEN", `${message} ${help}`));
    unheld.set(node, { error, isRequired });
  }
  return { document, unheld };
}

function errorOf({ message, locations, path, extensions }: Fault): GraphQLError {
  return Object.assign(new GraphQLError(message, { extensions }), { locations, path });
}
