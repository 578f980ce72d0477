import type { Encoding } from "./compression.ts";

/** An answer of status 200 as it was rendered, which may be given again as long as none of `revisions` has changed. */
export interface Page {
  /** Unlike any other page's of this process. */
  id: number;
  /** JSON, in the form that was asked for. */
  bytes: Buffer;
  link: string | null;
  lastModified: Date | null;
  /** The repository that was asked for. */
  repositoryId: number;
  /** Of everything that it shows, from before it was rendered. */
  revisions: ReadonlyMap<number, string | null>;
  /** The same bytes, compressed for those who asked for it so. */
  encoded: Map<Encoding, Buffer>;
  /** Its ETags, by what of the request they were made with. */
  tags: Map<string, string>;
}
