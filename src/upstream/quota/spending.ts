import type { Stores } from "../../stores.ts";
import { LastHour, sumsOfLastHour } from "../../work/last-hour.ts";

const NAME = "quota-spent";

/** Quota of the mirror's that something took. */
export interface Spent {
  class: string;
  bucket: string;
  /** Where it went, with a star for each name and number. */
  route: string;
  /** Whom it was read for, as their quota is named; empty: for nobody in particular. */
  caller: string;
  /** Requests, or points of GraphQL. */
  cost: number;
}

/** Notes for all processes what takes of the mirror's quota. */
export class Spending {
  readonly #sums: LastHour;

  constructor(ctx: Pick<Stores, "redis" | "config" | "clock" | "log">) {
    this.#sums = new LastHour(ctx, NAME);
  }

  note({ cost, class: name, bucket, route, caller }: Spent): void {
    this.#sums.note([name, bucket, route, caller], cost);
  }

  flush(): Promise<void> {
    return this.#sums.flush();
  }
}

/** The spending of the last hour, the most first; null: Redis does not answer, so it is not known. */
export async function spentLately(ctx: Pick<Stores, "redis" | "config" | "clock">): Promise<Spent[] | null> {
  const sums = await sumsOfLastHour(ctx, NAME);
  const spent = sums?.map(({ words: [name = "", bucket = "", route = "", caller = ""], sum: cost }) => {
    return { class: name, bucket, route, caller, cost };
  });
  return spent?.sort((one, other) => other.cost - one.cost) ?? null;
}
