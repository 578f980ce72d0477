/** Checks the signatures of large bodies on a thread of its own. */
import { serveThread } from "../work/threads.ts";
import { type Signed, signedBy } from "./signed-by.ts";

serveThread((signed: Signed): Promise<number> => signedBy(signed));
