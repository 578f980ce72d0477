import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import pg from "pg";
import { announce } from "../processes.ts";

/** Reads each body and answers once one insert of it is committed. */
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", async () => {
    const { rowCount } = await pool.query({
      name: "insert",
      text: `insert into deliveries (hook_id, guid, event, action, repository_id, payload, received_at)
        values ($1, $2, $3, $4, $5, $6, $7)`,
      values: [
        1,
        request.headers["x-github-delivery"],
        request.headers["x-github-event"],
        "opened",
        1,
        Buffer.concat(chunks),
        new Date(),
      ],
    });
    response
      .writeHead(rowCount === 1 ? 202 : 500, { "Content-Type": "application/json", "Content-Length": 2 })
      .end("{}");
  });
});
server.listen(0, "127.0.0.1", () =>
  announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => pool.end()),
);
