import { once } from "node:events";
import { connect } from "node:net";
import type { RedisAddress } from "../config/redis-address.ts";

/** Redis sends the reason right after the connection is made, or never. */
const SAID_MS = 1_000;
const PROTECTED = /^-DENIED .*protected mode/i;

/**
 * The reason why a server closes each new connection, in Redis' own words. Redis sends the reason before any command.
 * Our client misses it, because its first write to the closed connection fails earlier. Null: no reason is known.
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
    // The server is silent or away. The client reports that itself.
    return null;
  } finally {
    socket.destroy();
  }
}
