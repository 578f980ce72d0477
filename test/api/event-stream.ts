// biome-ignore lint/suspicious/noExplicitAny: events are picked from, not trusted
export type Event = any;

/** An open stream: `next` answers each event, and null once the server has said that there are no more. */
export async function openStream({
  url,
  token,
  query,
  variables,
  accept = "text/event-stream",
}: {
  url: string;
  token: string;
  query: string;
  variables: object;
  accept?: string;
}) {
  const going = new AbortController();
  const answer = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "user-agent": "test", accept },
    body: JSON.stringify({ query, variables }),
    signal: going.signal,
  });
  const events = eventsOf(answer);
  return {
    answer,
    next: async (): Promise<Event> => (await events.next()).value ?? null,
    [Symbol.asyncDispose]: async () => going.abort(),
  };
}

async function* eventsOf(answer: Response): AsyncGenerator<Event> {
  let text = "";
  for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const block = text.slice(0, end);
      text = text.slice(end + 2);
      if (block.startsWith("event: complete")) return;
      const [, json] = /^event: next\ndata: (.*)$/.exec(block) ?? [];
      if (json) yield JSON.parse(json);
    }
  }
}
