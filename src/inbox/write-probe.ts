import { randomBytes } from "node:crypto";
import type { Database } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { codeOf, isBug, reasonOf } from "../failure.ts";
import { MADE_HOOK } from "./inbox.ts";

/** Postgres answers, and takes no writes. */
export interface WriteRefusal {
  check: "postgres-full" | "postgres-read-only";
  /** In Postgres' own words. */
  reason: string;
}

/** More than fits beside the row: it takes room on the disk. */
const PROBE_BYTES = 8_192;
/** Less than probing programs wait. */
const PROBE_MS = 1_000;

/** Undoes the write. */
class ProbedError extends Error {
  override name = "ProbedError";
}

/**
 * Writes a delivery and takes it back, as a receiver would write one. Null: Postgres takes writes, or does not answer
 * at all, which others tell.
 */
export async function probeWrite({ db }: { db: Database }): Promise<WriteRefusal | null> {
  try {
    await db.transaction(async (tx) => {
      await tx.query(
        sql`insert into deliveries (hook_id, guid, event, payload, received_at)
          values (${MADE_HOOK}, ${`probe-${randomBytes(12).toString("hex")}`}, 'ping', ${randomBytes(PROBE_BYTES)}, now())`,
        { timeoutMs: PROBE_MS },
      );
      throw new ProbedError();
    });
    return null;
  } catch (error) {
    if (error instanceof ProbedError) return null;
    if (isBug(error)) throw error;
    return refusalIn(error);
  }
}

/** Pure. */
function refusalIn(error: unknown): WriteRefusal | null {
  const code = codeOf(error) ?? "";
  const reason = reasonOf(error);
  // https://www.postgresql.org/docs/18/errcodes-appendix.html: read_only_sql_transaction, also of a standby.
  if (code === "25006") return { check: "postgres-read-only", reason };
  // Insufficient resources, above all 53100, disk_full; and failures of the disk itself. 53300, too many connections,
  // says nothing of writes.
  if (/^(53|58)/.test(code) && code !== "53300") return { check: "postgres-full", reason };
  return null;
}

/** An answer is believed for so long: a look at the status, or a probe every second, must not fill the disk. */
const BELIEVED_MS = 10_000;
const BELIEVED_REFUSAL_MS = 5_000;

/** Knows whether Postgres takes writes, as of a moment ago. */
export class WriteProbe {
  readonly #db: Database;
  #asked: Promise<WriteRefusal | null> | null = null;
  /** By the monotonic clock. */
  #believedUntil = Number.NEGATIVE_INFINITY;

  constructor({ db }: { db: Database }) {
    this.#db = db;
  }

  async refusal(): Promise<WriteRefusal | null> {
    if (this.#asked && performance.now() < this.#believedUntil) return await this.#asked;
    // Those who ask meanwhile have the same answer.
    this.#believedUntil = Number.POSITIVE_INFINITY;
    this.#asked = probeWrite({ db: this.#db });
    let believedMs = 0;
    try {
      const refusal = await this.#asked;
      believedMs = refusal ? BELIEVED_REFUSAL_MS : BELIEVED_MS;
      return refusal;
    } finally {
      this.#believedUntil = performance.now() + believedMs;
    }
  }
}
