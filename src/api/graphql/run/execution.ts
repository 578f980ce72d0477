/**
 * Answers operations as graphql-js's `execute` would, and writes the text at once. The selections are worked out once
 * per document (`plan.ts`). Fields that need no waiting do not wait. A resource that appears several times at one place
 * of the query is written once.
 */
import { type GraphQLAbstractType, GraphQLError, locatedError } from "graphql";
import { UNSHOWN } from "../../../mirror/render/left-out.ts";
import type { Pace } from "../../../work/pace.ts";
import { errorOfField, MissingValueError, resourceLimit } from "./errors.ts";
import {
  concreteType,
  Faults,
  type Form,
  flat,
  isIterable,
  isPromise,
  isShared,
  leafText,
  PIECE_CHARACTERS,
  type Plan,
  type PlannedField,
  type PlannedSelection,
  propertyOf,
  type ResponsePath,
  responsePath,
  type VariableValues,
} from "./plan.ts";

/** The most values and text of one answer. A larger answer is refused as a whole, so that nobody waits for it. */
const MAX_VALUES = 5_000_000;
const MAX_ANSWER_CHARACTERS = 16 * 1024 * 1024;
/** The most errors of one answer, each of some 300 bytes. */
const MAX_ERRORS = 10_000;
/** How many fields of a selection are written before the pace is asked. */
const FIELDS_AT_ONCE = 32;
/** How much text is written before the pace is asked. One field may be as long as a thousand others. */
const TEXT_AT_ONCE = 64 * 1024;
/** How many fields ask before their statements are made. Making the statement of a field takes some 0.2 ms. */
const FIELDS_ASKED_AT_ONCE = 64;

/** An executed operation. `data` is JSON text. */
export interface Executed {
  data: string;
  errors: readonly GraphQLError[];
}

/** A resource as it was written in an answer before, in the same view. */
export class WrittenResource {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** JSON text, or the promise of it. */
type Text = string | Promise<string>;

/** What has been written so far of a list or an object. */
interface Begun {
  text: string;
  /** The pieces so far, if one of them was promised. Null: there is no promise among them. */
  parts: Text[] | null;
}

interface BegunFields extends Begun {
  selection: PlannedSelection;
  source: unknown;
  at: ResponsePath | undefined;
}

interface BegunItems extends Begun {
  item: Form;
  field: PlannedField;
  items: unknown[];
  place: ResponsePath;
}

export interface ExecutionParts {
  plan: Plan;
  variables: VariableValues;
  context: unknown;
  /** The value that the root's fields are read from: a subscription's event. */
  root?: unknown;
  /** Ends the execution. Nothing more is begun then, and the execution fails with the signal's reason. */
  signal: AbortSignal;
  /** Tells when the event loop has been held for long enough. */
  pace: Pace;
}

export async function executePlan(parts: ExecutionParts): Promise<Executed> {
  parts.signal.throwIfAborted();
  const run = new Execution(parts);
  const { promise: aborted, reject: abort } = Promise.withResolvers<never>();
  const onAbort = () => abort(parts.signal.reason);
  parts.signal.addEventListener("abort", onAbort, { once: true });
  try {
    const data = await Promise.race([run.root(), aborted]);
    return run.refusal || data.length > MAX_ANSWER_CHARACTERS
      ? { data: "null", errors: [resourceLimit()] }
      : { data, errors: run.faults.errors };
  } finally {
    parts.signal.removeEventListener("abort", onAbort);
  }
}

class Execution {
  readonly faults = new Faults();
  readonly #plan: Plan;
  readonly #variables: VariableValues;
  readonly #context: unknown;
  readonly #root: unknown;
  readonly #signal: AbortSignal;
  readonly #pace: Pace;
  /** How many values were begun. */
  #values = 0;
  /**
   * The error of an answer that is too large. Nothing more is begun then. One error serves all: making many takes long.
   */
  refusal: GraphQLError | null = null;
  /** The arguments of fields, as far as they were needed. */
  readonly #args: (Record<string, unknown> | undefined)[];
  /** The text of each resource by selection, if it was written without waiting and without errors. */
  readonly #written = new Map<PlannedSelection, Map<object, string>>();

  constructor({ plan, variables, context, root, signal, pace }: ExecutionParts) {
    this.#plan = plan;
    this.#variables = variables;
    this.#context = context;
    this.#root = root;
    this.#signal = signal;
    this.#pace = pace;
    this.#args = new Array(plan.slots);
  }

