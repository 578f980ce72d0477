import { askForRedelivery } from "../../../events/asks.ts";
import { wakeTargets } from "../../../events/log.ts";
import { rewritten } from "../../../events/request.ts";
import { findSent, listSent, pageBefore } from "../../../events/sent.ts";
import { ok } from "../../call/call.ts";
import { ApiFault, notFound } from "../../dialect/fault.ts";
import { choice, pageSize } from "../../dialect/protocol.ts";
import { numberParam } from "../page.ts";
import { sentInFullView, sentView } from "./hook-view.ts";
import { type HookOperation, requireTarget } from "./hooks.ts";

/**
 * A hook's deliveries, the newest first. A cursor names the delivery before its page, so new deliveries move nothing.
 */
export const listHookDeliveries: HookOperation = async (call, place) => {
  const { id } = await requireTarget(call, place);
  const { query } = call;
  const status = choice(query, "status", ["all", "success", "failure"]);
  const before = cursorIn(query.get("cursor"));
  const limit = pageSize(query);
  const answered = status === "all" ? null : status;
  const found = await listSent(call.ctx, id, { limit: limit + 1, before, answered });
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const links: string[] = [];
  const link = (rel: string, cursor: string | null) => {
    const asked = new URLSearchParams([...query].filter(([name]) => name !== "cursor"));
    if (cursor !== null) asked.set("cursor", cursor);
    const search = asked.size > 0 ? `?${asked}` : "";
    links.push(`<${place.address}/${id}/deliveries${search}>; rel="${rel}"`);
  };
  if (found.length > limit && last) link("next", `v1_${last.id}`);
  if (before !== null) {
    const previous = await pageBefore(call.ctx, id, { than: page[0]?.id ?? before - 1, limit, answered });
    if (previous.exists) link("prev", previous.before === null ? null : `v1_${previous.before}`);
    link("first", null);
  }
  return ok(JSON.stringify(page.map(sentView)), { link: links.join(", ") || null });
};

function cursorIn(text: string | null): number | null {
  if (text === null || text === "") return null;
  const id = text.startsWith("v1_") ? numberParam(text.slice(3)) : null;
  if (id === null) throw new ApiFault(400, "Invalid cursor");
  return id;
}

export const getHookDelivery: HookOperation = async (call, place) => {
  const { id, rewriteTo } = await requireTarget(call, place);
  const sent = await findSent(call.ctx, id, deliveryIn(call.params.delivery));
  if (!sent) throw notFound();
  const isMoved = rewriteTo !== null && sent.payload !== null;
  const addresses = { from: call.ctx.config.upstreamUrl, to: rewriteTo ?? "" };
  return ok(sentInFullView(isMoved ? { ...sent, payload: rewritten(sent.payload ?? Buffer.of(), addresses) } : sent));
};

export const resendHookDelivery: HookOperation = async (call, place) => {
  const { id } = await requireTarget(call, place);
  if (!(await askForRedelivery(call.ctx, id, deliveryIn(call.params.delivery)))) throw notFound();
  await wakeTargets(call.ctx, [id]);
  return { status: 202, body: "{}", isUncached: true };
};

function deliveryIn(text: string | undefined): number {
  const id = numberParam(text);
  if (id === null) throw notFound();
  return id;
}
