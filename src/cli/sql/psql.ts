import { spawn } from "node:child_process";
import { once } from "node:events";
import pg from "pg";
import { codeOf } from "../../failure.ts";
import { CommandError } from "../terminal/command.ts";
import { databaseAddress, READER, SEARCH_PATH } from "./reading.ts";

/** Runs `psql` with the rights of `tain_reader`, and answers its exit code. @throws CommandError without a psql */
export async function runPsql(env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn("psql", [], { env: { ...env, ...psqlEnvironment(databaseAddress(env)) }, stdio: "inherit" });
  try {
    const [code] = await once(child, "exit");
    return typeof code === "number" ? code : 1;
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    throw new CommandError(
      "There is no psql on this machine: install it (postgresql-client), or give the query: tain sql 'select …'",
      { cause: error },
    );
  }
}

/** The address as psql's variables: other users of the machine see its arguments, which would hold the password. */
function psqlEnvironment(url: string): NodeJS.ProcessEnv {
  const { host, port, user, database, password } = new pg.Client({ connectionString: url });
  const sslMode = URL.parse(url)?.searchParams.get("sslmode");
  const settings = { role: READER, default_transaction_read_only: "on", search_path: SEARCH_PATH.replace(" ", "") };
  return {
    PGHOST: host,
    PGPORT: String(port),
    PGUSER: user ?? "",
    PGDATABASE: database ?? "",
    ...(password ? { PGPASSWORD: password } : {}),
    ...(sslMode ? { PGSSLMODE: sslMode } : {}),
    PGOPTIONS: Object.entries(settings)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(" "),
  };
}
