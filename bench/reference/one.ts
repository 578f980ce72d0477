import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import pg from "pg";
import { announce } from "../processes.ts";

/** `/REPOSITORY/NUMBER`: one row by its key, whose JSON lies ready. */
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL as string, max: 10 });

const server = createServer(async (request, response) => {
  const [, repository, number] = (request.url ?? "").split("/");
  const { rows } = await pool.query<{ json: string }>({
    name: "one",
    text: "select json from ready_issues where repository_id = $1 and number = $2",
    values: [repository, number],
  });
  response.writeHead(200, { "Content-Type": "application/json; charset=utf-8" }).end(rows[0]?.json);
});
server.listen(0, "127.0.0.1", () => announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
