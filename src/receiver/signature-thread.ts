/** Checks the signatures of large bodies on a thread of its own. */
import { serveThread } from "../work/threads.ts";
import { type LargeBodyCheck, signedBy } from "./envelope.ts";

serveThread(({ body, ...check }: LargeBodyCheck): Promise<number> => {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
  return signedBy(text, check);
});
