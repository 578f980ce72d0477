import { setFlagsFromString } from "node:v8";
import { UnfitStoreError } from "../../db/unfit.ts";
import { ConfigError } from "../config.ts";
import { REFUSED_STATUS } from "./shutdown.ts";

/**
 * Runs a process's main function. An error that the operator can mend is printed as a sentence. Any other error is a
 * bug and is printed with its stack.
 */
export async function runProcess(main: () => Promise<void>): Promise<void> {
  // V8 watches how long the objects live that one place in the code allocates. If a hundred of them live long, perhaps
  // because all requests waited just then, V8 puts all later ones into the old generation, for good. Then the text of
  // each row would stay in memory until the next full collection.
  setFlagsFromString("--no-allocation-site-pretenuring");
  try {
    await main();
  } catch (error) {
    const advice = adviceOn(error);
    if (advice === null) throw error;
    console.error(advice);
    process.exitCode = error instanceof UnfitStoreError ? REFUSED_STATUS : 1;
  }
}

/** Node's error for a server that cannot listen. */
interface ListenError extends Error {
  code?: unknown;
  address?: unknown;
  port?: unknown;
}

function adviceOn(error: unknown): string | null {
  if (error instanceof ConfigError || error instanceof UnfitStoreError) return error.message;
  if (!(error instanceof Error)) return null;
  const { code, address, port }: ListenError = error;
  const place = `${address}:${port}`;
  switch (code) {
    case "EADDRINUSE":
      return `Cannot start: another process listens on ${place}. Stop it, or set PORT to a free port.`;
    case "EADDRNOTAVAIL":
      return `Cannot start: ${address} is not an address of this machine. Set HOST to one, or to 0.0.0.0 for all.`;
    case "EACCES":
      return `Cannot start: this user may not listen on ${place}. Set PORT to one above 1023.`;
    default:
      return null;
  }
}
