/** What only upstream knows of its users: their notifications, and the events of what they follow. */
import { type Answer, type Call, ok } from "../call/call.ts";
import { requireUser } from "../callers/permissions.ts";
import { forwardAsCaller } from "../forward/as-caller.ts";

/**
 * Upstream's list if requests are forwarded. Otherwise an empty list, with a warning that it says nothing. `gh
 * status` needs an answer here before it shows its other parts.
 */
const upstreams =
  (what: string) =>
  async (call: Call): Promise<Answer> => {
    requireUser(call);
    const forwarded = call.ctx.config.forwarding ? await forwardAsCaller(call) : null;
    if (forwarded) return forwarded;
    const headers = { Warning: `199 tain "${what} are not mirrored: this list says nothing of upstream's"` };
    return ok("[]", { headers, isUncached: true, confirmedAt: null });
  };

export const listNotifications = upstreams("Notifications");
export const listReceivedEvents = upstreams("Received events");
