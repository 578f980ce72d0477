/**
 * Reduced documents on their way from the thread that makes them. To copy their nodes would hold this thread for longer
 * than to parse their text.
 */
import { type FieldNode, Kind, Location, parse, print, Source, Token, TokenKind, visit } from "graphql";
import type { Lack, LackingDocument } from "./reduced.ts";

export interface Packed {
  text: string;
  /** For each node, as `visit` meets them, where it stands in the caller's text: start, line and column. -1: nowhere. */
  places: Int32Array;
  /** What is lacking, by the number of the node that stands for it. */
  lacks: ReadonlyMap<number, Lack>;
}

const NUMBERS = 3;
const NOWHERE: readonly number[] = [-1, -1, -1];

/** Pure. */
export function packed({ document, lacks }: LackingDocument): Packed {
  const places: number[] = [];
  const byNumber = new Map<number, Lack>();
  visit(document, {
    enter: (node) => {
      const lack = node.kind === Kind.FIELD ? lacks.get(node) : undefined;
      if (lack) byNumber.set(places.length / NUMBERS, lack);
      const at = node.loc?.startToken;
      places.push(...(at ? [at.start, at.line, at.column] : NOWHERE));
    },
  });
  // Without lines and indentation, of which deep selections would have more than text.
  return { text: print(document, { maxIndentDepth: 0 }), places: Int32Array.from(places), lacks: byNumber };
}

/** Pure. @param text the caller's */
export function unpacked({ text: left, places, lacks: byNumber }: Packed, text: string): LackingDocument {
  const source = new Source(text);
  const document = parse(left);
  const lacks = new Map<FieldNode, Lack>();
  let number = 0;
  visit(document, {
    enter: (node) => {
      const lack = byNumber.get(number);
      if (lack && node.kind === Kind.FIELD) lacks.set(node, lack);
      const [start = -1, line = -1, column = -1] = places.subarray(number * NUMBERS, (number + 1) * NUMBERS);
      const token = start < 0 ? null : new Token(TokenKind.NAME, start, start, line, column);
      // The nodes are nobody else's yet, and to make each anew would take twice as long.
      Object.assign(node, { loc: token ? new Location(token, token, source) : undefined });
      number += 1;
    },
  });
  if (number * NUMBERS !== places.length || lacks.size !== byNumber.size)
    throw new Error("A reduced document was read otherwise than it was written");
  return { document, lacks };
}
