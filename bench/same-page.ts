import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openCorpus } from "./corpus.ts";
import { startCorpusWeb } from "./corpus-web.ts";
import { PAGE, READ_SIZE } from "./list.ts";
import { getRequest } from "./load.ts";
import { type ServerProcess, startServer } from "./processes.ts";

/** Requests at once: enough that neither server waits for one, which would measure its latency. */
export const CONNECTIONS = 128;

/** One page of 100 issues, from the mirror and from a server that has nothing but its bytes. */
export interface SamePage extends AsyncDisposable {
  subject: ServerProcess;
  reference: ServerProcess;
  /** The same request to either; with `etag` from a client that has the page. */
  request(server: ServerProcess, etag?: string): Uint8Array;
  etag: string;
}

export async function openSamePage(): Promise<SamePage> {
  const resources = new AsyncDisposableStack();
  const corpus = await openCorpus(READ_SIZE);
  const { server: subject, headers } = await startCorpusWeb(corpus);
  resources.use(subject);
  const path = `/repos/${corpus.repositories[0]?.fullName}/issues?state=all&per_page=${PAGE}`;
  const answer = await fetch(subject.url + path, { headers: { ...headers, "Accept-Encoding": "identity" } });
  const [bytes, etag] = [Buffer.from(await answer.arrayBuffer()), answer.headers.get("etag")];
  if (answer.status !== 200 || !etag) throw new Error(`${path} answers ${answer.status}, ETag ${etag}`);
  const folder = await mkdtemp(join(tmpdir(), "tain-bench-"));
  resources.defer(() => rm(folder, { recursive: true }));
  const file = join(folder, "page.json");
  await writeFile(file, bytes);
  const reference = resources.use(await startServer("reference/bytes.ts", { BYTES_FILE: file, ETAG: etag }));
  return {
    subject,
    reference,
    request: (server, tag) => getRequest(server.url, path, tag ? { ...headers, "If-None-Match": tag } : headers),
    etag,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
