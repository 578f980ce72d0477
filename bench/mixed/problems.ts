const EXAMPLE_LENGTH = 300;

/** What went wrong, counted by kind, with the first of each kind as it was. */
export class Problems {
  readonly #kinds = new Map<string, { count: number; example: string }>();

  add(kind: string, example: string, count = 1): void {
    const known = this.#kinds.get(kind);
    if (known) known.count += count;
    else this.#kinds.set(kind, { count, example: example.slice(0, EXAMPLE_LENGTH) });
  }

  get counts(): Record<string, number> {
    return Object.fromEntries([...this.#kinds].map(([kind, { count }]) => [kind, count]));
  }

  /** A sentence for each kind. */
  get sentences(): string[] {
    return [...this.#kinds].map(([kind, { count, example }]) => `${count} × ${kind}, first: ${example}`);
  }
}
