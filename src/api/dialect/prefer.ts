import { WHOLE_KINDS } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { RequestHeaders } from "../../http/exchange.ts";
import { type Sight, visible } from "../../mirror/read/sight.ts";
import { NOT_YET } from "../../upstream/client/doubts.ts";
import { ApiFault } from "./fault.ts";

/**
 * What a mirror of this one asks for by `Prefer` (RFC 7240), since a service that does not know it has to ignore it.
 *
 * - rewrite-urls: a hook that is registered is sent addresses of this mirror.
 * - settled: the answer says what is in doubt here, so that the other waits until it is settled. What is only not known is not said to
 *   be none, and what is still to be read here is not asked of upstream meanwhile: `notYet` answers that.
 */
type Preference = "rewrite-urls" | "settled";

export function prefers({ prefer }: RequestHeaders, preference: Preference): boolean {
  return [prefer ?? ""].flat().some((header) => header.split(",").some((one) => one.trim() === preference));
}

/** The root would be asked by every mirror of a chain, each time at the cost of what callers' reads of upstream may cost. */
export function notYet(): ApiFault {
  return new ApiFault(425, "Too Early: this mirror has still to read this, and asks upstream for no other mirror.", {
    headers: { [NOT_YET]: "true" },
  });
}

/** A header of some 10 kB; clients refuse more than 16. Beyond that, everything counts as doubtful. */
const MOST_DOUBTS = 300;

/**
 * The header that says of what upstream is being asked, if the caller prefers to know that. Call it before anything is read:
 * what was in doubt then may be settled by the time at which it is shown.
 */
export async function doubtHeaders(
  { reads }: { reads: Context["db"] },
  sight: Sight,
  request: RequestHeaders,
): Promise<Record<string, string>> {
  if (!prefers(request, "settled")) return {};
  const doubts = await reads.query<{ name: string }>(sql`
    select m.repository_id || '/' || m.kind || '/' || m.key as name from refresh_marks m
      where m.kind <> all(${[...WHOLE_KINDS]}::text[]) and (m.kind = 'user' or exists (select from repositories r
        where r.id = case m.kind when 'repository' then m.key else m.repository_id end and ${visible(sql`r`, sight, "metadata")}))
      order by m.repository_id, m.kind, m.key limit ${MOST_DOUBTS + 1}`);
  return { "X-Tain-In-Doubt": doubts.length > MOST_DOUBTS ? "*" : doubts.map(({ name }) => name).join(" ") };
}
