/** Control of the simulator over HTTP, below `/-/`: no credentials, loopback callers only, no part of the service. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import { promisify } from "node:util";
import type { FaultSettings } from "../faults/faults.ts";
import type { BuildOptions } from "../live/builds.ts";
import { type Bucket, callerOf } from "../quota/quota.ts";
import { openView, type View } from "../views/view.ts";
import { NO_ACCESS } from "../world/access.ts";
import { SettableClock } from "../world/clock.ts";
import { isJsonObject, trusted } from "../world/json.ts";
import type { Permissions } from "../world/permissions.ts";
import type { Repository } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import type { TokenInput } from "../world/tokens.ts";
import { isPull, type World } from "../world/world.ts";
import { createApp, deleteApp, editApp, editInstallation, install, shownApp, uninstall } from "./control-apps.ts";
import { mutate } from "./mutations.ts";
import type { Simulator } from "./running.ts";
import { summary, wholeState } from "./state.ts";

type Json = Readonly<Record<string, unknown>>;
type ControlRoute = (control: Control, body: Json, query: URLSearchParams, rest: string) => unknown;

/** Something asked of the control interface makes no sense. */
class ControlError extends Error {
  override name = "ControlError";
}

export class Control {
  readonly simulator: Simulator;

  constructor(simulator: Simulator) {
    this.simulator = simulator;
  }

  /** Sees everything, in the addresses of the simulator itself. */
  view(): View {
    const { world, url, htmlUrl } = this.simulator;
    return openView({ world, apiUrl: url, htmlUrl, roleOf: () => "admin" });
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const address = request.socket.remoteAddress ?? "";
    if (!/^(127\.|::1$|::ffff:127\.)/.test(address)) {
      send(response, 403, { message: "The control interface answers loopback callers only" });
      return;
    }
    const url = new URL(request.url ?? "/", "http://localhost");
    const [, , name = "", ...rest] = url.pathname.split("/");
    const route = ROUTES[`${request.method} ${name}`];
    if (!route) {
      send(response, 404, { message: `There is no ${request.method} ${url.pathname}`, routes: Object.keys(ROUTES) });
      return;
    }
    try {
      const answer = await route(
        this,
        await readJson(request),
        url.searchParams,
        rest.map(decodeURIComponent).join("/"),
      );
      if (answer instanceof Readable) await stream(response, answer);
      else send(response, 200, answer ?? {});
    } catch (error) {
      if (error instanceof Refusal) send(response, error.status, { message: error.message, errors: error.errors });
      else if (error instanceof Error && !(error instanceof TypeError)) send(response, 400, { message: error.message });
      else throw error;
    }
  }
}

