import { once } from "node:events";
import { connect } from "node:net";
import type { RedisAddress } from "../config/redis-address.ts";

/** Redis gives the reason at once or never. */
const SAID_MS = 1_000;
const PROTECTED = /^-DENIED .*protected mode/i;

/**
 * Why a server closes each connection as soon as it is made, in words. Redis says so before it is asked anything, where
 * its client does not hear it: a write to the closed connection fails first. Null: no reason is known.
 */
export async function refusalOf(address: RedisAddress): Promise<string | null> {
  if (address.of !== "server" || address.isEncrypted) return null;
  const socket = connect(address.endpoint);
  try {
    const [said] = await once(socket, "data", { signal: AbortSignal.timeout(SAID_MS) });
    return PROTECTED.test(String(said))
      ? "Redis is in protected mode: it has no password, so it lets in its own machine alone. Set a password there (requirepass) and in REDIS_URL"
      : null;
  } catch {
    // Silent, or away: then that is what its client says.
    return null;
  } finally {
    socket.destroy();
  }
}
