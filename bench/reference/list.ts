import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import pg from "pg";
import { announce } from "../processes.ts";

/** A page of issues whose JSON lies ready in one text column: read, joined, sent. */
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL as string, max: 10 });

const server = createServer(async ({ url = "" }, response) => {
  const { pathname, searchParams } = new URL(url, "http://reference");
  const { rows } = await pool.query<{ json: string }>({
    name: "page",
    text: "select json from ready_issues where repository_id = $1 and number < $2 order by number desc limit 100",
    values: [pathname.split("/")[2], searchParams.get("before")],
  });
  const body = `[${rows.map(({ json }) => json).join(",")}]`;
  response
    .writeHead(200, { "Content-Type": "application/json; charset=utf-8", "Content-Length": Buffer.byteLength(body) })
    .end(body);
});
server.listen(0, "127.0.0.1", () => announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
