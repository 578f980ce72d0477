import {
  type GraphQLArgument,
  type GraphQLCompositeType,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";

/** A query that a client might send, with its variables. */
export interface GeneratedQuery {
  query: string;
  variables: Record<string, unknown>;
}

/** Values for arguments and input fields, by name. All other values are made from their type alone. */
export type Pools = Readonly<Record<string, readonly unknown[]>>;

/** Numbers in [0, 1) that are the same for the same seed. */
export function draws(seed: number): () => number {
  let state = (seed + 1) * 2_654_435_761;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 374_761_393) >>> 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

/** Makes queries of a schema: with fragments, aliases, variables and directives. Not all of them are valid. */
export function generateQuery(schema: GraphQLSchema, seed: number, pools: Pools, depth = 5): GeneratedQuery {
  return new Generator(schema, draws(seed), pools).query(depth);
}

class Generator {
  readonly #schema: GraphQLSchema;
  readonly #draw: () => number;
  readonly #pools: Pools;
  readonly #declared: string[] = [];
  readonly #variables: Record<string, unknown> = {};
  readonly #fragments: string[] = [];
  #names = 0;

  constructor(schema: GraphQLSchema, draw: () => number, pools: Pools) {
    this.#schema = schema;
    this.#draw = draw;
    this.#pools = pools;
  }

  query(depth: number): GeneratedQuery {
    const root = this.#schema.getQueryType() as GraphQLCompositeType;
    const selection = this.#selection(root, depth);
    const declared = this.#declared.length > 0 ? `(${this.#declared.join(", ")})` : "";
    return { query: [`query${declared} ${selection}`, ...this.#fragments].join("\n"), variables: this.#variables };
  }

  #chance(part: number): boolean {
    return this.#draw() < part;
  }

  #pick<T>(all: readonly T[]): T {
    return all[Math.floor(this.#draw() * all.length)] as T;
  }

  #selection(type: GraphQLCompositeType, depth: number): string {
    const parts: string[] = [];
    const count = 1 + Math.floor(this.#draw() * 5);
    for (let at = 0; at < count; at++) {
      if (depth > 0 && this.#chance(0.15)) parts.push(this.#fragment(type, depth - 1));
      else parts.push(this.#field(type, depth));
    }
    return `{ ${parts.join(" ")} }`;
  }

  #fragment(type: GraphQLCompositeType, depth: number): string {
    const others = [...this.#schema.getPossibleTypes((type as never) ?? [])];
    const on = isObjectType(type) ? this.#pick([type, ...type.getInterfaces()]) : this.#pick([type, ...others]);
    const selection = this.#selection(on, depth);
    if (this.#chance(0.4)) {
      const name = this.#name("f");
      this.#fragments.push(`fragment ${name} on ${on.name} ${selection}`);
      return `...${name}${this.#directive()}`;
    }
    return `...${this.#chance(0.2) && on === type ? "" : ` on ${on.name}`}${this.#directive()} ${selection}`;
  }

  #field(type: GraphQLCompositeType, depth: number): string {
    const fields = isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : [];
    const possible = fields.filter((field) => depth > 0 || !isCompositeType(getNamedType(field.type)));
    if (possible.length === 0 || this.#chance(0.05)) return `${this.#alias(0.3)}__typename${this.#directive()}`;
    const field = this.#pick(possible);
    const args = field.args.flatMap((argument) => this.#argument(argument));
    const target = getNamedType(field.type);
    const inner = isCompositeType(target) ? ` ${this.#selection(target, depth - 1)}` : "";
    // Two selections of one field with different arguments need different names, so most fields with arguments get an
    // alias.
    return `${this.#alias(args.length > 0 ? 0.95 : 0.3)}${field.name}${args.length > 0 ? `(${args.join(", ")})` : ""}${this.#directive()}${inner}`;
  }

  #alias(part: number): string {
    return this.#chance(part) ? `${this.#name("a")}: ` : "";
  }

  #name(of: string): string {
    this.#names += 1;
    return `${of}${this.#names}`;
  }

  #directive(): string {
    if (!this.#chance(0.12)) return "";
    const value = this.#chance(0.7);
    const condition = this.#chance(0.5) ? String(value) : this.#variable("Boolean!", value);
    return ` @${this.#pick(["skip", "include"])}(if: ${condition})`;
  }

  #variable(type: string, value: unknown): string {
    const name = this.#name("v");
    this.#declared.push(`$${name}: ${type}`);
    this.#variables[name] = value;
    return `$${name}`;
  }

  #argument({ name, type }: GraphQLArgument): string[] {
    if (!isNonNullType(type) && this.#chance(name === "first" ? 0.15 : 0.7)) return [];
    const value = this.#value(name, type);
    return [`${name}: ${this.#chance(0.3) ? this.#variable(String(type), value) : literal(value, type)}`];
  }

  #value(name: string, type: GraphQLInputType): unknown {
    if (isNonNullType(type)) return this.#value(name, type.ofType);
    if (this.#chance(0.05)) return null;
    if (isListType(type)) return [this.#value(name, type.ofType), this.#value(name, type.ofType)];
    if (isInputObjectType(type)) {
      const given: Record<string, unknown> = {};
      for (const field of Object.values(type.getFields()))
        if (isNonNullType(field.type) || this.#chance(0.3)) given[field.name] = this.#value(field.name, field.type);
      return given;
    }
    const pool = this.#pools[name];
    if (pool) return this.#pick(pool);
    if (isEnumType(type)) return this.#pick(type.getValues()).name;
    switch (type.name) {
      case "Int":
        return Math.floor(this.#draw() * 5);
      case "Boolean":
        return this.#chance(0.5);
      default:
        return this.#pick(["a", "bug", "2025-06-01T00:00:00Z"]);
    }
  }
}

function literal(value: unknown, type: GraphQLInputType): string {
  if (isNonNullType(type)) return literal(value, type.ofType);
  if (value === null) return "null";
  if (isListType(type)) return `[${(value as unknown[]).map((one) => literal(one, type.ofType)).join(", ")}]`;
  if (isInputObjectType(type)) {
    const fields = Object.entries(value as object).map(
      ([name, one]) => `${name}: ${literal(one, type.getFields()[name]?.type as GraphQLInputType)}`,
    );
    return `{${fields.join(", ")}}`;
  }
  return isEnumType(type) ? String(value) : JSON.stringify(value);
}
