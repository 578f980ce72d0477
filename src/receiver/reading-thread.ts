/** Reads large bodies on a thread of its own. */
import { serveThread } from "../work/thread.ts";
import { DeliveryFault } from "./fault.ts";
import { type ApartBody, givenWith, type ReadApart, readVerified } from "./reading.ts";

serveThread(
  async ({ pieces, ...check }: ApartBody): Promise<ReadApart> => {
    try {
      return await readVerified(Buffer.concat(pieces), check);
    } catch (error) {
      if (!(error instanceof DeliveryFault)) throw error;
      return { fault: { status: error.status, message: error.message } };
    }
  },
  (done) => ("fault" in done ? [] : givenWith(done.read.payload)),
);
