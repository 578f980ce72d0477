/** Checks the signatures of large bodies on a thread of its own. */
import { serveThread } from "../work/threads.ts";
import { type Signed, signedBy } from "./signed-by.ts";

export interface LargeSigned extends Signed {
  body: Uint8Array;
}

serveThread(({ body, ...signed }: LargeSigned): Promise<number> => {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
  return signedBy(text, signed);
});
