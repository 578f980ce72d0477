// The place of a Postgres cluster: the instance's home. Root runs Postgres as another user. If that user cannot enter
// the home (root's own home is closed to others), the cluster is in a directory under /var/lib/tain that belongs to
// that home.
import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readIfThere } from "./files.mjs";
import { findPostmaster } from "./postgres.mjs";
import { OUTSIDE_STATE } from "./postgres-binaries.mjs";
import { canEnter, findPostgresUser } from "./postgres-user.mjs";
import { hasEnded, signal } from "./processes.mjs";
import { temporaryDirectories } from "./temporary.mjs";
import { Refusal, say } from "./voice.mjs";

/** @typedef {import("./postgres-cluster.mjs").PostgresState} PostgresState */

/**
 * The state of the instance in `home`.
 * @param {string} home
 * @returns {Promise<PostgresState>}
 */
export async function lastingPostgresState(home) {
  const user = await findPostgresUser(join(home, "postgres"));
  if (!user || (await canEnter(user, home))) return { state: home, user };

  const state = join(OUTSIDE_STATE, createHash("sha256").update(home).digest("hex").slice(0, 16));
  // Both places hold the same token, which makes them a pair. If the home was deleted and made anew, the tokens differ.
  const here = join(home, "postgres-elsewhere.json");
  const there = join(state, "home.json");
  const pair = await readIfThere(there);
  if (pair === undefined || pair !== (await readIfThere(here))) {
    await discard(state, home);
    await mkdir(state, { recursive: true });
    for (const directory of [OUTSIDE_STATE, state]) await chmod(directory, 0o711 | 0o044);
    const made = JSON.stringify({ home, state, token: randomBytes(16).toString("hex") });
    await writeFile(here, made, { mode: 0o600 });
    await writeFile(there, made, { mode: 0o600 });
    say(`user ${user.name}, as whom Postgres runs, cannot enter ${home}: its data is in ${state}`);
  }
  return { state, user: await findPostgresUser(join(state, "postgres")) };
}

/**
 * A new directory for throw-away state that the Postgres user can enter, and this user.
 * @param {string} prefix
 * @param {{ onDisk?: boolean }} [options]
 * @returns {Promise<PostgresState>}
 */
export async function throwAwayState(prefix, { onDisk = false } = {}) {
  const user = await findPostgresUser(join(tmpdir(), "no-cluster-yet"));
  for (const place of await temporaryDirectories({ onDisk })) {
    if (user && !(await canEnter(user, place))) continue;
    const state = await mkdtemp(join(place, prefix));
    if (user) await chmod(state, 0o711);
    return { state, user };
  }
  throw new Refusal(
    `User ${user?.name}, as whom Postgres runs, can enter no directory for temporary files: set TMPDIR`,
  );
}

/**
 * Ends the server of a deleted home, and removes its cluster.
 * @param {string} state
 * @param {string} home
 */
async function discard(state, home) {
  const left = await findPostmaster(join(state, "postgres"));
  if (left?.owner === "ours") {
    signal(left.record.pid, "SIGINT");
    if (!(await hasEnded(left.record, 30_000))) {
      throw new Refusal(`Postgres (process ${left.record.pid}) of an earlier ${home} does not end: end it first`);
    }
  }
  if ((await readIfThere(join(state, "home.json"))) !== undefined)
    say(`removing ${state}: the ${home} it belonged to is gone`);
  await rm(state, { recursive: true, force: true });
}
