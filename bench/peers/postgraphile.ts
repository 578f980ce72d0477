import { createServer } from "node:http";
import { createRequire } from "node:module";
import { announce } from "../processes.ts";

/** PostGraphile with its own default preset, over the tables of the schema `peer`. */
const PEER = "postgraphile";
const require = createRequire(import.meta.url);
const { postgraphile } = require(PEER);
const { PostGraphileAmberPreset } = require(`${PEER}/presets/amber`);
const { makePgService } = require(`${PEER}/adaptors/pg`);
const { grafserv } = require(`${PEER}/grafserv/node`);

process.env.GRAPHILE_ENV = "production";
const pgl = postgraphile({
  extends: [PostGraphileAmberPreset],
  pgServices: [
    makePgService({ connectionString: process.env.DATABASE_URL, schemas: ["peer"], poolConfig: { max: 10 } }),
  ],
  grafserv: { graphiql: false, watch: false },
  grafast: { explain: false },
});
const server = createServer();
await pgl.createServ(grafserv).addTo(server);
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as { port: number };
  announce(`http://127.0.0.1:${port}`, () => pgl.release());
});
