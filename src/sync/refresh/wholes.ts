import type { Transaction } from "../../../db/database.ts";
import type { Mark, RepositoryMarkKind } from "../../mirror/store/marks.ts";
import { checksWhole } from "../checks/refresh.ts";
import type { MergedDeliveries } from "../events/read.ts";
import { historyWhole } from "../history/refresh.ts";
import { pullListsWhole } from "../lists/refresh.ts";
import { peopleWhole } from "../people/refresh.ts";
import { refsWhole } from "../refs/refresh.ts";
import { resourceListWholes } from "../resource-lists/refresh.ts";
import type { Whole } from "../wholes/whole.ts";

/** All that is read whole, in the order in which deliveries lock its rows. */
export const WHOLES: readonly Whole[] = [
  checksWhole,
  pullListsWhole,
  ...resourceListWholes,
  refsWhole,
  historyWhole,
  peopleWhole,
];

const BY_KIND: ReadonlyMap<RepositoryMarkKind, Whole> = new Map(WHOLES.map((one) => [one.kind, one]));

export function wholeFor(kind: RepositoryMarkKind): Whole {
  const whole = BY_KIND.get(kind);
  if (!whole) throw new Error(`Nothing is read whole for a mark of ${kind}`);
  return whole;
}

/** Stores what the deliveries change of parts. Answers a mark for each repository whose part has to be read. */
export async function hearWholes(tx: Transaction, heard: MergedDeliveries): Promise<Mark[]> {
  const marks: Mark[] = [];
  for (const { hear } of WHOLES) marks.push(...(await hear(tx, heard)));
  return marks;
}
