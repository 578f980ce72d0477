/**
 * PgBouncer in front of a test's Postgres. It lends a connection only for a transaction, and knows no prepared
 * statements.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { freePort } from "../../scripts/ports.mjs";
import { run } from "../../scripts/processes.mjs";
import { until } from "./patience.ts";

const PROGRAM = "/usr/sbin/pgbouncer";
/** PgBouncer refuses to run as root. */
const NOBODY = 65_534;
/** How long fetching the package may take where no package server answers. */
const FETCH_MS = 60_000;

export interface Pooler extends AsyncDisposable {
  /** The address of the same database, through the pooler. */
  through(databaseUrl: string): string;
}

/** Whether there is a PgBouncer to run. Where it is missing, root installs Debian's package. */
export async function hasPooler(): Promise<boolean> {
  if (!existsSync(PROGRAM) && process.getuid?.() === 0)
    await run("apt-get", ["-qq", "-y", "install", "--no-install-recommends", "pgbouncer"], {
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      signal: AbortSignal.timeout(FETCH_MS),
    }).catch(() => {}); // There is no apt-get, or it took too long: the test says that it was skipped.
  return existsSync(PROGRAM);
}

/** @param directory for PgBouncer's files. Other users have to be able to enter it, and the caller removes it. */
export async function openPooler(postgresUrl: string, { directory }: { directory: string }): Promise<Pooler> {
  const { hostname, port: serversPort, username, password } = new URL(postgresUrl);
  const port = await freePort(undefined);
  const home = join(directory, "pgbouncer");
  const users = join(home, "users");
  const file = join(home, "pgbouncer.ini");
  await mkdir(home, { recursive: true });
  await writeFile(users, `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`, { mode: 0o600 });
  await writeFile(
    file,
    [
      "[databases]",
      `* = host=${hostname} port=${serversPort}`,
      "[pgbouncer]",
      ...["listen_addr = 127.0.0.1", `listen_port = ${port}`, "unix_socket_dir =", "pool_mode = transaction"],
      ...["auth_type = scram-sha-256", `auth_file = ${users}`, "max_client_conn = 1000", "default_pool_size = 20"],
      // PgBouncer asks a server again a second after a failed attempt.
      "server_login_retry = 1",
      "",
    ].join("\n"),
  );
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const path of [home, users, file]) await chown(path, NOBODY, NOBODY);
  await chmod(home, 0o700);
  const child = spawn(PROGRAM, ["-q", ...(isRoot ? ["-u", "nobody"] : []), file], { stdio: "ignore" });
  await once(child, "spawn");
  await until("the pooler listens", () => listens(port));
  return {
    through(databaseUrl) {
      const url = new URL(databaseUrl);
      url.host = `127.0.0.1:${port}`;
      return url.href;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
