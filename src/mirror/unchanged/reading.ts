import type { Standing, Standings, StandingsReader } from "./unchanged.ts";

/**
 * What one request has learnt of how repositories stand, each at some moment since the request began. The request need
 * not show later changes, so nothing is asked twice.
 */
export class Reading {
  readonly #standings: Pick<StandingsReader, "now">;
  readonly #isLasting: boolean;
  readonly #learnt = new Map<number, Standing>();
  readonly #asked = new Map<number, Promise<void>>();

  /**
   * @param options.learnt standings that were asked for earlier in the same request
   * @param options.isLasting false for a request that changes the mirror meanwhile: it must see the change, so it asks
   *   each time
   */
  constructor(
    standings: Pick<StandingsReader, "now">,
    { learnt, isLasting = true }: { learnt?: Standings | undefined; isLasting?: boolean } = {},
  ) {
    this.#standings = standings;
    this.#isLasting = isLasting;
    if (learnt) this.learn(learnt);
  }

  /** Whether all of these have been asked for. */
  knows(repositoryIds: Iterable<number>): boolean {
    for (const id of repositoryIds) if (!this.#asked.has(id)) return false;
    return true;
  }

  /** How each of these stands. @throws whatever Postgres refuses */
  async now(repositoryIds: Iterable<number>): Promise<Standings> {
    const ids = [...repositoryIds];
    if (!this.#isLasting) return this.#standings.now(ids);
    const unknown = ids.filter((id) => !this.#asked.has(id));
    if (unknown.length > 0) {
      const asking = this.#ask(unknown);
      for (const id of unknown) this.#asked.set(id, asking);
    }
    if (!ids.every((id) => this.#learnt.has(id))) await Promise.all(new Set(ids.map((id) => this.#asked.get(id))));
    return this.#only(ids);
  }

  /** Rows that are read from now on are at least as new as these standings, and may be kept with them. */
  soFar(): Standings {
    return new Map(this.#learnt);
  }

  /** Takes what was read along with something else. */
  learn(standings: Standings): void {
    if (!this.#isLasting) return;
    for (const [id, standing] of standings) {
      if (this.#asked.has(id)) continue;
      this.#asked.set(id, Promise.resolve());
      this.#learnt.set(id, standing);
    }
  }

  async #ask(ids: readonly number[]): Promise<void> {
    const answered = await this.#standings.now(ids);
    for (const id of ids) {
      const standing = answered.get(id);
      if (standing) this.#learnt.set(id, standing);
    }
  }

  /** A copy: what is learnt later may be newer than what is read now. */
  #only(ids: readonly number[]): Standings {
    const standings = new Map<number, Standing>();
    for (const id of ids) {
      const standing = this.#learnt.get(id);
      if (standing) standings.set(id, standing);
    }
    return standings;
  }
}
