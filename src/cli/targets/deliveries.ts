import { listSent, type Sent } from "../../events/sent.ts";
import { findTarget } from "../../events/target.ts";
import type { Action, Given } from "../terminal/command.ts";
import { LIMIT, readLimit } from "../terminal/listing.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { type Output, plain, spanOf, styled, tableLines } from "../terminal/output.ts";
import { missing, readIds } from "./ids.ts";

export const deliveries: Action = {
  name: "targets deliveries",
  summary: "the newest requests that were made of a target, and what came of them",
  takes: "ID",
  flags: { failed: "only those that were not accepted: answered by anything but 2xx, or not at all" },
  values: { limit: LIMIT },
  about: `
Lists what was sent to a target, the newest first. ID is what \`tain targets resend\` takes to send it once
more; GUID is the event's, the same in each attempt. They are kept for DELIVERY_RETENTION.`,
  run: runDeliveries,
};

async function runDeliveries({ words, flags, values, env, resources, within }: Given, output: Output): Promise<number> {
  const [id = 0] = readIds("targets deliveries", words, 1);
  const limit = readLimit(values);
  const { ctx } = await openInstance(env, resources, within);
  if (!(await findTarget(ctx, id))) throw missing(id);
  const sent = await listSent(ctx, id, { limit, answered: flags.has("failed") ? "refused" : null });
  output.document({ deliveries: sent });
  if (sent.length === 0) output.line(`Nothing that is kept was sent to target ${id}`);
  else output.line(sentTable(sent, ctx.clock.now()));
  return 0;
}

/** Pure but for colours. */
function sentTable(sent: readonly Sent[], now: Date): string {
  const rows = sent.map(
    ({ id, deliveredAt, event, action, guid, status, statusCode, isAccepted, durationMs, redelivery }) => [
      String(id),
      `${spanOf(now.getTime() - deliveredAt.getTime())} ago`,
      action === null ? event : `${event} ${action}`,
      guid,
      redelivery ? "again" : "first",
      styled(isAccepted ? "green" : "red", `${statusCode} ${plain(status)}`),
      `${durationMs} ms`,
    ],
  );
  return tableLines(["ID", "SENT", "EVENT", "GUID", "ATTEMPT", "ANSWER", "TOOK"], rows);
}
