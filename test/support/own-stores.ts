import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A server that the test may stop, and start again on the same address with what it had stored. */
interface OwnStore {
  readonly url: string;
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** A Postgres and a Redis of the test's own, as durable as those of `npm start`. */
export interface OwnStores extends AsyncDisposable {
  postgres: OwnStore;
  redis: OwnStore;
}

interface Server {
  url: string;
  stop(): Promise<void>;
}

interface Launcher {
  openPostgres(options: { state: string; user: unknown }): Promise<Server>;
  openRedis(options: { state: string; programs: string; signal: AbortSignal }): Promise<Server>;
  throwAwayState(prefix: string): Promise<{ state: string; user: unknown }>;
  openStateDirectory(directory: string): Promise<string>;
  tainHome(): string;
  recordOf(pid: number): Promise<unknown>;
}

export async function openOwnStores(): Promise<OwnStores> {
  const launcher = await loadLauncher();
  // By this name and the owner's record the next run finds and ends what a killed one has left.
  const { state, user } = await launcher.throwAwayState("tain-throw-away-");
  await writeFile(join(state, "owner.json"), JSON.stringify(await launcher.recordOf(process.pid)), { mode: 0o600 });
  const programs = await launcher.openStateDirectory(launcher.tainHome());
  const resources = new AsyncDisposableStack();
  resources.defer(() => rm(state, { recursive: true, force: true }));
  const postgres = await openStore(() => launcher.openPostgres({ state, user }), resources);
  const redis = await openStore(
    () => launcher.openRedis({ state, programs, signal: new AbortController().signal }),
    resources,
  );
  return { postgres, redis, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

async function openStore(open: () => Promise<Server>, resources: AsyncDisposableStack): Promise<OwnStore> {
  let server: Server | null = await open();
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

/** The launcher's own modules, which are plain JavaScript without types. */
async function loadLauncher(): Promise<Launcher> {
  const names = ["postgres", "redis", "postgres-state", "checkout", "processes"];
  const modules = await Promise.all(
    names.map((name) => import(new URL(`../../scripts/${name}.mjs`, import.meta.url).href)),
  );
  return Object.assign({}, ...modules) as Launcher;
}
