import Fastify from "fastify";
import pg from "pg";
import { announce } from "../processes.ts";

/** A page of issues whose JSON lies ready in one text column: read, joined, sent. */
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL as string, max: 10 });
const app = Fastify();

app.get<{ Params: { id: string }; Querystring: { before: string } }>(
  "/repositories/:id/issues",
  async (request, reply) => {
    const { rows } = await pool.query<{ json: string }>({
      name: "page",
      text: "select json from ready_issues where repository_id = $1 and number < $2 order by number desc limit 100",
      values: [request.params.id, request.query.before],
    });
    return reply
      .header("Content-Type", "application/json; charset=utf-8")
      .send(`[${rows.map(({ json }) => json).join(",")}]`);
  },
);

announce(await app.listen({ host: "127.0.0.1", port: 0 }));
