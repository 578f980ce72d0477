import { createHash } from "node:crypto";
import { type DocumentNode, GraphQLError, type GraphQLSchema } from "graphql";
import { LRUCache } from "lru-cache";
import { Threads, ThreadsBusyError, TooMuchWorkError } from "../../../work/threads.ts";
import { resourceLimit } from "../errors.ts";
import { parsed, readDocument } from "./validation.ts";

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
export interface Fault {
  message: string;
  locations: GraphQLError["locations"];
  extensions: GraphQLError["extensions"];
}

type Threaded = Pick<Threads<string, Fault[]>, "run">;
type ParsedDocument = DocumentNode | readonly GraphQLError[];

/** The thread that validates long documents of the schema that is served. */
export function openValidation(): Threads<string, Fault[]> {
  return new Threads(new URL("./validation-thread.ts", import.meta.url), { size: 1, mostWaiting: 50, budgetMs: 2_000 });
}

/** Reads documents, and remembers those that are valid. */
export class Documents {
  readonly #schema: GraphQLSchema;
  readonly #validation: Threaded | null;
  readonly #known = new LRUCache<string, DocumentNode>({
    maxSize: MAX_REMEMBERED_CHARACTERS,
    maxEntrySize: LONGEST_REMEMBERED,
    sizeCalculation: (_, text) => text.length,
  });
  /** The texts that were too much to validate, by their digests. */
  readonly #tooMuch = new LRUCache<string, true>({ max: 10_000 });
  /** The documents that are being read: many callers may send the same text at once. */
  readonly #underWay = new Map<string, Promise<ParsedDocument>>();

  /** @param validation the threads that validate long documents; null: this thread validates them */
  constructor(schema: GraphQLSchema, validation: Threaded | null = null) {
    this.#schema = schema;
    this.#validation = validation;
  }

  /** The document, or what is wrong with it. */
  async read(text: string): Promise<ParsedDocument> {
    const known = this.#known.get(text);
    if (known) return known;
    const validation = text.length > MAX_CHARACTERS_AT_ONCE ? this.#validation : null;
    const document = await (validation ? this.#readLong(text, validation) : readDocument(this.#schema, text));
    if ("kind" in document) this.#known.set(text, document);
    return document;
  }

  #readLong(text: string, validation: Threaded): Promise<ParsedDocument> {
    const underWay = this.#underWay.get(text);
    if (underWay) return underWay;
    const reading = this.#validated(text, validation).finally(() => this.#underWay.delete(text));
    this.#underWay.set(text, reading);
    return reading;
  }

  async #validated(text: string, validation: Threaded): Promise<ParsedDocument> {
    const document = parsed(text);
    if (!("kind" in document)) return document;
    const digest = createHash("sha256").update(text).digest("base64");
    if (this.#tooMuch.has(digest)) return [resourceLimit()];
    try {
      const faults = await validation.run(text);
      return faults.length > 0 ? faults.map(errorOf) : document;
    } catch (error) {
      if (error instanceof TooMuchWorkError) this.#tooMuch.set(digest, true);
      else if (!(error instanceof ThreadsBusyError)) throw error;
      return [resourceLimit()];
    }
  }
}

function errorOf({ message, locations, extensions }: Fault): GraphQLError {
  return Object.assign(new GraphQLError(message, { extensions }), { locations });
}
