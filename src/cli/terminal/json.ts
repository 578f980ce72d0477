/** Another process' JSON lacks a field, or holds something else in it. The message names the field. */
export class JsonError extends Error {
  override name = "JsonError";
}

/** An object that another process wrote as JSON. Reading a field checks it. */
export class JsonObject {
  readonly #value: object;
  /** Where the object stands in its document, before a field's name: `repositories[0].`. */
  readonly #path: string;

  /** @throws JsonError when the value is no object */
  constructor(value: unknown, path = "") {
    if (typeof value !== "object" || value === null) throw new JsonError(`${path.slice(0, -1) || "it"} is no object`);
    this.#value = value;
    this.#path = path;
  }

  /** @throws JsonError when the text is no JSON, or no object */
  static parse(text: string): JsonObject {
    try {
      return new JsonObject(JSON.parse(text));
    } catch (error) {
      if (error instanceof SyntaxError) throw new JsonError("it is no JSON", { cause: error });
      throw error;
    }
  }

  has(name: string): boolean {
    return this.#field(name) !== undefined;
  }

  /** @throws JsonError */
  string(name: string): string {
    const value = this.#field(name);
    if (typeof value !== "string") throw new JsonError(`${this.#path}${name} is no text`);
    return value;
  }

  /** @throws JsonError */
  boolean(name: string): boolean {
    const value = this.#field(name);
    if (typeof value !== "boolean") throw new JsonError(`${this.#path}${name} is neither true nor false`);
    return value;
  }

  /** @throws JsonError */
  strings(name: string): string[] {
    return this.#list(name).map((each, at) => {
      if (typeof each !== "string") throw new JsonError(`${this.#path}${name}[${at}] is no text`);
      return each;
    });
  }

  /** @throws JsonError */
  objects(name: string): JsonObject[] {
    return this.#list(name).map((each, at) => new JsonObject(each, `${this.#path}${name}[${at}].`));
  }

  #list(name: string): unknown[] {
    const value = this.#field(name);
    if (!Array.isArray(value)) throw new JsonError(`${this.#path}${name} is no list`);
    return value;
  }

  #field(name: string): unknown {
    return Reflect.get(this.#value, name);
  }
}
