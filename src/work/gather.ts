interface Gathered<Key, Value> {
  key: Key;
  resolve: (value: Value) => void;
  reject: (error: unknown) => void;
}

const PATIENCE_MS = 50;

/**
 * Gathers the questions of one turn of the event loop and answers them together, so that many callers cost little more
 * than one. A round begins after the last of its questions was asked, so no answer is older than its question.
 */
export class Gather<Key, Value> {
  readonly #answer: (keys: Key[]) => Promise<readonly Value[]>;
  readonly #atOnce: number;
  readonly #most: number;
  readonly #patienceMs: number | null;
  readonly #waitFor: (() => Promise<unknown>) | null;
  #asked: Gathered<Key, Value>[] = [];
  #underWay = 0;

  /**
   * @param answer one value for each key, in their order
   * @param options.atOnce how many rounds may be under way; questions that arrive meanwhile wait for the next round
   * @param options.most the most questions of a round
   * @param options.patienceMs how long a round may delay the next one, since it might never end. Null: every round ends
   * @param options.waitFor awaited before the first round after a pause; it must not fail
   */
  constructor(
    answer: (keys: Key[]) => Promise<readonly Value[]>,
    {
      atOnce = 1,
      most = 500,
      patienceMs = PATIENCE_MS,
      waitFor = null,
    }: { atOnce?: number; most?: number; patienceMs?: number | null; waitFor?: (() => Promise<unknown>) | null } = {},
  ) {
    this.#answer = answer;
    this.#atOnce = atOnce;
    this.#most = most;
    this.#patienceMs = patienceMs;
    this.#waitFor = waitFor;
  }

  ask(key: Key): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ key, resolve, reject });
      if (this.#asked.length > 1) return;
      const begin = () => setImmediate(() => this.#begin());
      if (this.#waitFor) void this.#waitFor().then(begin);
      else begin();
    });
  }

  #begin(): void {
    while (this.#asked.length > 0 && this.#underWay < this.#atOnce) {
      const round = this.#asked.length <= this.#most ? this.#asked : this.#asked.slice(0, this.#most);
      this.#asked = this.#asked.slice(round.length);
      void this.#run(round);
    }
  }

  async #run(round: readonly Gathered<Key, Value>[]): Promise<void> {
    this.#underWay += 1;
    let isOver = false;
    const next = () => {
      if (isOver) return;
      isOver = true;
      this.#underWay -= 1;
      this.#begin();
    };
    const timer = this.#patienceMs === null ? undefined : setTimeout(next, this.#patienceMs);
    try {
      const values = await this.#answer(round.map(({ key }) => key));
      // `answer` promises one value for each key. TypeScript has no type that says so.
      for (let at = 0; at < round.length; at++) round[at]?.resolve(values[at] as Value);
    } catch (error) {
      for (const { reject } of round) reject(error);
    } finally {
      clearTimeout(timer);
      next();
    }
  }
}
