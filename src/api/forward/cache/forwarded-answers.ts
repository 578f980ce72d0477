import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { LRUCache } from "lru-cache";
import { sql } from "../../../../db/sql.ts";
import type { Context } from "../../../context.ts";
import { levelOf } from "../../../failure.ts";
import { parseStored } from "../../../json.ts";

/** A read below a repository whose answer may be kept. */
export interface CacheableRead {
  /** A digest of everything that decides the answer, except the caller. */
  key: string;
  /** The repository as the path names it; either this or the id is null. */
  fullName: string | null;
  id: number | null;
  /** Whether a sha names the whole answer, so that it stays the same as long as the repository exists. */
  isImmutable: boolean;
  /** How many rows a page has at most; null: all rows are one page. */
  perPage: number | null;
}

/** The question with the repository's present name and visibility. Pure. */
export function presentQuestion(
  question: CacheableRead,
  { fullName, isPrivate }: { fullName: string; isPrivate: boolean },
): CacheableRead {
  return { ...question, key: digest([question.key, fullName, isPrivate]) };
}

/** Names a question. Pure. */
export function digest(parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
}

/** One of upstream's answers, whole. Requests share it. */
export interface ForwardedAnswer {
  /** Tells this answer from earlier and later ones. */
  readonly id: string;
  readonly question: string;
  /**
   * Empty: the ETag is computed for each token. Otherwise the answer is for this token alone, with the ETag that
   * upstream gave.
   */
  readonly shownTo: string;
  /** Names in lower case; an ETag is among them. */
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Which request headers the ETag covers; null: that is not known. */
  readonly variesBy: string | null;
  readonly madeAt: Date;
  readonly usedAt: Date;
  /** When, and below which repository, upstream last showed the answer to the mirror's own credential. */
  readonly mirrors: { repositoryId: number; at: Date } | null;
}

/** The memory of a process for answers that cannot change. */
const MEMORY_BYTES = 16 * 1024 * 1024;
/** How many bytes may wait for Postgres. Further answers are not kept. */
const MOST_WAITING_BYTES = 16 * 1024 * 1024;
/** A write that takes longer is given up, and makes room. */
const WRITE_TIMEOUT_MS = 10_000;
/** A prune reads all rows without their bodies. No request waits for it. */
const PRUNE_TIMEOUT_MS = 60_000;
/** The bytes that a row takes beside its body. */
const ROW_BYTES = 1_500;
/** `used_at` is written at most this often. */
const ANSWER_USED_MS = 3_600_000;
/** A process looks whether to prune after it has added this part of FORWARD_CACHE_BYTES. */
const PRUNED_PART = 1 / 16;

interface ForwardedAnswerRow {
  id: string;
  shown_to: string;
  made_at: Date;
  used_at: Date;
  headers: string;
  body: Buffer;
  varies_by: string | null;
  mirror_repository_id: string | null;
  mirror_shown_at: Date | null;
}

/**
 * Upstream's answers in Postgres, shared by all processes. Without Postgres nothing is kept, and reads go on. No
 * request waits for a write: until its end the answer is found in memory.
 */
