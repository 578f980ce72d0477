import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import compress from "@fastify/compress";
import type { FastifyInstance } from "fastify";

/** Smaller answers gain nothing by it. */
const THRESHOLD_BYTES = 1_024;
const ENCODINGS = ["br", "gzip"] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Answers of this app travel by brotli or gzip where the caller takes them. */
export async function compressAnswers(app: FastifyInstance): Promise<void> {
  await app.register(compress, {
    threshold: THRESHOLD_BYTES,
    encodings: [...ENCODINGS],
    globalDecompression: false,
  });
  // The plugin adds its hook to each route, so that this one has to come behind it. Every answer names Accept-Encoding in
  // the service's order already; the plugin does so once more.
  app.addHook("onRoute", (route) => {
    route.onSend = [route.onSend ?? []].flat();
    route.onSend.push(async (_request, reply, payload) => {
      const vary = reply.getHeader("Vary");
      if (reply.hasHeader("Content-Encoding") && typeof vary === "string")
        reply.header("Vary", vary.replace(/, accept-encoding$/, ""));
      return payload;
    });
  });
}

/** Whether a body travels compressed to a caller who sent this `Accept-Encoding`. Pure. */
export function travelsCompressed(body: string | Buffer, acceptEncoding: string | string[] | undefined): boolean {
  return encodingOf(body, acceptEncoding) !== null;
}

/** The encoding in which a body travels to whoever sent this `Accept-Encoding`: of those they like best our own first. Pure. */
export function encodingOf(body: string | Buffer, acceptEncoding: string | string[] | undefined): Encoding | null {
  if (acceptEncoding === undefined || Buffer.byteLength(body) < THRESHOLD_BYTES) return null;
  let chosen: { encoding: Encoding; weight: number } | null = null;
  for (const one of [acceptEncoding].flat().join(",").toLowerCase().split(",")) {
    const [name = "", ...parameters] = one.split(";").map((part) => part.trim());
    // Whoever takes anything surely takes the older one.
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

/** A body as it travels, in full. */
export async function compressed(
  body: string | Buffer,
  encoding: Encoding,
  sent: keyof typeof BROTLI_QUALITY,
): Promise<Buffer> {
  if (encoding === "gzip") return promisify(gzip)(body);
  return promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY[sent] } });
}
