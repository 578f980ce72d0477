import { once } from "node:events";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { openServer, openTurns } from "./server.ts";
import type { Workplace } from "./tools/tool.ts";

interface StdioParts extends Omit<Workplace, "turns"> {
  canWrite: boolean;
  leaving: AbortSignal;
}

/** Serves the program that has started this one, until that closes its end. */
export async function serveOverStdio({ canWrite, leaving, ...workplace }: StdioParts): Promise<void> {
  const at = { ...workplace, turns: openTurns() };
  // The SDK's own listener comes later, so this one is told of the end in any case.
  const ended = once(process.stdin, "end", { signal: leaving }).catch((error: unknown) => {
    if (!leaving.aborted) throw error;
  });
  const connection = serveStdio(() => openServer(at, { canWrite }), {
    onerror: ({ message }) => at.complain(message),
  });
  await ended;
  await connection.close();
}
