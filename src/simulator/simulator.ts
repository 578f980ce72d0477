/**
 * A stand-in for the code-hosting service, for demonstrations, tests and benchmarks: the world, its REST and GraphQL
 * interfaces, its webhooks, its limits, its faults. It imports nothing of the mirror it is used to test.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Control } from "./control/control.ts";
import type { Simulator } from "./control/running.ts";
import { type FaultSettings, Faults } from "./faults/faults.ts";
import { type BuildOptions, type Builds, startBuilds } from "./live/builds.ts";
import { type Live, startLive } from "./live/live.ts";
import { Meter } from "./quota/meter.ts";
import { Quota, type QuotaOptions } from "./quota/quota.ts";
import type { Service } from "./rest/call.ts";
import { HttpApi } from "./service/http-api.ts";
import { type WebhookOptions, Webhooks } from "./webhooks/webhooks.ts";
import { accessOf, NO_ACCESS } from "./world/access.ts";
import { type AppInput, Apps } from "./world/apps.ts";
import { type Clock, SettableClock } from "./world/clock.ts";
import { Manifests } from "./world/manifests.ts";
import { type TokenInput, Tokens } from "./world/tokens.ts";
import { World, type WorldOptions } from "./world/world.ts";

export interface SimulatorOptions {
  /** 0 (the default): any free port. */
  readonly port?: number;
  /** Default 127.0.0.1: no other machine reaches it. */
  readonly host?: string;
  readonly seed?: number;
  /** Default: a `SettableClock` that runs with real time. */
  readonly clock?: Clock;
  /** A world that is there already; with it, `seed` and `clock` only seed faults. */
  readonly world?: World;
  readonly worldOptions?: Omit<WorldOptions, "seed" | "clock">;
  readonly tokens?: readonly TokenInput[];
  readonly apps?: readonly AppInput[];
  /** Base of `html_url`. Default https://github.com. */
  readonly htmlUrl?: string;
  readonly quota?: QuotaOptions;
  readonly webhooks?: WebhookOptions;
  readonly faults?: FaultSettings;
  /** How many rows of a list of issues can be reached by page number. Default 10,000. */
  readonly deepPageLimit?: number;
  /** The service refuses hooks on loopback addresses. Default false. */
  readonly refuseLocalHooks?: boolean;
  /** The service's whole GraphQL schema, as SDL. What is not modelled is made up. Default: only what is modelled. */
  readonly wholeSchema?: string;
}

export async function openSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const seed = options.seed ?? 1;
  const world =
    options.world ?? new World({ ...options.worldOptions, seed, clock: options.clock ?? new SettableClock() });
  const htmlUrl = options.htmlUrl ?? "https://github.com";
  const apps = new Apps(world);
  const tokens = new Tokens(world, apps);
  for (const token of options.tokens ?? []) tokens.create(token);
  for (const app of options.apps ?? []) apps.create(app);
  const quota = new Quota(world.clock, options.quota);
  const meter = new Meter(() => world.clock.now());
  const faults = new Faults(seed);
  let url = "";
  let live: Live | null = null;
  let builds: Builds | null = null;
  const webhooks = new Webhooks(world, apps, faults, () => ({ apiUrl: url, htmlUrl }), options.webhooks);
  const service: Service = {
    world,
    tokens,
    apps,
    quota,
    meter,
    webhooks,
    manifests: new Manifests({ world, apps, refuseLocalHooks: options.refuseLocalHooks ?? false }),
    deepPageLimit: options.deepPageLimit ?? 10_000,
    numberedRows: () => faults.numberedRows,
    refuseLocalHooks: options.refuseLocalHooks ?? false,
    wholeSchema: options.wholeSchema ?? null,
  };
  const api = new HttpApi(service, faults, htmlUrl, () => url);
  const server = createServer({ keepAliveTimeout: 60_000 });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, options.host ?? "127.0.0.1", resolve);
  });
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("A TCP server has no port");
  const { address, port, family } = bound;
  url = `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;

  const simulator: Simulator = {
    ...service,
    url,
    htmlUrl,
    faults,
    accessOf(value, repository) {
      const token = value === null ? null : tokens.find(value);
      return token === undefined ? NO_ACCESS : accessOf(world, token, repository);
    },
    setFaults(settings) {
      faults.set(settings);
      world.lag.ms = faults.lagMs;
      api.graphql.faults = faults.graphql;
    },
    startLive(liveOptions) {
      simulator.stopLive();
      const started = startLive(world, liveOptions);
      started.done.catch((error: unknown) => console.error("simulator: the live stream ended", error));
      live = started;
      return started;
    },
    stopLive() {
      live?.stop();
      const count = live?.count ?? 0;
      live = null;
      return count;
    },
    startBuilds(buildOptions: BuildOptions) {
      builds?.stop();
      const started = startBuilds(world, buildOptions);
      started.done.catch((error: unknown) => console.error("simulator: the builds ended", error));
      builds = started;
      return started;
    },
    quiet: () => webhooks.quiet(),
    async close() {
      simulator.stopLive();
      builds?.stop();
      api.close();
      await webhooks.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
    [Symbol.asyncDispose]: () => simulator.close(),
  };
  simulator.setFaults(options.faults ?? {});
  const control = new Control(simulator);
  server.on("request", (request, response) => {
    const part = request.url?.startsWith("/-/") ? control : service.manifests.isPage(request) ? service.manifests : api;
    const handled = part.handle(request, response);
    handled.catch((error: unknown) => failed(request, response, error));
  });
  return simulator;
}

/** A bug of the simulator, or a caller that went away. The first must be loud, the second needs no word. */
function failed(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (request.destroyed && !request.complete) return;
  if (error instanceof Error && (error.name === "AbortError" || ("code" in error && error.code === "ECONNRESET")))
    return;
  console.error(`simulator: ${request.method} ${request.url}`, error);
  if (response.headersSent) response.destroy();
  else response.writeHead(500, { "Content-Type": "application/json" }).end(JSON.stringify({ message: String(error) }));
}