export class ForwardedAnswers {
  readonly #ctx: Pick<Context, "config" | "db" | "clock" | "log" | "random">;
  readonly #underWay = new Map<string, ForwardedAnswer>();
  readonly #unchanging = new LRUCache<string, ForwardedAnswer>({
    maxSize: MEMORY_BYTES,
    sizeCalculation: ({ body }) => body.length + ROW_BYTES,
  });
  readonly #writes = new Set<Promise<void>>();
  #waitingBytes = 0;
  /** How many bytes may still be added before the next look. Processes that start together do not look together. */
  #room: number;

  constructor(ctx: Pick<Context, "config" | "db" | "clock" | "log" | "random">) {
    this.#ctx = ctx;
    this.#room = ctx.random() * ctx.config.forwardCacheBytes * PRUNED_PART;
  }

  /**
   * The newest answer that may be shown to this token, once upstream has confirmed it. Null also while Postgres is
   * away.
   */
  async find({ key: question, isImmutable }: CacheableRead, token: string): Promise<ForwardedAnswer | null> {
    for (const shownTo of ["", token]) {
      const name = answerName({ question, shownTo });
      const known = this.#underWay.get(name) ?? this.#unchanging.get(name);
      if (known) return known;
    }
    try {
      const [row] = await this.#ctx.db.prepared<ForwardedAnswerRow>(sql`
        select id, shown_to, made_at, used_at, headers::text, body, varies_by, mirror_repository_id, mirror_shown_at
          from forwarded_answers where question = ${question} and shown_to in ('', ${token}) order by made_at desc limit 1`);
      if (!row) return null;
      const found = storedAnswer(question, row);
      if (isImmutable) this.#unchanging.set(answerName(found), found);
      return found;
    } catch (error) {
      this.#ctx.log[levelOf(error, "warn")]({ err: error }, "The kept answers to forwarded reads cannot be looked up");
      return null;
    }
  }

  keep(answer: ForwardedAnswer, { isImmutable }: CacheableRead): void {
    const { id, question, shownTo, headers, body, variesBy, madeAt, usedAt, mirrors } = answer;
    const name = answerName(answer);
    const bytes = body.length + ROW_BYTES;
    if (isImmutable) this.#unchanging.set(name, answer);
    const write = this.#write(bytes, async () => {
      const values = sql`${question}, ${shownTo}, ${id}, ${madeAt}, ${usedAt}, ${JSON.stringify(headers)}, ${body}, ${variesBy},
        ${bytes}, ${mirrors?.repositoryId ?? null}, ${mirrors?.at ?? null}`;
      await this.#ctx.db.query(
        sql`
        insert into forwarded_answers (question, shown_to, id, made_at, used_at, headers, body, varies_by,
            bytes, mirror_repository_id, mirror_shown_at) values (${values})
          on conflict (question, shown_to) do update set id = excluded.id, made_at = excluded.made_at, used_at = excluded.used_at,
            headers = excluded.headers, body = excluded.body, varies_by = excluded.varies_by, bytes = excluded.bytes,
            mirror_repository_id = excluded.mirror_repository_id, mirror_shown_at = excluded.mirror_shown_at
          where forwarded_answers.made_at <= excluded.made_at`,
        { timeoutMs: WRITE_TIMEOUT_MS },
      );
      this.#room -= bytes;
      if (this.#room <= 0) await this.#prune();
    });
    if (!write) return;
    this.#underWay.set(name, answer);
    void write.then(() => {
      if (this.#underWay.get(name)?.id === id) this.#underWay.delete(name);
    });
  }

  /**
   * Notes that an answer was used. @param mirrors the repository, if upstream has just shown the answer to the mirror's
   * own credential
   */
  confirmed(answer: ForwardedAnswer, mirrors: number | null): void {
    const { id, question, shownTo } = answer;
    const now = this.#ctx.clock.now();
    if (mirrors === null && now.getTime() - answer.usedAt.getTime() < ANSWER_USED_MS) return;
    const shown = mirrors === null ? {} : { mirrors: { repositoryId: mirrors, at: now } };
    const name = answerName(answer);
    for (const known of [this.#underWay, this.#unchanging])
      if (known.get(name)?.id === id) known.set(name, { ...answer, usedAt: now, ...shown });
    const at = mirrors === null ? sql`` : sql`, mirror_repository_id = ${mirrors}, mirror_shown_at = ${now}`;
    this.#write(ROW_BYTES, async () => {
      await this.#ctx.db.query(
        sql`
        update forwarded_answers set used_at = ${now}${at}
          where question = ${question} and shown_to = ${shownTo} and id = ${id}`,
        { timeoutMs: WRITE_TIMEOUT_MS },
      );
    });
  }

  /** Waits for what is being written. */
  async close(): Promise<void> {
    await Promise.all(this.#writes);
  }

  /** Deletes the answers that were unused for longest, down to the bound. It reads no bodies. */
  async #prune(): Promise<void> {
    const most = this.#ctx.config.forwardCacheBytes;
    this.#room = most * PRUNED_PART;
    await this.#ctx.db.query(
      sql`
      delete from forwarded_answers where (question, shown_to) in (
        select question, shown_to from (
          select question, shown_to, sum(bytes) over (order by used_at desc, question, shown_to) as up_to from forwarded_answers
        ) counted where up_to > ${Math.round(most * (1 - PRUNED_PART))}::float8)`,
      { timeoutMs: PRUNE_TIMEOUT_MS },
    );
  }

  /** Runs a write, which never fails. Null: too many bytes wait for Postgres, so nothing is written. */
  #write(bytes: number, run: () => Promise<void>): Promise<void> | null {
    if (this.#waitingBytes + bytes > MOST_WAITING_BYTES) return null;
    this.#waitingBytes += bytes;
    const write: Promise<void> = run()
      .catch((error: unknown) => {
        this.#ctx.log[levelOf(error, "warn")]({ err: error }, "A forwarded answer could not be kept");
      })
      .finally(() => {
        this.#waitingBytes -= bytes;
        this.#writes.delete(write);
      });
    this.#writes.add(write);
    return write;
  }
}

function answerName({ question, shownTo }: Pick<ForwardedAnswer, "question" | "shownTo">): string {
  return `${question} ${shownTo}`;
}

function storedAnswer(question: string, row: ForwardedAnswerRow): ForwardedAnswer {
  const { mirror_repository_id: repositoryId, mirror_shown_at: at } = row;
  return {
    id: row.id,
    question,
    shownTo: row.shown_to,
    headers: parseStored<IncomingHttpHeaders>(row.headers),
    body: row.body,
    variesBy: row.varies_by,
    madeAt: row.made_at,
    usedAt: row.used_at,
    mirrors: repositoryId === null || at === null ? null : { repositoryId: Number(repositoryId), at },
  };
}
