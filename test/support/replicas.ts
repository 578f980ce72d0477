/** A Postgres of a test's own with streaming replicas: real servers, each with files of its own. */
import { appendFile, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { migrate } from "../../db/migrate.ts";
import { isPostgresConflict } from "../../db/outage.ts";
import { openPostgres } from "../../scripts/postgres.mjs";
import { throwAwayState } from "../../scripts/postgres-state.mjs";
import { recordOf, run } from "../../scripts/processes.mjs";
import type { StoreServer } from "../../scripts/store-server.mjs";
import { until } from "./patience.ts";

interface TestServer {
  readonly url: string;
  /** The processor time that the server's processes have taken so far, in seconds. */
  cpuSeconds(): Promise<number>;
  /** Runs a statement as the server's superuser. */
  query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]>;
  /** Sets a setting that needs no restart, and waits until it is in effect. */
  set(name: string, value: string): Promise<void>;
  /** Ends the server as the loss of its machine would. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface Replicated extends AsyncDisposable {
  primary: TestServer;
  replicas: TestServer[];
  /** Makes a replica the primary. */
  promote(replica: TestServer): Promise<void>;
}

/** Opens a migrated database whose replicas have all of it. */
export async function openReplicated({ replicas: count }: { replicas: number }): Promise<Replicated> {
  await using opening = new AsyncDisposableStack();
  const place = async () => {
    const { state, user } = await throwAwayState("tain-throw-away-");
    opening.defer(() => rm(state, { recursive: true, force: true }));
    await writeFile(join(state, "owner.json"), JSON.stringify(await recordOf(process.pid)), { mode: 0o600 });
    return { state, user };
  };
  const open = (at: Awaited<ReturnType<typeof place>>) => openPostgres({ ...at, throwAway: true, durable: true });
  const first = await place();
  // The files are copied while the server does not run. This takes a second, and needs no program that npm does not
  // install.
  const made = await open(first);
  const address = made.url;
  await migrate(address);
  await made.stop();
  const copies = [];
  for (let at = 0; at < count; at++) {
    const copy = await place();
    for (const name of ["postgres", "postgres-password"])
      await run("cp", ["-a", join(first.state, name), join(copy.state, name)], {});
    copies.push(copy);
  }
  const primary = opening.use(await serverOf(() => open(first)));
  const replicas: TestServer[] = [];
  for (const copy of copies) {
    const data = join(copy.state, "postgres");
    await follow(data, primary.url);
    replicas.push(opening.use(await serverOf(() => open(copy))));
  }
  const all = opening.move();
  return {
    primary,
    replicas,
    async promote(replica) {
      // A promotion may end the very query that asked for it. The query is then sent again.
      await replica.query("select pg_promote() where pg_is_in_recovery()");
      await until("the replica takes writes", async () => {
        const [row] = await replica.query<{ waits: boolean }>("select pg_is_in_recovery() as waits");
        return row?.waits === false;
      });
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Makes the server that is started on these files follow a primary. */
async function follow(data: string, primaryUrl: string): Promise<void> {
  const { hostname, port, username, password } = new URL(primaryUrl);
  const conninfo = `host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)}`;
  await appendFile(
    join(data, "postgresql.auto.conf"),
    `primary_conninfo = '${conninfo}'\nwal_retrieve_retry_interval = '100ms'\n`,
  );
  await writeFile(join(data, "standby.signal"), "");
}

const MOST_TRIES = 20;

async function serverOf(open: () => Promise<StoreServer>): Promise<TestServer & AsyncDisposable> {
  let server: StoreServer | null = await open();
  const { url } = server;
  const query = async <Row extends pg.QueryResultRow>(text: string): Promise<Row[]> => {
    for (let tries = 1; ; tries++) {
      try {
        return await asked<Row>(text);
      } catch (error) {
        // A replica's replay cancels queries that stand in its way. This ends once the replica has caught up.
        if (tries === MOST_TRIES || !isPostgresConflict(error)) throw error;
      }
    }
  };
  const asked = async <Row extends pg.QueryResultRow>(text: string): Promise<Row[]> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  };
  return {
    url,
    cpuSeconds: () => cpuSecondsBelow(server?.pid ?? 0),
    query,
    async set(name, value) {
      await query(`alter system set ${name} = '${value}'`);
      await query("select pg_reload_conf()");
      await until(`${name} is ${value}`, async () => {
        const [row] = await query<{ is: string }>(`select current_setting('${name}') as is`);
        return row?.is === value;
      });
    },
    async kill() {
      const killed = server;
      server = null;
      if (!killed) return;
      process.kill(killed.pid, "SIGQUIT");
      await killed.exited;
    },
    async start() {
      server ??= await open();
      if (server.url !== url) throw new Error("The server has come back at another address");
    },
    async [Symbol.asyncDispose]() {
      await server?.stop();
      server = null;
    },
  };
}

const TICKS_PER_SECOND = 100;

/**
 * The processor time of a process and its children, ended ones included. See proc(5), fields 4 and 14 to 17 of `stat`.
 */
export async function cpuSecondsBelow(pid: number): Promise<number> {
  let ticks = 0;
  for (const name of await readdir("/proc")) {
    const stat = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, "utf8").catch(() => "") : "";
    // The second field is a name in brackets, which may have blanks in it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const counted = Number(name) === pid ? fields.slice(11, 15) : Number(fields[1]) === pid ? fields.slice(11, 13) : [];
    for (const one of counted) ticks += Number(one);
  }
  return ticks / TICKS_PER_SECOND;
}
