import compress from "@fastify/compress";
import type { FastifyInstance } from "fastify";

/** Smaller answers gain nothing by it. */
const THRESHOLD_BYTES = 1_024;
const ENCODINGS = ["br", "gzip"] as const;

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
export function travelsCompressed(body: string, acceptEncoding: string | string[] | undefined): boolean {
  const accepted = [acceptEncoding ?? ""].flat().join(",").toLowerCase().split(",");
  const takes = accepted.some((one) => {
    const [encoding = "", ...parameters] = one.split(";").map((part) => part.trim());
    const isRefused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    return !isRefused && (encoding === "*" || ENCODINGS.some((known) => known === encoding));
  });
  return takes && Buffer.byteLength(body) >= THRESHOLD_BYTES;
}