  async root(): Promise<string> {
    try {
      const { root, isSerial } = this.#plan;
      return await (isSerial ? this.#inTurn(root) : this.#fields(root, this.#root, undefined));
    } catch (error) {
      this.faults.add(error instanceof GraphQLError ? error : locatedError(error, undefined, undefined), []);
      return "null";
    }
  }

  /** Writes a mutation's fields: each begins once the one before it has taken effect. */
  async #inTurn({ fields, type }: PlannedSelection): Promise<string> {
    this.#values += fields.length;
    let text = "{";
    for (const [at, field] of fields.entries()) {
      if (this.#isOver(text)) await this.#pace.turn();
      this.#goOn();
      // A text that was written before may show something that this field changes.
      this.#written.clear();
      const shown = field.definition ? await this.#field(field, this.#root, undefined) : `"${type.name}"`;
      text += (at === 0 ? "" : ",") + field.label + shown;
    }
    return `${text}}`;
  }

  #fields(selection: PlannedSelection, source: unknown, at: ResponsePath | undefined): Text {
    this.#values += selection.fields.length;
    if (this.#values > MAX_VALUES || this.refusal) this.#refuse();
    return this.#fieldsFrom(0, { selection, source, at, text: "{", parts: null });
  }

  #fieldsFrom(first: number, begun: BegunFields): Text {
    const {
      selection: { fields, type },
      source,
      at,
    } = begun;
    let { text, parts } = begun;
    try {
      for (let index = first; index < fields.length; index++) {
        const asked = (parts?.length ?? 0) / 2;
        const isStep = index % FIELDS_AT_ONCE === 0 || text.length > TEXT_AT_ONCE;
        if (isStep && index > first && (this.#isOver(text) || asked > FIELDS_ASKED_AT_ONCE))
          return this.#afterTurn(parts, text, (part) => this.#fieldsFrom(index, { ...begun, text: "", parts: [part] }));
        const field = fields[index];
        if (!field) break;
        const shown = field.definition ? this.#field(field, source, at) : `"${type.name}"`;
        text += index === 0 ? field.label : `,${field.label}`;
        if (typeof shown === "string") text += shown;
        else {
          parts ??= [];
          parts.push(flat(text), shown);
          text = "";
        }
      }
    } catch (error) {
      if (parts) abandon(parts);
      throw error;
    }
    text += "}";
    return parts ? this.#joined(parts, text) : text;
  }

  #field(field: PlannedField, source: unknown, at: ResponsePath | undefined): Text {
    const { form, resolve, info } = field;
    try {
      const args = this.#argumentsOf(field);
      const value = resolve
        ? resolve(source, args, this.#context, info)
        : propertyOf(source, info, args, this.#context);
      if (value === null || value === undefined) return absentValue(form, field);
      if (form.of === "leaf" && typeof value !== "object") return leafText(form.type, value);
      const place = { above: at, key: field.key };
      if (isPromise(value)) return this.#later(form, field, value, place);
      const text = this.#value(form, field, value, place);
      return typeof text === "string" ? text : text.catch((error) => this.#failed(form, field, error, place));
    } catch (error) {
      return this.#failed(form, field, error, { above: at, key: field.key });
    }
  }

  #argumentsOf(field: PlannedField): Record<string, unknown> {
    if (field.constant) return field.constant;
    let args = this.#args[field.slot];
    if (!args) {
      args = this.#plan.argumentsOf(field, this.#variables);
      this.#args[field.slot] = args;
    }
    return args;
  }

  async #later(form: Form, field: PlannedField, value: PromiseLike<unknown>, place: ResponsePath): Promise<string> {
    try {
      const resolved = await value;
      // Thousands of values or errors may come from one statement, and all of them go on in one turn of the loop.
      if (this.#pace.isOver()) await this.#pace.turn();
      this.#goOn();
      const text = this.#value(form, field, resolved, place);
      return typeof text === "string" ? flat(text) : await text;
    } catch (error) {
      if (this.#pace.isOver()) await this.#pace.turn();
      return this.#failed(form, field, error, place);
    }
  }

  #value(form: Form, field: PlannedField, value: unknown, place: ResponsePath): Text {
    if (value === null || value === undefined) return absentValue(form, field);
    if (value instanceof Error) throw value;
    if (value instanceof WrittenResource) return value.text;
    switch (form.of) {
      case "leaf":
        return leafText(form.type, value);
      case "list":
        return this.#list(form.item, field, value, place);
      case "object":
        return this.#selection(field.inner.get(form.type.name) ?? this.#plan.inner(field, form.type), value, place);
      case "abstract":
        return this.#selection(this.#concrete(form.type, field, value), value, place);
      default:
        return form satisfies never;
    }
  }

  #list(item: Form, field: PlannedField, value: unknown, place: ResponsePath): Text {
    if (!isIterable(value)) {
      const { parentType, fieldName } = field.info;
      throw new GraphQLError(`Expected Iterable, but did not find one for field "${parentType}.${fieldName}".`);
    }
    const items: unknown[] = Array.isArray(value) ? value : [...value];
    return this.#itemsFrom(0, { item, field, items, place, text: "[", parts: null });
  }

  #itemsFrom(first: number, begun: BegunItems): Text {
    const { item, field, items, place } = begun;
    let { text, parts } = begun;
    try {
      for (let index = first; index < items.length; index++) {
        if (index > first && this.#isOver(text)) {
          // Items that are not written yet may already be loading.
          abandon(items);
          return this.#afterTurn(parts, text, (part) => this.#itemsFrom(index, { ...begun, text: "", parts: [part] }));
        }
        const shown = this.#item(item, field, items[index], { above: place, key: index });
        if (index > 0) text += ",";
        if (typeof shown === "string") text += shown;
        else {
          parts ??= [];
          parts.push(flat(text), shown);
          text = "";
        }
      }
    } catch (error) {
      if (parts) abandon(parts);
      abandon(items);
      throw error;
    }
    text += "]";
    return parts ? this.#joined(parts, text) : text;
  }

  /** Goes on once the event loop has turned. @param go gets the text so far */
  async #afterTurn(parts: Text[] | null, text: string, go: (soFar: Text) => Text): Promise<string> {
    const soFar = parts ? this.#joined(parts, text) : flat(text);
    // A failure of this text is reported once it is awaited.
    abandon([soFar]);
    await this.#pace.turn();
    this.#goOn();
    return await go(soFar);
  }