const ROUTES: Readonly<Record<string, ControlRoute>> = {
  "GET meter": ({ simulator }) => ({
    ...simulator.meter.read(),
    webhooks: simulator.webhooks.tally,
    faults: Object.fromEntries(simulator.faults.struck),
  }),
  "POST meter": ({ simulator }, _body, _query, rest) => {
    if (rest !== "reset") throw new ControlError("POST /-/meter/reset is the only one");
    simulator.meter.reset();
  },
  "GET state": (control, _body, query) => {
    const { world } = control.simulator;
    const wanted = query.get("repository");
    if (wanted === null) return summary(control.view());
    const repository = named(world, wanted);
    const repositories = wanted === "*" ? [...world.repositories.values()] : repository ? [repository] : [];
    if (repositories.length === 0 && wanted !== "*") throw new ControlError(`There is no repository ${wanted}`);
    return Readable.from(wholeState(control.view(), repositories));
  },
  /** `?repository=` (full name or id), and `token=` unless the caller has none; see `Simulator.accessOf`. */
  "GET access": ({ simulator }, _body, query) => {
    const repository = named(simulator.world, query.get("repository") ?? "");
    return repository ? simulator.accessOf(query.get("token"), repository) : NO_ACCESS;
  },
  "GET clock": ({ simulator }) => ({ now: simulator.world.clock.now() }),
  "POST clock": ({ simulator }, body) => {
    const { clock } = simulator.world;
    if (!(clock instanceof SettableClock)) throw new ControlError("This simulator runs on a clock that cannot be set");
    const { now, advanceMs } = body;
    if (typeof now === "number") clock.set(now);
    else if (typeof now === "string" && !Number.isNaN(Date.parse(now))) clock.set(Date.parse(now));
    else if (typeof advanceMs === "number") clock.advance(advanceMs);
    else throw new ControlError("Give {now} (epoch milliseconds or ISO time) or {advanceMs}");
    return { now: clock.now() };
  },
  "GET faults": ({ simulator }) => ({
    struck: Object.fromEntries(simulator.faults.struck),
    webhooks: simulator.faults.webhooks,
    lagMs: simulator.faults.lagMs,
    lagDrawn: simulator.faults.lagDrawn,
    lacksEvents: simulator.faults.lacksEvents,
  }),
  "POST faults": ({ simulator }, body) => simulator.setFaults(trusted<FaultSettings>(body)),
  "POST limits": ({ simulator }, body) => {
    const { quota } = simulator;
    const { retryAfter, status, ...limits } = body;
    for (const [name, value] of Object.entries(limits)) {
      if (!isLimit(quota.limits, name))
        throw new ControlError(`There is no limit ${name}: ${Object.keys(quota.limits).join(", ")}`);
      if (value !== null && typeof value !== "number")
        throw new ControlError(`${name} should be a number, or null for no limit`);
      // JSON has no infinity.
      quota.limits[name] = value ?? Number.POSITIVE_INFINITY;
    }
    if (typeof retryAfter === "boolean") quota.retryAfter = retryAfter;
    if (status === 403 || status === 429) quota.status = status;
    return { ...quota.limits, retryAfter: quota.retryAfter, status: quota.status };
  },
  "POST quota": ({ simulator }, body) => {
    const token = simulator.tokens.find(String(body.token));
    if (!token) throw new ControlError("There is no such token");
    const caller = callerOf(token, "");
    const bucket = trusted<Bucket>(body.bucket ?? "core");
    if (typeof body.remaining === "number") simulator.quota.setRemaining(caller, bucket, body.remaining);
    return simulator.quota.state(caller, bucket);
  },
  "POST tokens": ({ simulator }, body, _query, rest) => {
    if (rest === "rotate") {
      const token = simulator.tokens.rotate(String(body.token), body.to === undefined ? undefined : String(body.to));
      return { token: token.value };
    }
    if (rest === "expire") {
      const { expiresAt } = simulator.tokens.expire(String(body.token), numberOr(body.at, simulator.world.clock.now()));
      return { expiresAt };
    }
    if (rest === "permit") {
      const given = trusted<{ token: string; permissions: Permissions }>(body);
      return { permissions: simulator.tokens.permit(given.token, given.permissions).permissions };
    }
    if (typeof body.login !== "string") throw new ControlError("login is missing");
    const token = simulator.tokens.create(trusted<TokenInput>(body));
    return {
      token: token.value,
      login: simulator.world.user(token.userId).login,
      kind: token.kind,
      scopes: token.scopes,
      permissions: token.permissions,
    };
  },
  "DELETE tokens": ({ simulator }, _body, _query, rest) => {
    if (!simulator.tokens.delete(rest)) throw new ControlError("There is no such token");
  },
  "GET apps": ({ simulator }) => ({ apps: [...simulator.apps.byId.values()].map((app) => shownApp(simulator, app)) }),
  "POST apps": ({ simulator }, body) => createApp(simulator, body),
  "PATCH apps": ({ simulator }, body, _query, rest) => editApp(simulator, rest, body),
  "DELETE apps": ({ simulator }, _body, _query, rest) => deleteApp(simulator, rest),
  "POST installations": ({ simulator }, body) => install(simulator, body),
  "PATCH installations": ({ simulator }, body, _query, rest) => editInstallation(simulator, rest, body),
  "DELETE installations": ({ simulator }, body, _query, rest) => uninstall(simulator, rest, body),
  "POST live": ({ simulator }, body) => {
    const { ratePerSecond, seed } = body;
    if (typeof ratePerSecond !== "number") throw new ControlError("ratePerSecond is missing");
    simulator.startLive({ ...body, ratePerSecond, seed: typeof seed === "number" ? seed : 1 });
  },
  "DELETE live": ({ simulator }) => ({ count: simulator.stopLive() }),
  /** `{repository, pulls?, …}`: the newest open pull requests of it, at most so many; see `BuildOptions`. */
  "POST builds": ({ simulator }, body) => {
    const repository = named(simulator.world, String(body.repository));
    if (!repository) throw new ControlError(`There is no repository ${body.repository}`);
    const open = [...repository.rows.pullsByCreated.descending()]
      .filter(isPull)
      .filter(({ state }) => state === "open");
    const pulls = open.slice(0, numberOr(body.pulls, open.length));
    const options = trusted<Partial<BuildOptions>>(body);
    simulator.startBuilds({ tickMs: 50, ...options, seed: numberOr(body.seed, 1), pulls });
    return { pulls: pulls.map(({ number }) => number) };
  },
  "POST mutate": (control, body) => mutate(control.simulator.world, control.view(), body),
  "POST quiet": async ({ simulator }) => {
    await simulator.quiet();
    return simulator.webhooks.tally;
  },
};

/** By full name, an old one too, or by id. */
function named(world: World, text: string): Repository | undefined {
  const [owner = "", name = ""] = text.split("/");
  return /^\d+$/.test(text) ? world.repositories.get(Number(text)) : world.repositoryByName(owner, name)?.repository;
}

function isLimit<Limits extends object>(limits: Limits, name: PropertyKey): name is keyof Limits {
  return Object.hasOwn(limits, name);
}

function numberOr(value: unknown, otherwise: number): number {
  if (value === undefined) return otherwise;
  if (typeof value !== "number") throw new ControlError("Times are epoch milliseconds");
  return value;
}

async function readJson(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  if (text.trim() === "") return {};
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new ControlError("The body is not JSON", { cause: error });
  }
  if (!isJsonObject(json)) throw new ControlError("The body should be a JSON object");
  return json;
}

function send(response: ServerResponse, status: number, json: unknown): void {
  const body = Buffer.from(JSON.stringify(json));
  response.writeHead(status, { "Content-Type": "application/json; charset=utf-8", "Content-Length": body.length });
  response.end(body);
}

const piped = promisify(pipeline);

async function stream(response: ServerResponse, source: Readable): Promise<void> {
  response.writeHead(200, { "Content-Type": "application/json; charset=utf-8" });
  try {
    await piped(source, response);
  } catch (error) {
    // The reader went away: there is no one left to tell.
    if (!(error instanceof Error && "code" in error && error.code === "ERR_STREAM_PREMATURE_CLOSE")) throw error;
  }
}
