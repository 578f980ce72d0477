import type { RepositoryMarkKind } from "../../src/mirror/store/marks.ts";
import { WHOLES, wholeFor } from "../../src/sync/refresh/wholes.ts";
import { resourceListWholes } from "../../src/sync/resource-lists/refresh.ts";
import { markDue } from "../../src/sync/wholes/whole.ts";

type Asking = Parameters<typeof markDue>[0];

const marking =
  (...kinds: RepositoryMarkKind[]) =>
  async (ctx: Asking): Promise<void> => {
    for (const kind of kinds) await markDue(ctx, wholeFor(kind));
  };

/** Asks for what is read whole and was not read for a while, as the scheduler does. */
export const markWholesDue = marking(...WHOLES.map(({ kind }) => kind));
export const markChecksDue = marking("checks");
export const markListsDue = marking("lists");
export const markResourceListsDue = marking(...resourceListWholes.map(({ kind }) => kind));
export const markRefsDue = marking("refs");
export const markHistoriesDue = marking("commits");
export const markPeopleDue = marking("people");
