/** The bounds of a document's depth and size. Whatever walks a document takes as long as these say. */
import { type DocumentNode, type FieldNode, GraphQLError, Kind, type SelectionSetNode } from "graphql";

/** The deepest nesting. Queries of `gh` and of people stay below ten. Beyond this depth a query only repeats itself. */
const MAX_FIELD_DEPTH = 60;

/** The deepest nesting of anything: ten fragments around each field. Whoever walks a document calls itself so often. */
const MAX_NESTING = 10 * MAX_FIELD_DEPTH;

/**
 * The most fields and fragments of a document. Fragments count at each place where they are spread, so 3 KB of text
 * could ask for billions of fields. A walk over this many takes some 20 ms. Six hundred issues with thirty fields each
 * stay below.
 */
const MAX_SELECTIONS = 20_000;

export function tooDeep(): GraphQLError {
  return new GraphQLError(`Query has fields nested deeper than ${MAX_FIELD_DEPTH} levels, which exceeds max depth.`);
}

/** Whether fields are nested too deep, also through fragments. A fragment that spreads itself is endlessly deep. */
export function isTooDeep(document: DocumentNode): boolean {
  return measured(document, FIELD_DEPTH) > MAX_FIELD_DEPTH;
}

export function isNestedTooDeep(document: DocumentNode): boolean {
  return measured(document, NESTING) > MAX_NESTING;
}

/** How many fields and fragments a document selects, each fragment counted at each of its places. */
export function sizeOf(document: DocumentNode): number {
  return measured(document, SIZE);
}

export function selectsTooMuch(document: DocumentNode): boolean {
  return sizeOf(document) > MAX_SELECTIONS;
}

/** Makes one measure of a document. */
interface Measure {
  /** What a fragment measures more than its selection. A field measures 1 more. */
  ofFragment: number;
  /** The measure of what stands side by side. */
  ofAll: (measures: number[]) => number;
  /** The measure of a fragment that spreads itself. Where it is none, a rule refuses it later by name. */
  endless: number;
}

const largest = (measures: number[]) => Math.max(0, ...measures);
const SIZE: Measure = { ofFragment: 1, ofAll: (sizes) => sizes.reduce((sum, size) => sum + size, 0), endless: 0 };
const NESTING: Measure = { ofFragment: 1, ofAll: largest, endless: 0 };
const FIELD_DEPTH: Measure = { ofFragment: 0, ofAll: largest, endless: Number.POSITIVE_INFINITY };

/**
 * Measures all that a document has: its operations, and the fragments that none of them reaches, since those are walked
 * as well before they are refused. Each fragment is measured once.
 */
function measured(document: DocumentNode, { ofFragment, ofAll, endless }: Measure): number {
  const fragments = new Map<string, SelectionSetNode>();
  const known = new Map<string, number>();
  const measureOf = (name: string): number => {
    const before = known.get(name);
    if (before !== undefined) return before;
    known.set(name, endless);
    const found = measure(fragments.get(name));
    known.set(name, found);
    return found;
  };
  const measure = (set: SelectionSetNode | undefined): number =>
    ofAll(
      (set?.selections ?? []).map((one) => {
        if (one.kind === Kind.FIELD) return 1 + measure(one.selectionSet);
        return ofFragment + (one.kind === Kind.INLINE_FRAGMENT ? measure(one.selectionSet) : measureOf(one.name.value));
      }),
    );
  const operations: SelectionSetNode[] = [];
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition.selectionSet);
    if (definition.kind === Kind.OPERATION_DEFINITION) operations.push(definition.selectionSet);
  }
  const reached = operations.map(measure);
  const unreached = [...fragments.keys()].filter((name) => !known.has(name));
  return ofAll([...reached, ...unreached.map(measureOf)]);
}

/**
 * The most pairs of fields that have one name in one place, and so are compared. Comparing so many takes up to 30 ms.
 * Two hundred fragments that select the same field make as many.
 */
const MAX_PAIRS = 20_000;

/** Whether too many fields would be compared. The document's depth and size are bounded already. Pure. */
export function hasTooManyPairs({ definitions }: DocumentNode): boolean {
  const fragments = new Map<string, SelectionSetNode>();
  for (const one of definitions)
    if (one.kind === Kind.FRAGMENT_DEFINITION) fragments.set(one.name.value, one.selectionSet);
  let pairs = 0;
  const count = (sets: readonly SelectionSetNode[]): void => {
    const named = new Map<string, FieldNode[]>();
    const met = new Set<SelectionSetNode>();
    const collect = (set: SelectionSetNode | undefined): void => {
      if (!set || met.has(set)) return;
      met.add(set);
      for (const one of set.selections) {
        if (one.kind === Kind.FIELD) named.getOrInsertComputed(one.alias?.value ?? one.name.value, () => []).push(one);
        else collect(one.kind === Kind.INLINE_FRAGMENT ? one.selectionSet : fragments.get(one.name.value));
      }
    };
    for (const set of sets) collect(set);
    for (const fields of named.values()) {
      pairs += (fields.length * (fields.length - 1)) / 2;
      const inner = fields.flatMap(({ selectionSet }) => selectionSet ?? []);
      if (inner.length > 0 && pairs <= MAX_PAIRS) count(inner);
    }
  };
  for (const one of definitions) if (one.kind === Kind.OPERATION_DEFINITION) count([one.selectionSet]);
  return pairs > MAX_PAIRS;
}
