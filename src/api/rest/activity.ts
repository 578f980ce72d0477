/** What only upstream knows of its users: their notifications, and the events of what they follow. */
import { type Answer, type Call, ok, requireUser } from "../call.ts";
import { passThrough } from "../forward/pass-through.ts";

/** The caller's notifications. */
export async function listNotifications(call: Call): Promise<Answer> {
  requireUser(call);
  return upstreams(call, "Notifications");
}

/** Events of the repositories and people that a user follows. */
export async function listReceivedEvents(call: Call): Promise<Answer> {
  requireUser(call);
  return upstreams(call, "Received events");
}

/**
 * Upstream's list if requests are passed through. Otherwise an empty list, with a warning that it says nothing. `gh
 * status` needs an answer here before it shows its other parts.
 */
async function upstreams(call: Call, what: string): Promise<Answer> {
  const passed = call.ctx.config.passThrough ? await passThrough(call) : null;
  if (passed) return passed;
  const headers = { Warning: `199 tain "${what} are not mirrored: this list says nothing of upstream's"` };
  return ok("[]", { headers, isUncached: true, confirmedAt: null });
}
