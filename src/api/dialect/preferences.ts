import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { RequestHeaders } from "../../http/reply.ts";
import { resources } from "../../kinds/registry.ts";
import { type AccessScope, visible } from "../../mirror/read/repositories.ts";
import { NOT_YET } from "../../upstream/protocol/doubts.ts";
import { ApiFault } from "./fault.ts";

/**
 * What a mirror of this one asks for by `Prefer` (RFC 7240), since a service that does not know it has to ignore it.
 *
 * - rewrite-urls: a hook that is registered is sent addresses of this mirror.
 * - settled: the answer names the resources in doubt here, so that the other mirror waits until they are settled. An
 *   unknown value is not shown as none. A resource that is still to be read here is not read from upstream for another
 *   mirror: `notYet` answers instead.
 */
type Preference = "rewrite-urls" | "settled";

export function prefers({ prefer }: RequestHeaders, preference: Preference): boolean {
  return [prefer ?? ""].flat().some((header) => header.split(",").some((one) => one.trim() === preference));
}

/**
 * Tells another mirror that this is still to be read. Otherwise each mirror of a chain could make the root ask
 * upstream, at the cost of the callers' share.
 */
export function notYet(): ApiFault {
  return new ApiFault(425, "Too Early: this mirror has still to read this, and asks upstream for no other mirror.", {
    headers: { [NOT_YET]: "true" },
  });
}

/**
 * How many doubts are named: they make a header of some 10 kB, and clients refuse more than 16. Beyond that, everything
 * counts as doubtful.
 */
const MOST_DOUBTS = 300;

/**
 * The header that names the resources about which upstream is being asked, if the caller prefers it: those that the
 * caller may read, since an answer that refuses them has this header too. Call it once the caller is let in, and before
 * anything is read: a doubt may be settled before its resource is shown.
 */
export async function doubtHeaders(
  { readDb }: { readDb: Context["db"] },
  access: AccessScope,
  request: RequestHeaders,
): Promise<Record<string, string>> {
  if (!prefers(request, "settled")) return {};
  const shown = [...Map.groupBy(resources, ({ right }) => right)].flatMap(([right, some]) =>
    right === null
      ? []
      : [sql`(m.kind = any(${some.map(({ kind }) => kind)}::text[]) and ${visible(sql`r`, access, right)})`],
  );
  const doubts = await readDb.query<{ name: string }>(sql`
    select m.repository_id || '/' || m.kind || '/' || m.key as name from refresh_marks m
      where m.kind = 'user' or exists (select from repositories r
        where r.id = case m.kind when 'repository' then m.key else m.repository_id end and (${sql.or(shown)}))
      order by m.repository_id, m.kind, m.key limit ${MOST_DOUBTS + 1}`);
  return { "X-Tain-In-Doubt": doubts.length > MOST_DOUBTS ? "*" : doubts.map(({ name }) => name).join(" ") };
}