  /** Checks that the execution goes on. @throws the error that has ended it, if one has */
  #goOn(): void {
    this.#signal.throwIfAborted();
    if (this.refusal) throw this.refusal;
  }

  /** Whether the event loop has to turn before the next piece. @throws GraphQLError for a text that is too long */
  #isOver(text: string): boolean {
    if (text.length > MAX_ANSWER_CHARACTERS) this.#refuse();
    return this.#pace.isOver();
  }

  /**
   * Joins the parts to few pieces, since reading a string visits each piece. Long parts are one piece and not copied.
   */
  async #joined(parts: readonly Text[], end: string): Promise<string> {
    let text = "";
    let short = "";
    for (const part of [...(await Promise.all(parts)), flat(end)]) {
      const isLong = part.length > PIECE_CHARACTERS;
      if (!isLong) short += part;
      if (isLong || short.length > PIECE_CHARACTERS) {
        text += flat(short);
        short = "";
      }
      if (isLong) text += part;
      if (text.length + short.length > MAX_ANSWER_CHARACTERS) this.#refuse();
    }
    return text + flat(short);
  }

  /** Refuses the answer as too large. @throws GraphQLError always */
  #refuse(): never {
    this.refusal ??= resourceLimit();
    throw this.refusal;
  }

  #item(form: Form, field: PlannedField, item: unknown, place: ResponsePath): Text {
    try {
      if (isPromise(item)) return this.#later(form, field, item, place);
      const text = this.#value(form, field, item, place);
      return typeof text === "string" ? text : text.catch((error) => this.#failed(form, field, error, place));
    } catch (error) {
      return this.#failed(form, field, error, place);
    }
  }

  #concrete(type: GraphQLAbstractType, field: PlannedField, value: unknown): PlannedSelection {
    // No type can say that `resolveType` reads no more of the info than a plan has.
    const name = type.resolveType?.(value, this.#context, field.info as never, type);
    const known = typeof name === "string" ? field.inner.get(name) : undefined;
    return known ?? this.#plan.inner(field, concreteType(this.#plan.schema, type, name, field));
  }

  #selection(selection: PlannedSelection, value: unknown, place: ResponsePath): Text {
    if (!isShared(value)) return this.#fields(selection, value, place);
    if (value.rest === UNSHOWN) throw new GraphQLError("What is stored of this resource cannot be shown.");
    let written = this.#written.get(selection);
    if (!written) {
      written = new Map();
      this.#written.set(selection, written);
    }
    const known = written.get(value.rest);
    if (known !== undefined) return known;
    const before = this.faults.count;
    const text = this.#fields(selection, value, place);
    if (typeof text === "string" && this.faults.count === before) {
      written.set(value.rest, text);
      value.keep?.(text);
    }
    return text;
  }

  /** Writes null for a field that failed, if the field may be null. Otherwise its parent gets the error. */
  #failed(form: Form, field: PlannedField, error: unknown, place: ResponsePath): string {
    if (this.refusal) throw this.refusal;
    const path = responsePath(place);
    const located = errorOfField(error, field.nodes, path);
    if (form.isRequired) throw located;
    this.faults.add(located, path);
    if (this.faults.errors.length > MAX_ERRORS) this.#refuse();
    return "null";
  }
}

/** Writes null for a value that is absent. @throws GraphQLError for a required one: its parent is shown as null then */
function absentValue({ isRequired }: Form, { info: { parentType, fieldName } }: PlannedField): string {
  if (!isRequired) return "null";
  throw new MissingValueError(`${parentType}.${fieldName}`);
}

/** Keeps promises that nobody awaits any more, or not yet, from being reported as unhandled when they fail. */
function abandon(values: readonly unknown[]): void {
  for (const value of values) if (isPromise(value)) value.then(undefined, () => {});
}
