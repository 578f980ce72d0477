import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import pg from "pg";

/** The roles of processes, and of people who query by SQL. `roles/NAME.sql` holds the rights of each. */
const ROLES = ["reader", "web", "worker"] as const;

/**
 * Makes the roles, and grants them what they need of the schema as it is now. If the connection's user may not make
 * roles, returns a sentence about what is missing; otherwise null. All in one transaction, so processes with these
 * roles notice nothing.
 * @param client connected as the owner of the tables
 */
export async function grantRoles(client: pg.ClientBase): Promise<string | null> {
  const names = ROLES.map((role) => `tain_${role}`);
  const { rows } = await client.query<{ may_make: boolean; there: string[] }>(
    `select rolsuper or rolcreaterole as may_make,
        array(select rolname::text from pg_roles where rolname = any($1)) as there
      from pg_roles where rolname = current_user`,
    [names],
  );
  const missing = names.filter((name) => !rows[0]?.there.includes(name));
  if (missing.length > 0 && !rows[0]?.may_make)
    return (
      `This user may not make the roles ${missing.join(", ")}: let a superuser run ` +
      `\`${missing.map((name) => `create role ${name}`).join("; ")}\`, and migrate again. ` +
      "Until then all processes have the rights of one user"
    );
  await client.query("begin");
  try {
    for (const role of ROLES) await client.query(await readFile(new URL(`roles/${role}.sql`, import.meta.url), "utf8"));
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw new Error("The roles of db/roles could not be granted their rights", { cause: error });
  }
  return null;
}

/**
 * Connection strings, one for each kind of process. Each logs in with one role, and has only the rights of that role.
 */
export interface ProcessLogins {
  web: string;
  worker: string;
}

/**
 * Gives the processes' roles new passwords. Only for a server that no other instance uses.
 * @param databaseUrl the address, with a user that may change roles
 */
export async function openLogins(databaseUrl: string): Promise<ProcessLogins> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "tain roles" });
  await client.connect();
  try {
    const login = async (role: string) => {
      const url = new URL(databaseUrl);
      url.username = role;
      url.password = randomBytes(24).toString("hex");
      await client.query(`alter role ${role} login password '${url.password}'`);
      return url.href;
    };
    return { web: await login("tain_web"), worker: await login("tain_worker") };
  } finally {
    await client.end();
  }
}
