import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

/** Smaller bodies gain nothing by it. */
const THRESHOLD_BYTES = 1_024;
const ENCODINGS = ["br", "gzip"] as const;
export type Encoding = (typeof ENCODINGS)[number];

/**
 * The encoding for a body to a caller with this `Accept-Encoding`: the one that we like best among those they like
 * best.
 */
export function encodingOf(body: string | Buffer, acceptEncoding: string | string[] | undefined): Encoding | null {
  if (acceptEncoding === undefined || Buffer.byteLength(body) < THRESHOLD_BYTES) return null;
  let chosen: { encoding: Encoding; weight: number } | null = null;
  for (const one of [acceptEncoding].flat().join(",").toLowerCase().split(",")) {
    const [name = "", ...parameters] = one.split(";").map((part) => part.trim());
    // A caller that takes anything surely takes the older one.
    const encoding = name === "*" ? "gzip" : ENCODINGS.find((known) => known === name);
    const weight = Number(parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? 1);
    if (!encoding || !(weight > 0)) continue;
    if (!chosen || weight > chosen.weight || (weight === chosen.weight && encoding === ENCODINGS[0]))
      chosen = { encoding, weight };
  }
  return chosen?.encoding ?? null;
}

/** How hard brotli tries: what is sent often is worth more of it. */
const BROTLI_QUALITY = { once: 4, often: 5 };

/** A whole body as it travels. */
export async function compressed(
  body: string | Buffer,
  encoding: Encoding,
  sent: keyof typeof BROTLI_QUALITY,
): Promise<Buffer> {
  if (encoding === "gzip") return promisify(gzip)(body);
  return promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY[sent] } });
}
