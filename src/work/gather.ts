interface Round<Key, Answer> {
  keys: Key[];
  /** The answer to all of its questions. */
  answer: Promise<Answer>;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
}

const ROUND_PATIENCE_MS = 50;

interface RoundsOptions {
  /** How many rounds may be under way; questions that arrive meanwhile wait for the next round. */
  atOnce?: number;
  /** The most questions of a round. */
  most?: number;
  /** How long a round may delay the next one, since it might never end. Null: every round ends. */
  patienceMs?: number | null;
  /** Awaited before the first round after a pause; it must not fail. */
  waitFor?: (() => Promise<unknown>) | null;
}

/**
 * Gathers the questions of one turn of the event loop and answers them together, so that many callers cost little more
 * than one. A round begins after the last of its questions was asked, so no answer is older than its question.
 */
export class Rounds<Key, Answer> {
  readonly #answer: (keys: Key[]) => Promise<Answer>;
  readonly #atOnce: number;
  readonly #most: number;
  readonly #patienceMs: number | null;
  readonly #waitFor: (() => Promise<unknown>) | null;
  readonly #waiting: Round<Key, Answer>[] = [];
  #underWay = 0;

  constructor(
    answer: (keys: Key[]) => Promise<Answer>,
    { atOnce = 1, most = 500, patienceMs = ROUND_PATIENCE_MS, waitFor = null }: RoundsOptions = {},
  ) {
    this.#answer = answer;
    this.#atOnce = atOnce;
    this.#most = most;
    this.#patienceMs = patienceMs;
    this.#waitFor = waitFor;
  }

  /** The round that answers the question, which is the last of its keys. */
  join(key: Key): Pick<Round<Key, Answer>, "keys" | "answer"> {
    const last = this.#waiting.at(-1);
    if (last && last.keys.length < this.#most) {
      last.keys.push(key);
      return last;
    }
    const { promise: answer, resolve, reject } = Promise.withResolvers<Answer>();
    const round = { keys: [key], answer, resolve, reject };
    if (this.#waiting.push(round) === 1) {
      const begin = () => setImmediate(() => this.#begin());
      if (this.#waitFor) void this.#waitFor().then(begin);
      else begin();
    }
    return round;
  }

  #begin(): void {
    while (this.#underWay < this.#atOnce) {
      const round = this.#waiting.shift();
      if (!round) return;
      void this.#run(round);
    }
  }

  async #run({ keys, resolve, reject }: Round<Key, Answer>): Promise<void> {
    this.#underWay += 1;
    let isOver = false;
    const next = () => {
      if (isOver) return;
      isOver = true;
      this.#underWay -= 1;
      if (this.#waiting.length > 0) setImmediate(() => this.#begin());
    };
    const timer = this.#patienceMs === null ? undefined : setTimeout(next, this.#patienceMs);
    try {
      resolve(await this.#answer(keys));
    } catch (error) {
      reject(error);
    } finally {
      clearTimeout(timer);
      next();
    }
  }
}

/** Rounds whose answer is one value for each question. */
export class Gather<Key, Value> {
  readonly #rounds: Rounds<Key, readonly Value[]>;

  /** @param answer one value for each key, in their order */
  constructor(answer: (keys: Key[]) => Promise<readonly Value[]>, options?: RoundsOptions) {
    this.#rounds = new Rounds(answer, options);
  }

  async ask(key: Key): Promise<Value> {
    const { keys, answer } = this.#rounds.join(key);
    const at = keys.length - 1;
    // `answer` promises one value for each key. TypeScript has no type that says so.
    return (await answer)[at] as Value;
  }
}
