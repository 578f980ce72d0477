import { ConfigError } from "../config.ts";

/** Runs a process's main function. What the operator has to mend is told in words; anything else is a bug, with its stack. */
export async function runProcess(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    const advice = adviceOn(error as Error & { code?: string; address?: string; port?: number });
    if (advice === null) throw error;
    console.error(advice);
    process.exitCode = 1;
  }
}

function adviceOn(error: Error & { code?: string; address?: string; port?: number }): string | null {
  if (error instanceof ConfigError) return error.message;
  const place = `${error.address}:${error.port}`;
  switch (error.code) {
    case "EADDRINUSE":
      return `Cannot start: another process listens on ${place}. Stop it, or set PORT to a free port.`;
    case "EADDRNOTAVAIL":
      return `Cannot start: ${error.address} is not an address of this machine. Set HOST to one, or to 0.0.0.0 for all.`;
    case "EACCES":
      return `Cannot start: this user may not listen on ${place}. Set PORT to one above 1023.`;
    default:
      return null;
  }
}
