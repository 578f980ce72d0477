import { BREAK, type DefinitionNode, Kind, type OperationDefinitionNode, visit } from "graphql";
import type { Encoding } from "../../http/reply.ts";
import { type Confirmation, joinConfirmations } from "../../mirror/read/repositories.ts";
import { Kept, type Standings } from "../../mirror/unchanged/unchanged.ts";
import { classOf, type User } from "../callers/caller.ts";
import { COMPRESSED } from "../kept-bodies.ts";

// What is kept between queries: whole results, the texts of issues, and the sizes of lists.

/** A result without errors, which may be given again while nothing that it depends on has changed. */
export interface KeptResult {
  bytes: Buffer;
  /** The result compressed, by encoding, for callers who accept that. */
  encoded: Map<Encoding, Buffer>;
  /** The points that the result costs each caller. */
  points: number;
  /** The repositories whose resources the result shows. */
  shown: readonly number[];
}

/** @param maxBytes 0: nothing is kept */
export function openResults(maxBytes: number): Kept<KeptResult> {
  return new Kept({ maxBytes, bytesOf: ({ bytes }) => bytes.length * COMPRESSED });
}

/** The key of a result: the question and the caller, since some fields show who asks. */
export function resultKey(body: string, { api, caller }: { api: string; caller: User }): string {
  return `${caller.userId} ${classOf(caller)} ${api}\n${body}`;
}

/** Fields that show which repositories there are. No revision tells of that. */
const UNBOUND: ReadonlySet<string> = new Set(["repositories"]);

/** Whether the operation can show only single repositories and their contents. */
export function isKeepable(definitions: readonly DefinitionNode[], operation: OperationDefinitionNode): boolean {
  if (operation.operation !== "query") return false;
  if (definitions.some((one) => one.kind === Kind.OPERATION_DEFINITION && one !== operation)) return false;
  if (!operation.selectionSet.selections.every((one) => one.kind === Kind.FIELD && one.name.value === "repository"))
    return false;
  let isBound = true;
  for (const definition of definitions)
    visit(definition, {
      Field: ({ name }) => {
        if (!UNBOUND.has(name.value)) return undefined;
        isBound = false;
        return BREAK;
      },
    });
  return isBound;
}

/** Upstream's confirmation of the shown repositories; undefined: one of them may no longer be shown. */
export function confirmationOfKept({ shown }: KeptResult, standings: Standings): Confirmation | undefined {
  const shownNow = shown.flatMap((id) => standings.get(id) ?? []).filter(({ isMirrored }) => isMirrored);
  return shownNow.length === shown.length ? joinConfirmations(shownNow) : undefined;
}

/**
 * The texts that were written of a list's resources, by each resource's number or id in the list: an issue's number.
 */
export interface WrittenTexts extends Pick<IssueTexts, "get" | "add"> {
  isEmpty: boolean;
}

/** How much memory a text takes besides its characters. */
const TEXT_BYTES = 80;
/** How much of the room one repository may take: a large one, in the view that everybody asks for, may take most. */
const LARGEST_REPOSITORY = 3 / 4;

/** The JSON text of one repository's issues in one view, by their numbers. */
export class IssueTexts {
  readonly #texts = new Map<number, string>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get(number: number): string | undefined {
    return this.#texts.get(number);
  }

  add(number: number, text: string): void {
    if (this.#texts.has(number)) return;
    // The text is copied into one string. Otherwise the hundred pieces that it is made of would stay in memory.
    const flat = Buffer.from(text).toString();
    this.#texts.set(number, flat);
    this.#bytes += flat.length + TEXT_BYTES;
  }
}

/** @param maxBytes 0: nothing is kept */
export function openIssueTexts(maxBytes: number): Kept<IssueTexts> {
  return new Kept({ maxBytes, bytesOf: ({ bytes }) => bytes, largestPart: LARGEST_REPOSITORY });
}

/** How many rows a list has, and the sum of what was measured of them. */
export interface Count {
  count: number;
  sum: number;
}

/** Enough for 10,000 counts, roughly. */
const MAX_COUNT_BYTES = 8 * 1024 * 1024;
const BYTES_PER_COUNT = 50;

/** Sizes of connections that were counted before. */
export function openCounts(): Kept<Count> {
  return new Kept({ maxBytes: MAX_COUNT_BYTES, bytesOf: () => BYTES_PER_COUNT });
}
