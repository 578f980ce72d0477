import type { Queries } from "../../db/database.ts";
import { type SchemaFit, schemaFit } from "../../db/schema-fit.ts";
import { UnfitStoreError } from "../../db/unfit.ts";
import { waitUnlessAborted } from "../waits/repeated.ts";
import { within } from "../waits/within.ts";
import type { Logger } from "./log.ts";
import { Outage } from "./outage.ts";
import type { Shutdown } from "./shutdown.ts";

/**
 * How often the schema is checked, and so how long a process may run on after a migration that it must not work with. A
 * check costs Postgres a millisecond.
 */
const SCHEMA_ASKED_MS = 2_000;
/** A Postgres that hangs must not hold up a start: the receiver can take deliveries without it. */
const ANSWER_MS = 2_000;

/**
 * Keeps a process from working with a schema that is too new for it. Such a process does not start. If it runs already,
 * it stops as on SIGTERM. Missing migrations are only logged. While the database cannot be asked, the process starts
 * and goes on. The checks end when the process stops or `resources` close.
 * @throws UnfitStoreError at the start
 */
export async function guardSchema(
  { db, log }: { db: Queries; log: Logger },
  shutdown: Shutdown,
  resources: AsyncDisposableStack,
): Promise<void> {
  const closing = new AbortController();
  resources.defer(async () => closing.abort());
  const signal = AbortSignal.any([shutdown.signal, closing.signal]);
  const outage = new Outage(log, "warn", {
    begins: "Postgres cannot be asked whether this version may work with its schema; going on, and asking again",
    ends: "Postgres says again whether this version may work with its schema",
  });
  const ask = async (): Promise<SchemaFit | "unknown"> => {
    try {
      const fit = await schemaFit(db, { timeoutMs: ANSWER_MS });
      outage.met();
      return fit;
    } catch (error) {
      // A process that stops may have closed its database already.
      if (!signal.aborted) outage.missed(error);
      return "unknown";
    }
  };
  const watch = async (first: Promise<SchemaFit | "unknown">) => {
    let fit = await first;
    while (!signal.aborted) {
      if (fit instanceof UnfitStoreError) return shutdown.refuse(fit);
      await waitUnlessAborted(SCHEMA_ASKED_MS, signal);
      if (!signal.aborted) fit = await ask();
    }
  };
  const first = ask();
  const atStart = await within(ANSWER_MS, first, () => "unknown" as const);
  if (atStart instanceof UnfitStoreError) throw atStart;
  if (atStart === "missing") log.warn("Migrations are missing: run `node db/migrate.ts`");
  void watch(first);
}
