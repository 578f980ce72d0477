/** What only upstream can say of its users: their notifications, and what happened in what they watch. */
import { type Answer, type Call, ok, requireUser } from "../call.ts";
import { passThrough } from "../forward/pass-through.ts";

/** The caller's notifications. */
export async function listNotifications(call: Call): Promise<Answer> {
  requireUser(call);
  return upstreams(call, "Notifications");
}

/** What happened in what somebody watches, and whom they follow. */
export async function listReceivedEvents(call: Call): Promise<Answer> {
  requireUser(call);
  return upstreams(call, "Received events");
}

/**
 * Upstream's list where requests are passed through. Otherwise an empty one, with a warning that it says nothing: `gh status`
 * shows what it finds elsewhere only when these can be read.
 */
async function upstreams(call: Call, what: string): Promise<Answer> {
  const passed = call.ctx.config.passThrough ? await passThrough(call) : null;
  if (passed) return passed;
  const headers = { Warning: `199 tain "${what} are not mirrored: this list says nothing of upstream's"` };
  return ok("[]", { headers, isUncached: true, confirmedAt: null });
}
