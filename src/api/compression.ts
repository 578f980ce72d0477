import compress from "@fastify/compress";
import type { FastifyInstance } from "fastify";

/** Smaller answers gain nothing by it. */
const THRESHOLD_BYTES = 1_024;

/**
 * Answers of this app travel by brotli or gzip where the caller takes them. The ETag is made of what was compressed, so it
 * is a weak one then (GitHub was recorded to do so).
 */
export async function compressAnswers(app: FastifyInstance): Promise<void> {
  await app.register(compress, { threshold: THRESHOLD_BYTES, encodings: ["br", "gzip"], globalDecompression: false });
  // The plugin adds its hook to each route, so that this one has to come behind it.
  app.addHook("onRoute", (route) => {
    route.onSend = [route.onSend ?? []].flat();
    route.onSend.push(async (_request, reply, payload) => {
      if (!reply.hasHeader("Content-Encoding")) return payload;
      const [tag, vary] = [reply.getHeader("ETag"), reply.getHeader("Vary")];
      if (typeof tag === "string" && !tag.startsWith("W/")) reply.header("ETag", `W/${tag}`);
      // Every answer says so already, in the service's order; the plugin says it once more.
      if (typeof vary === "string") reply.header("Vary", vary.replace(/, accept-encoding$/, ""));
      return payload;
    });
  });
}
