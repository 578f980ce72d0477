import { PEOPLE } from "../../../db/revisions.ts";
import { type Confirmation, joinConfirmations } from "../../mirror/read/repositories.ts";
import { Kept, type Reading, type RepositoryVersions } from "../../mirror/unchanged/unchanged.ts";
import { COMPRESSED, type KeptBody } from "../call/kept-bodies.ts";

/** A result without errors, which may be given again while nothing that it depends on has changed. */
export interface KeptResult extends KeptBody {
  /** The points that the result costs each caller. */
  points: number;
  /** The repositories whose resources the result shows. */
  shown: readonly number[];
  isPart: boolean;
}

/** The results that are kept, each by its caller and what they asked. */
export class KeptResults {
  readonly #results: Kept<KeptResult>;

  constructor(maxBytes: number) {
    this.#results = new Kept({ maxBytes, bytesOf: ({ bytes }) => bytes.length * COMPRESSED });
  }

  /** The kept result, if nothing has changed since, and upstream's confirmation of what it shows. Null: there is none. */
  async get(key: string, reading: Reading): Promise<{ kept: KeptResult; confirmation: Confirmation } | null> {
    const kept = await this.#results.get(key, reading);
    const confirmation = kept && confirmationOf(kept, reading.soFar());
    return kept && confirmation ? { kept, confirmation } : null;
  }

  /**
   * @param met the repositories on which the result depends, besides those that it shows
   * @param before how the repositories stood before the first row was read
   */
  keep(
    key: string,
    make: () => KeptResult,
    { met, shown, before }: { met: Iterable<number>; shown: Iterable<number>; before: RepositoryVersions },
  ): void {
    this.#results.keep(key, make, { shown: [...new Set([PEOPLE, ...met, ...shown])], before });
  }
}

/** Undefined: one of the repositories may no longer be shown. */
function confirmationOf({ shown }: KeptResult, repositoryVersions: RepositoryVersions): Confirmation | undefined {
  const shownNow = shown.flatMap((id) => repositoryVersions.get(id) ?? []).filter(({ isMirrored }) => isMirrored);
  return shownNow.length === shown.length ? joinConfirmations(shownNow) : undefined;
}
