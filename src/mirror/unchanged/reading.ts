import type { Revisions, Standing, Standings } from "./standings.ts";

/** What one reader has learnt of how repositories stand, who needs it only as it was at some moment since they began to read. */
export class ReadersRevisions {
  readonly #revisions: Pick<Revisions, "now">;
  readonly #standings = new Map<number, Standing>();
  readonly #asked = new Map<number, Promise<void>>();

  /** @param learnt what was asked before, but since they began */
  constructor(revisions: Pick<Revisions, "now">, learnt?: Standings) {
    this.#revisions = revisions;
    if (learnt) this.learn(learnt);
  }

  /** Whether all of these have been asked for. */
  knows(repositoryIds: Iterable<number>): boolean {
    for (const id of repositoryIds) if (!this.#asked.has(id)) return false;
    return true;
  }

  async now(repositoryIds: Iterable<number>): Promise<ReadonlyMap<number, Standing>> {
    const ids = [...repositoryIds];
    const unknown = ids.filter((id) => !this.#asked.has(id));
    if (unknown.length > 0) {
      const asking = this.#ask(unknown);
      for (const id of unknown) this.#asked.set(id, asking);
    }
    for (const asking of new Set(ids.map((id) => this.#asked.get(id)))) await asking;
    return this.#standings;
  }

  /** What was read along with something else. */
  learn(standings: Standings): void {
    for (const [id, standing] of standings) {
      if (this.#asked.has(id)) continue;
      this.#asked.set(id, Promise.resolve());
      this.#standings.set(id, standing);
    }
  }

  async #ask(ids: readonly number[]): Promise<void> {
    const answered = await this.#revisions.now(ids);
    for (const id of ids) {
      const standing = answered.get(id);
      if (standing) this.#standings.set(id, standing);
    }
  }
}
