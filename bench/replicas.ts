import { openReplicated } from "../test/support/replicas.ts";
import { corpusIn, fillCorpus } from "./corpus.ts";
import { type Question, sidesOf, startCorpusWeb } from "./corpus-web.ts";
import { AT_ONCE, randomPages } from "./list.ts";
import type { Benchmark } from "./measure.ts";
import type { ServerProcess } from "./processes.ts";
import { alternateServers } from "./serving.ts";

/** A smaller corpus than the other benchmarks have, since it lies on two servers. */
const SIZE = { issues: 30_000, repositories: 10 };
const CONNECTIONS = 16;
/** The primary's processor time is measured over this many answers. */
const ANSWERS = 4_000;

export const benchmark: Benchmark = {
  about:
    "a page of 100 issues by cursor, with reads on a replica, against the same server without one; both Postgres share this machine",
  async run() {
    await using servers = await openReplicated({ replicas: 1 });
    const { primary, replicas } = servers;
    const database = { url: primary.url, [Symbol.asyncDispose]: async () => {} };
    await fillCorpus(database, SIZE);
    const corpus = corpusIn(database, SIZE);
    const { server, headers } = await startCorpusWeb(corpus, {
      DATABASE_REPLICA_URLS: replicas.map(({ url }) => url).join(","),
    });
    await using subject = server;
    const alone = await startCorpusWeb(corpus);
    await using reference = alone.server;
    const questions = randomPages(corpus).map(({ ours }) => ({ ours, theirs: ours }));
    const sides = sidesOf(questions, { subject, reference, headers, theirHeaders: alone.headers }, AT_ONCE);
    const figures = await alternateServers({ ...sides, connections: CONNECTIONS }, { goal: { atLeast: 0.8 } });
    const micros = async (asked: ServerProcess, known: Record<string, string>) => {
      const before = await primary.cpuSeconds();
      await ask(asked, known, questions.slice(0, ANSWERS));
      return (((await primary.cpuSeconds()) - before) / ANSWERS) * 1e6;
    };
    const [withReplica, withoutOne] = [await micros(subject, headers), await micros(reference, alone.headers)];
    const notes = {
      primaryMicros: Math.round(withReplica),
      primaryMicrosWithout: Math.round(withoutOne),
      primaryRatio: Number((withReplica / withoutOne).toFixed(3)),
    };
    return { ...figures, notes: { ...figures.notes, ...notes } };
  },
};

/** Asks each question once, some at a time. */
async function ask({ url }: ServerProcess, headers: Record<string, string>, questions: Question[]): Promise<void> {
  const left = questions.values();
  const one = async () => {
    for (const { ours } of left) {
      const answer = await fetch(url + ours, { headers });
      if (!answer.ok) throw new Error(`${ours}: ${answer.status}`);
      await answer.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
}
