// Stores for one run of the tests or benchmarks: empty, quick, and gone afterwards.
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { openStateDirectory, tainHome } from "./checkout.mjs";
import { readIfThere, writeSecret } from "./files.mjs";
import { findPostmaster } from "./postgres.mjs";
import { throwAwayState } from "./postgres-state.mjs";
import { hasEnded, isAlive, recordOf, signal } from "./processes.mjs";
import { endRedisIn } from "./redis.mjs";
import { openStores } from "./stores.mjs";
import { everyTemporaryDirectory } from "./temporary.mjs";

const PREFIX = "tain-throw-away-";

/**
 * Like openStores; `close` also removes everything. TEST_DATABASE_URL and TEST_REDIS_URL name stores to use instead.
 * `durable`: a commit waits for the disk.
 * @param {AbortSignal} signalToStop
 * @param {{ durable?: boolean }} [options]
 * @returns {Promise<import("./stores.mjs").Stores>}
 */
export async function openThrowAwayStores(signalToStop, { durable = false } = {}) {
  const given = { databaseUrl: process.env.TEST_DATABASE_URL, redisUrl: process.env.TEST_REDIS_URL };
  await removeLeftovers();
  const { state, user } = await throwAwayState(PREFIX, { onDisk: durable });
  const remove = async () => await rm(state, { recursive: true, force: true });
  try {
    await writeSecret(join(state, "owner.json"), JSON.stringify(await recordOf(process.pid)));
    const stores = await openStores({
      given,
      postgres: async () => ({ state, user, throwAway: true, durable }),
      redis: async () => ({
        state,
        programs: await openStateDirectory(tainHome()),
        signal: signalToStop,
        throwAway: true,
      }),
    });
    return {
      ...stores,
      close: async () => {
        await stores.close();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Ends the servers that a killed run has left, and removes their files. No later run would use them. */
async function removeLeftovers() {
  for (const place of await everyTemporaryDirectory()) {
    for (const name of await readdir(place)) {
      if (!name.startsWith(PREFIX)) continue;
      const state = join(place, name);
      // The file of another user cannot be read.
      const owner = await readIfThere(join(state, "owner.json")).catch(() => undefined);
      if (owner === undefined || (await stat(state)).uid !== process.getuid?.() || (await isAlive(JSON.parse(owner))))
        continue;
      const postmaster = await findPostmaster(join(state, "postgres"));
      if (postmaster?.owner === "ours") {
        signal(postmaster.record.pid, "SIGQUIT");
        await hasEnded(postmaster.record, 10_000);
      }
      await endRedisIn(state);
      await rm(state, { recursive: true, force: true });
    }
  }
}
