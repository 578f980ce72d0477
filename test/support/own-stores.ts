import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openStateDirectory, tainHome } from "../../scripts/checkout.mjs";
import { openPostgres } from "../../scripts/postgres.mjs";
import { throwAwayState } from "../../scripts/postgres-state.mjs";
import { recordOf } from "../../scripts/processes.mjs";
import { openRedis } from "../../scripts/redis.mjs";
import type { StoreServer } from "../../scripts/store-server.mjs";
import { openPooler, type Pooler } from "./pooler.ts";
import { openRedisTopology, type Topology } from "./redis-topologies.ts";

/** A server that the test may stop, and start again at the same address with the same data. */
interface OwnStore {
  readonly url: string;
  stop(): Promise<void>;
  start(): Promise<void>;
}

/**
 * Where Redis is several servers, `stop` kills the one that takes writes to these keys, and waits until another does.
 */
interface OwnRedis extends OwnStore {
  stop(prefix?: string): Promise<void>;
}

/** A Postgres and a Redis of the test's own, on disk and as durable as those of `npm start`. */
export interface OwnStores extends AsyncDisposable {
  postgres: OwnStore;
  redis: OwnRedis;
  /** Null: the test did not ask for a pooler. */
  pooler: Pooler | null;
}

export async function openOwnStores({
  redis: kind = "server",
  pooler: isPooled = false,
}: {
  redis?: "server" | Topology;
  pooler?: boolean;
} = {}): Promise<OwnStores> {
  // The next run finds what a killed run has left by this name and the owner's record, and ends it.
  const { state, user } = await throwAwayState("tain-throw-away-", { onDisk: true });
  await writeFile(join(state, "owner.json"), JSON.stringify(await recordOf(process.pid)), { mode: 0o600 });
  const programs = await openStateDirectory(tainHome());
  const resources = new AsyncDisposableStack();
  resources.defer(() => rm(state, { recursive: true, force: true }));
  const postgres = await openStore(() => openPostgres({ state, user }), resources);
  const redis =
    kind === "server"
      ? await openStore(() => openRedis({ state, programs, signal: new AbortController().signal }), resources)
      : await openSeveral(kind, { directory: state, programs }, resources);
  const pooler = isPooled ? resources.use(await openPooler(postgres.url, { directory: state })) : null;
  return { postgres, redis, pooler, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

async function openSeveral(
  kind: Topology,
  place: { directory: string; programs: string },
  resources: AsyncDisposableStack,
): Promise<OwnRedis> {
  const { url, failOver, recover } = resources.use(await openRedisTopology(kind, place));
  return { url, stop: (prefix = "{tain}") => failOver(prefix), start: recover };
}

async function openStore(open: () => Promise<StoreServer>, resources: AsyncDisposableStack): Promise<OwnStore> {
  let server: StoreServer | null = await open();
  const { url } = server;
  const stop = async () => {
    await server?.stop();
    server = null;
  };
  resources.defer(stop);
  return {
    url,
    stop,
    start: async () => {
      server ??= await open();
      if (server.url !== url)
        throw new Error("The store has come back at another address: its port was taken meanwhile");
    },
  };
}
