import { LastHour, sumsOfLastHour } from "../../operations/last-hour.ts";
import type { Stores } from "../../stores.ts";

const SPENT_SUMS = "quota-spent";

/** A part of the mirror's quota that was spent. */
export interface Spent {
  class: string;
  bucket: string;
  /** The route that it was spent on, with a star for each name and number. */
  route: string;
  /** The caller that it was spent for, by the name of their quota; empty: for no single caller. */
  caller: string;
  /** Requests, or points of GraphQL. */
  cost: number;
}

/** Records, for all processes, what spends the mirror's quota. */
export class Spending {
  readonly #sums: LastHour;

  constructor(ctx: Pick<Stores, "redis" | "config" | "clock" | "log">) {
    this.#sums = new LastHour(ctx, SPENT_SUMS);
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
  const sums = await sumsOfLastHour(ctx, SPENT_SUMS);
  const spent = sums?.map(({ words: [name = "", bucket = "", route = "", caller = ""], sum: cost }) => {
    return { class: name, bucket, route, caller, cost };
  });
  return spent?.sort((one, other) => other.cost - one.cost) ?? null;
}
