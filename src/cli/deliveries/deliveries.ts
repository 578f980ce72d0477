import { DELIVERY_STATUSES } from "../../../db/schema/states.ts";
import {
  type DeliveryFilter,
  findDeliveries,
  listDeliveries,
  loadPayload,
  type StoredDelivery,
} from "../../inbox/deliveries.ts";
import { type Action, type CommandGroup, type Given, listOf, UsageError } from "../terminal/command.ts";
import { LIMIT, readLimit, readSince } from "../terminal/listing.ts";
import { openInstance } from "../terminal/open-instance.ts";
import type { Output } from "../terminal/output.ts";
import { replay } from "./replay.ts";
import { deliveriesTable, detailsOf, unknownDelivery } from "./text.ts";

const list: Action = {
  name: "deliveries list",
  summary: "the newest deliveries and what became of them",
  values: {
    status: { takes: "STATUS", about: `only those that are ${listOf(DELIVERY_STATUSES, "or")}` },
    event: { takes: "EVENT", about: "only those of one event, such as issues" },
    search: { takes: "TEXT", about: "only those with this in their GUID, event, repository or reason" },
    since: { takes: "TIME", about: "only those received within this time, such as 1h" },
    limit: LIMIT,
  },
  about: "Lists what the inbox holds, the newest first: when each arrived, what it was, what became of it and why.",
  run: runList,
};

const show: Action = {
  name: "deliveries show",
  summary: "all that is known of a delivery",
  takes: "GUID|ID",
  flags: { payload: "print what upstream sent, too" },
  about: `
Shows a delivery by its GUID (upstream's name for the event, the same at all hooks) or by its
id. The payload, which may hold what is private, is printed only when it is asked for.`,
  run: runShow,
};

export const deliveries: CommandGroup = {
  name: "deliveries",
  about: `
Works on the inbox: every delivery that upstream was told is safe, kept for DELIVERY_RETENTION
once it is settled. What still waits in Redis because Postgres was away is not in it yet.`,
  actions: { list, show, replay },
};

async function runList({ values, env, resources, within }: Given, output: Output): Promise<number> {
  const filter = readFilter(values);
  const { ctx } = await openInstance(env, resources, within);
  const { sinceMs, ...rest } = filter;
  const since = sinceMs === null ? {} : { since: new Date(ctx.clock.now().getTime() - sinceMs) };
  const found = await listDeliveries(ctx, { ...rest, ...since });
  output.document({ deliveries: found });
  if (found.length === 0) output.line("No delivery in the inbox is like that");
  else output.line(deliveriesTable(found, ctx));
  return 0;
}

/** Pure. @throws UsageError */
function readFilter(values: Given["values"]): Omit<DeliveryFilter, "since"> & { sinceMs: number | null } {
  const wanted = values.get("status");
  const status = DELIVERY_STATUSES.find((each) => each === wanted);
  if (wanted !== undefined && !status)
    throw new UsageError(`--status ${wanted} is no status: write ${listOf(DELIVERY_STATUSES, "or")}`);
  const event = values.get("event");
  const search = values.get("search");
  return {
    ...(status ? { status } : {}),
    ...(event === undefined ? {} : { event }),
    ...(search === undefined ? {} : { search }),
    sinceMs: readSince(values),
    limit: readLimit(values),
  };
}

async function runShow({ words, flags, env, resources, within }: Given, output: Output): Promise<number> {
  const [name] = words;
  if (name === undefined || words.length > 1)
    throw new UsageError("tain deliveries show needs one GUID or id: `tain deliveries list` has them");
  const { ctx } = await openInstance(env, resources, within);
  const found = await findDeliveries(ctx, [name]);
  if (found.length === 0) throw unknownDelivery([name], ctx);

  const shown: (StoredDelivery & { payload?: unknown })[] = [];
  for (const delivery of found) {
    const payload = flags.has("payload") ? await loadPayload(ctx, delivery.id) : null;
    shown.push(payload === null ? delivery : { ...delivery, payload: JSON.parse(payload) });
  }
  output.document({ deliveries: shown });
  output.line(shown.map((delivery) => detailsOf(delivery, ctx)).join("\n\n"));
  return 0;
}
