import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { announce } from "../processes.ts";

/** Reads each body, checks that it is signed, and keeps nothing. */
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const expected = createHmac("sha256", process.env.WEBHOOK_SECRET as string)
      .update(Buffer.concat(chunks))
      .digest();
    const signature = Buffer.from(String(request.headers["x-hub-signature-256"]).slice("sha256=".length), "hex");
    const isSigned = signature.length === expected.length && timingSafeEqual(signature, expected);
    response.writeHead(isSigned ? 202 : 401, { "Content-Type": "application/json", "Content-Length": 2 }).end("{}");
  });
});
server.listen(0, "127.0.0.1", () => announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
