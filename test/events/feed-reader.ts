// biome-ignore lint/suspicious/noExplicitAny: what a stream tells is picked from, not trusted
type Told = any;

export interface FeedAsking {
  url: string;
  token?: string;
  /** After `/-/events`. */
  query?: string;
  headers?: Record<string, string>;
  accept?: string;
}

/** Reads the feed as a program would: line by line, and keeps where it has come to. */
export class FeedReader implements AsyncDisposable {
  readonly answer: Response;
  /** The last id that was told, by an event or a sign of life. */
  id: string | null = null;
  readonly #going: AbortController;
  readonly #told: AsyncGenerator<Told>;

  private constructor(answer: Response, going: AbortController) {
    this.answer = answer;
    this.#going = going;
    this.#told = answer.headers.get("content-type")?.startsWith("text/event-stream") ? this.#events() : this.#lines();
  }

  static async open({ url, token, query = "", headers = {}, accept = "application/x-ndjson" }: FeedAsking) {
    const going = new AbortController();
    const answer = await fetch(`${url}/-/events${query}`, {
      headers: { "user-agent": "test", accept, ...(token && { authorization: `Bearer ${token}` }), ...headers },
      signal: going.signal,
    });
    return new FeedReader(answer, going);
  }

  /** The next event, or the end with its reason; null once the stream is over. Signs of life are passed over. */
  async next(): Promise<Told> {
    try {
      return (await this.#told.next()).value ?? null;
    } catch (error) {
      if (this.#going.signal.aborted) return null;
      throw error;
    }
  }

  async take(count: number): Promise<Told[]> {
    const taken: Told[] = [];
    while (taken.length < count) taken.push(await this.next());
    return taken;
  }

  /** Breaks the connection off, as a killed process does. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#going.abort();
  }

  async *#split(between: string): AsyncGenerator<string> {
    let text = "";
    for await (const part of this.answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part;
      for (let end = text.indexOf(between); end >= 0; end = text.indexOf(between)) {
        yield text.slice(0, end);
        text = text.slice(end + between.length);
      }
    }
  }

  async *#lines(): AsyncGenerator<Told> {
    for await (const line of this.#split("\n")) {
      const told = JSON.parse(line);
      this.id = told.id;
      if (told.type !== "tain.bookmark") yield told;
    }
  }

  async *#events(): AsyncGenerator<Told> {
    for await (const block of this.#split("\n\n")) {
      const fields = new Map(
        block.split("\n").map((line) => [line.split(":", 1)[0], line.slice(line.indexOf(":") + 2)]),
      );
      this.id = fields.get("id") ?? this.id;
      const data = fields.get("data");
      if (data !== undefined) yield { sse: fields.get("event") ?? "message", sseId: this.id, ...JSON.parse(data) };
    }
  }
}
