import type { ReplicaOptions, ReplicaState } from "../../../db/replica.ts";
import { Replicas } from "../../../db/replicas.ts";
import type { Context } from "../../context.ts";
import { RepositoryVersionsReader } from "../../mirror/unchanged/unchanged.ts";

/** How long a read waits for a replica that is a little behind. Then the primary answers. */
export const REPLICA_WAIT_MS = 100;

/** The replicas that callers' reads go to; null: none is named. They are counted and logged as they come and go. */
export function openReplicas(
  { config, log, metrics, random }: Pick<Context, "config" | "log" | "metrics" | "random">,
  repositoryVersions: Pick<RepositoryVersionsReader, "position">,
): Replicas | null {
  const { databaseReplicaUrls: urls } = config;
  const statements = metrics.counter("tain_read_statements_total", "Statements of callers' reads, by what ran them.", [
    "by",
  ]);
  const isRead = metrics.gauge("tain_replica_read", "1: callers' reads go to the replica. 0: it is left out.", [
    "replica",
  ]);
  const behind = metrics.gauge(
    "tain_replica_behind_bytes",
    "What of the primary's log the replica had not replayed when it was last asked.",
    ["replica"],
  );
  if (urls.length === 0) return null;
  const replicas = new Replicas(urls, {
    lanes: lanesOf(config),
    applicationName: "tain reads",
    waitMs: REPLICA_WAIT_MS,
    random,
    position: () => repositoryVersions.position(),
    changed: ({ name, leftOut }) => {
      if (leftOut === null) log.info({ replica: name }, "Callers' reads go to a replica");
      else log.warn({ replica: name, reason: leftOut }, "A replica is left out: the primary answers in its place");
    },
    answered: (by) => statements.inc({ by }),
  });
  metrics.watchPool("replicas", replicas);
  metrics.beforeScrape(() => {
    for (const { name, leftOut, bytesBehind } of replicas.states()) {
      isRead.set({ replica: name }, leftOut === null ? 1 : 0);
      if (bytesBehind !== null) behind.set({ replica: name }, bytesBehind);
    }
  });
  return replicas;
}

/** How the replicas stand, for a process that reads nothing from them. Each is tried once. */
export async function askReplicas({ config, random }: Pick<Context, "config" | "random">): Promise<ReplicaState[]> {
  if (config.databaseReplicaUrls.length === 0) return [];
  await using repositoryVersions = new RepositoryVersionsReader(config);
  const replicas = new Replicas(config.databaseReplicaUrls, {
    lanes: lanesOf(config),
    applicationName: "tain status",
    waitMs: REPLICA_WAIT_MS,
    random,
    position: () => repositoryVersions.position(),
    changed: () => {},
    answered: () => {},
  });
  await replicas.tried();
  const found = replicas.states();
  await replicas.close();
  return found;
}

/** The pools for callers' reads, at the primary and at each replica. */
export function lanesOf({
  readConnections,
  readTimeoutMs,
  searchConnections,
}: Context["config"]): ReplicaOptions["lanes"] {
  return {
    reads: { maxConnections: readConnections, statementTimeoutMs: readTimeoutMs },
    searches: { maxConnections: searchConnections, statementTimeoutMs: readTimeoutMs / 2, isSerial: true },
  };
}
