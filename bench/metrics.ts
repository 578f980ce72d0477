import { openCorpus } from "./corpus.ts";
import { inTurn, startCorpusWeb } from "./corpus-web.ts";
import { openBenchDatabase } from "./databases.ts";
import { AT_ONCE, READ_SIZE, randomPages } from "./list.ts";
import { getRequest } from "./load.ts";
import type { Benchmark, Measured } from "./measure.ts";
import type { ServerProcess } from "./processes.ts";
import { signedDeliveries, startReceiver } from "./receiving.ts";
import { alternateServers, type Side, SLICE_SECONDS, SLICES } from "./serving.ts";

const OPERATOR_TOKEN = "the-token-of-the-bench-operator";
const UNCOUNTED = ["--import", new URL("without-metrics.ts", import.meta.url).href];
/** The same program on both sides. */
const as = { goal: { atLeast: 0.97 } };

export const benchmark: Benchmark = {
  about:
    "answers of one web process that counts, watches itself and is read by Prometheus once in each second of load, against the same process that does nothing of it",
  async run() {
    return [await measureList(), await measureReceive()];
  },
};

async function measureList(): Promise<Measured> {
  const corpus = await openCorpus(READ_SIZE);
  const start = async (flags: readonly string[]) => {
    const { server, headers } = await startCorpusWeb(corpus, { OPERATOR_TOKEN }, flags);
    return { server, requests: randomPages(corpus).map(({ ours }) => getRequest(server.url, ours, headers)) };
  };
  const [counted, uncounted] = [await start([]), await start(UNCOUNTED)];
  await using subject = counted.server;
  await using reference = uncounted.server;
  const side = (server: ServerProcess, requests: readonly Uint8Array[]) => inTurn(server, requests, AT_ONCE);
  return await alternateServers(
    { subject: read(side(subject, counted.requests)), reference: side(reference, uncounted.requests) },
    { ...as, part: "list" },
  );
}

async function measureReceive(): Promise<Measured> {
  await using ours = await openBenchDatabase();
  await using theirs = await openBenchDatabase();
  await using subject = await startReceiver(ours, { OPERATOR_TOKEN });
  await using reference = await startReceiver(theirs, { OPERATOR_TOKEN }, UNCOUNTED);
  return await alternateServers(
    {
      subject: read({ server: subject, ...signedDeliveries(subject) }),
      reference: { server: reference, ...signedDeliveries(reference) },
      connections: 64,
    },
    { ...as, part: "receive" },
  );
}

/** In the first slice of each round the figures are read, while the load is under way: fifteen times as often as Prometheus usually does. */
function read(side: Side): Side {
  let slices = 0;
  return {
    server: side.server,
    status: side.status,
    ...(side.numberAt !== undefined && { numberAt: side.numberAt }),
    get requests() {
      // A reading that fails ends the benchmark: nobody handles its rejection.
      if (slices++ % SLICES === 0) setTimeout(() => void readFigures(side.server), (SLICE_SECONDS * 1_000) / 2);
      return side.requests;
    },
  };
}

async function readFigures({ url }: ServerProcess): Promise<void> {
  const answer = await fetch(`${url}/-/metrics`, { headers: { Authorization: `Bearer ${OPERATOR_TOKEN}` } });
  const text = await answer.text();
  if (answer.status !== 200 || !text.includes("tain_")) throw new Error(`/-/metrics answers ${answer.status}`);
}
