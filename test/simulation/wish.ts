/** The command line of `npm run simulate`, and how it is read. */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { plants } from "../plants/plants.ts";
import { TOPOLOGIES, type Topology } from "../support/redis-topologies.ts";
import { type FaultKind, faultKinds } from "./fault-kinds.ts";

export const USAGE = `Usage: npm run simulate -- [options]
  --seed N         the seed to play (default: 1)
  --seeds A..B     all of these
  --steps N        changes of upstream in each (default: 500)
  --workers N      worker processes (default: 4)
  --faults LIST    all (default), none, or some, comma separated: ${Object.keys(faultKinds).join(", ")}
  --redis KIND     server (default), sentinel or cluster; of the latter two the master is killed where Redis goes away
  --pooler         the processes reach Postgres through PgBouncer, in transaction mode
  --partitions N   instead of all faults: eight processes at four sites, whose links are cut and healed for N minutes
  --plant BUG      let the mirror run with a bug in it, to see that it is found: npm run plants -- --list
  --until-found    play no more seeds once one has found the bug; the exit status is 0 if one did
  --logs DIR       where to keep the logs of seeds that failed (default: var/simulation)
  --json           one line of JSON for each seed, and nothing else`;

export interface Wish {
  seeds: number[];
  steps: number;
  workers: number;
  faults: ReadonlySet<FaultKind>;
  redis: "server" | Topology;
  pooler: boolean;
  /** Null: no simulation of partitions is asked for. */
  partitionedMinutes: number | null;
  plant: string | null;
  untilFound: boolean;
  logs: string;
  json: boolean;
}

/** Thrown for arguments that make no sense. The message says what is wrong with them. */
export class WishError extends Error {
  override name = "WishError";
}

/** @throws WishError */
export function readWish(args: string[]): Wish | "help" {
  const values = optionsIn(args);
  if (values.help) return "help";
  const whole = (name: "seed" | "steps" | "workers" | "partitions", otherwise: number, least: number) => {
    const value = values[name] === undefined ? otherwise : Number(values[name]);
    if (!Number.isSafeInteger(value) || value < least)
      throw new WishError(`--${name} should be a whole number from ${least} on, not "${values[name]}"`);
    return value;
  };
  const seed = whole("seed", 1, 0);
  const [, from = seed, to = seed] = /^(\d+)\.\.(\d+)$/.exec(values.seeds ?? "") ?? [];
  if (values.seeds !== undefined && !(values.seeds.includes("..") && Number(from) <= Number(to)))
    throw new WishError(`--seeds should be like 1..200, not "${values.seeds}"`);
  const plant = values.plant ?? null;
  if (plant !== null && !plants.some(({ name }) => name === plant))
    throw new WishError(`There is no bug "${plant}" to plant: ${plants.map(({ name }) => name).join(", ")}`);
  const untilFound = values["until-found"];
  if (untilFound && plant === null) throw new WishError("--until-found needs a bug to find: --plant");
  return {
    seeds: Array.from({ length: Number(to) - Number(from) + 1 }, (_, index) => Number(from) + index),
    steps: whole("steps", 500, 1),
    workers: whole("workers", 4, 1),
    faults: readFaults(values.faults ?? "all"),
    redis: readRedis(values.redis ?? "server"),
    pooler: values.pooler ?? false,
    partitionedMinutes: values.partitions === undefined ? null : whole("partitions", 1, 1),
    plant,
    untilFound,
    logs: values.logs ?? fileURLToPath(new URL("../../var/simulation", import.meta.url)),
    json: values.json ?? false,
  };
}

function optionsIn(args: string[]) {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args,
      options: {
        seed: text,
        seeds: text,
        steps: text,
        workers: text,
        faults: text,
        redis: text,
        pooler: { type: "boolean" },
        partitions: text,
        plant: text,
        "until-found": { type: "boolean", default: false },
        logs: text,
        json: { type: "boolean" },
        help: { type: "boolean" },
      },
    }).values;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new WishError(error.message, { cause: error });
  }
}

function readRedis(text: string): "server" | Topology {
  const known = ["server", ...TOPOLOGIES] as const;
  const found = known.find((one) => one === text);
  if (!found) throw new WishError(`--redis should be ${known.join(", ")}, not "${text}"`);
  return found;
}

function readFaults(text: string): ReadonlySet<FaultKind> {
  if (text === "none") return new Set();
  const known = Object.keys(faultKinds) as FaultKind[];
  if (text === "all") return new Set(known);
  const named = text.split(",").map((name) => name.trim());
  for (const name of named)
    if (!known.includes(name as FaultKind))
      throw new WishError(`"${name}" is no fault: all, none, ${known.join(", ")}`);
  return new Set(named as FaultKind[]);
}
