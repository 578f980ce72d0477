import { openCorpus } from "./corpus.ts";
import { sidesOf, startCorpusWeb } from "./corpus-web.ts";
import { AT_ONCE, READ_SIZE, randomPages } from "./list.ts";
import type { Benchmark } from "./measure.ts";
import { installPeers } from "./peers/install.ts";
import { startServer } from "./processes.ts";
import { alternateServers } from "./serving.ts";

export const benchmark: Benchmark = {
  about: "the pages of `list`, against express, a relational query of drizzle's over the same tables, and res.json",
  async run() {
    await installPeers();
    const corpus = await openCorpus(READ_SIZE);
    const { server, headers } = await startCorpusWeb(corpus);
    await using subject = server;
    await using reference = await startServer("peers/express.ts", { DATABASE_URL: corpus.database.url });
    const pages = randomPages(corpus);
    const sample = pages[0] ?? { ours: "", theirs: "" };
    const [ours, theirs] = await Promise.all([
      numbers(subject.url + sample.ours, headers),
      numbers(reference.url + sample.theirs),
    ]);
    if (ours !== theirs) throw new Error(`The reference lists other issues: ${theirs} instead of ${ours}`);
    const sides = sidesOf(pages, { subject, reference, headers }, AT_ONCE);
    return await alternateServers(sides, { goal: { atLeast: 4 } });
  },
};

/** The part of a page that both servers must answer alike. */
async function numbers(url: string, headers: Record<string, string> = {}): Promise<string> {
  const rows = (await (await fetch(url, { headers })).json()) as {
    number: number;
    labels: unknown[];
    assignees: unknown[];
    user: { login: string } | null;
    comments_url: string;
  }[];
  return JSON.stringify(
    rows.map((row) => [
      row.number,
      row.labels.length,
      row.assignees.length,
      row.user?.login,
      new URL(row.comments_url).pathname,
    ]),
  );
}
