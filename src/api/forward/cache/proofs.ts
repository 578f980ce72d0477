import { LRUCache } from "lru-cache";
import type { Context } from "../../../context.ts";
import { mostEntries } from "../../../work/bounded.ts";
import type { UpstreamCaller } from "../../callers/upstream-callers.ts";
import type { ForwardedAnswer } from "./forwarded-answers.ts";

const REMEMBERED_PROOFS = 20_000;
/** The mirror's own proofs end after a day: even an answer by sha has names of people and counts of comments. */
const MIRRORS_MS = 24 * 3_600_000;

/** A token of upstream's, or the mirror's own credential. */
export interface TokenViewer {
  /** Names the token without revealing it. */
  name: string;
  /** What upstream has said about the token; null: it is the mirror's own credential. */
  known: UpstreamCaller | null;
}

/** Upstream's showing of an answer to a token, with the ETag that the answer had for it. */
export interface Proof {
  etag: string;
  at: Date;
}

interface Noted extends Proof {
  known: UpstreamCaller;
  answerId: string;
  repositoryId: number;
}

/**
 * Remembers which token was shown which answer. A proof concerns one answer, below one repository, for one token. It
 * ends when upstream tells other rights of the token, or when the known rights are too old to be believed. Proofs are
 * kept in this process alone, so the store does not tell who asked.
 */
export class Proofs {
  readonly #ctx: Pick<Context, "config" | "clock">;
  readonly #noted = new LRUCache<string, Noted>(mostEntries(REMEMBERED_PROOFS));

  constructor(ctx: Pick<Context, "config" | "clock">) {
    this.#ctx = ctx;
  }

  /** @param at when upstream was asked */
  note(
    { name, known }: TokenViewer,
    { question, id }: ForwardedAnswer,
    repositoryId: number,
    { etag, at }: Proof,
  ): void {
    if (known) this.#noted.set(`${question} ${name}`, { known, answerId: id, repositoryId, etag, at });
  }

  /** @param repositoryId the mirrored repository that the question leads to now, which the caller sees */
  find(
    { name, known }: TokenViewer,
    { question, id, headers, mirrors }: ForwardedAnswer,
    repositoryId: number,
  ): Proof | null {
    const now = this.#ctx.clock.now().getTime();
    if (!known) {
      const isShown = mirrors?.repositoryId === repositoryId && now - mirrors.at.getTime() < MIRRORS_MS;
      return isShown ? { etag: headers.etag ?? "", at: mirrors.at } : null;
    }
    const noted = this.#noted.get(`${question} ${name}`);
    if (noted?.known !== known || noted.answerId !== id || noted.repositoryId !== repositoryId) return null;
    return now - noted.at.getTime() < this.#ctx.config.upstreamCallerTtlMs ? noted : null;
  }
}
