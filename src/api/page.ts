import { compressed, type Encoding } from "../http/reply.ts";
import { Kept } from "../mirror/unchanged/kept.ts";
import type { Standing, Standings } from "../mirror/unchanged/standings.ts";
import type { RepositoryPermission } from "./callers/upstream-rights.ts";

/** What upstream permits in a public repository to those who are shown a page. */
export interface PublicRight {
  repositoryId: number;
  level: RepositoryPermission;
}

/** A rendered answer of status 200. It may be given again while all that it shows is unchanged. */
export interface RenderedPage {
  /** Unlike any other page's. */
  id: symbol;
  /** Names it among those that are kept. */
  key: string;
  /** Null: to callers of their class it is the same, whatever upstream permits them. */
  right: PublicRight | null;
  /** JSON, in the form that was asked for. */
  bytes: Buffer;
  link: string | null;
  lastModified: Date | null;
  /** The repository that was asked for. */
  repositoryId: number;
  /** The same bytes, compressed for callers who asked for it so. */
  encoded: Map<Encoding, Buffer>;
  /** Its ETags, by the parts of the request that they cover. */
  tags: Map<string, string>;
}

/** A page's headers, maps and tags. */
const OVERHEAD_BYTES = 1_000;
/** Compressed twice a page of JSON has a third of its bytes once more; more than that is not foreseen. */
export const COMPRESSED = 1.4;

/** @param maxBytes 0: no pages are kept */
export function openPages(maxBytes: number): Kept<RenderedPage> {
  return new Kept({ maxBytes, bytesOf: ({ bytes }) => bytes.length * COMPRESSED + OVERHEAD_BYTES });
}

/** How the page's repository stands; null: the page may not be shown. */
export function shownStanding({ repositoryId }: RenderedPage, standings: Standings): Standing | null {
  const home = standings.get(repositoryId);
  return home?.isMirrored ? home : null;
}

/** The page's bytes in this encoding, which is made once and kept with it. */
export async function encoded(page: Pick<RenderedPage, "bytes" | "encoded">, encoding: Encoding): Promise<Buffer> {
  const known = page.encoded.get(encoding);
  if (known) return known;
  const bytes = ownBytes(await compressed(page.bytes, encoding, "often"));
  page.encoded.set(encoding, bytes);
  return bytes;
}

/**
 * Bytes in memory of their own, for keeping. Node.js puts the bytes of a short text, or of a short compressed body,
 * into a much larger block. The whole block would stay in memory while any part of it is kept.
 */
export function ownBytes(bytes: string | Buffer): Buffer {
  if (typeof bytes === "string") {
    const own = Buffer.allocUnsafeSlow(Buffer.byteLength(bytes));
    own.write(bytes);
    return own;
  }
  if (bytes.length === bytes.buffer.byteLength) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}
