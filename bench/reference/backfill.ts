import { Agent, request } from "undici";
import type { Exchange } from "../../test/support/upstream-tap.ts";

/** Fetches the same pages, so many at once, and throws them away. Answers how many seconds it took. */
export async function fetchPages(url: string, pages: readonly Exchange[], atOnce: number): Promise<number> {
  const dispatcher = new Agent({ connections: atOnce, pipelining: 1 });
  const left = [...pages];
  const fetchNext = async () => {
    for (let page = left.shift(); page; page = left.shift()) {
      const { method, path, body } = page;
      const answer = await request(url + path, {
        method: method as "GET" | "POST",
        ...(body === "" ? {} : { body }),
        headers: {
          authorization: "Bearer bench-token",
          "user-agent": "bench",
          accept: "application/vnd.github+json",
          // As the mirror asks: upstream packs a page for a client that can unpack it.
          "accept-encoding": "gzip",
        },
        dispatcher,
      });
      if (answer.statusCode !== 200) throw new Error(`${method} ${path}: ${answer.statusCode}`);
      await answer.body.dump({ limit: Number.POSITIVE_INFINITY });
    }
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: atOnce }, fetchNext)).finally(() => dispatcher.close());
  return (performance.now() - startedAt) / 1_000;
}
