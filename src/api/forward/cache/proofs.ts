import { LRUCache } from "lru-cache";
import type { Context } from "../../../context.ts";
import type { UpstreamCaller } from "../../callers/upstream-callers.ts";
import type { KeptAnswer } from "./kept-answers.ts";

const REMEMBERED = 20_000;
/** Beside a sha an answer has names of people and counts of comments. */
const MIRRORS_MS = 24 * 3_600_000;

/** A token of upstream's, or the mirror's own credential. */
export interface TokenViewer {
  /** Names the token, and does not tell it. */
  name: string;
  /** What upstream has said of the token; null: it is the mirror's own. */
  known: UpstreamCaller | null;
}

/** Upstream has shown the answer to a token: this was its ETag for it. */
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
 * Remembers which token was shown which answer. A proof is about one answer, below one repository, for one token. It ends when
 * upstream says something new of the token's rights, or when what it said is too old to be believed. Proofs live in this
 * process alone: nothing in the store says who asked.
 */
export class Proofs {
  readonly #ctx: Pick<Context, "config" | "clock">;
  readonly #noted = new LRUCache<string, Noted>({ max: REMEMBERED });

  constructor(ctx: Pick<Context, "config" | "clock">) {
    this.#ctx = ctx;
  }

  /** @param at when upstream was asked */
  note({ name, known }: TokenViewer, { question, id }: KeptAnswer, repositoryId: number, { etag, at }: Proof): void {
    if (known) this.#noted.set(`${question} ${name}`, { known, answerId: id, repositoryId, etag, at });
  }

  /** @param repositoryId the mirrored repository that the question leads to now, which the caller sees */
  find(
    { name, known }: TokenViewer,
    { question, id, headers, mirrors }: KeptAnswer,
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
