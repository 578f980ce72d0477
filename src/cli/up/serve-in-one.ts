import { parseConfig } from "../../config.ts";
import { aborted } from "../../operations/shutdown.ts";
import { frugalSettings, heapFlags, thisMachine } from "./frugal.ts";
import { STOP_SHARES, stopLimit } from "./process-tree.ts";
import type { Serving } from "./serve.ts";

/**
 * Starts the process that does all that an instance needs, and leaves the rest to it. This process only watches it, and
 * loads little, so that it takes little memory.
 */
export async function serveInOne({ env: given, demonstrating, tree, output, signal }: Serving): Promise<void> {
  const demonstration = await demonstrating;
  signal.throwIfAborted();
  const upstream = demonstration ? { UPSTREAM_URL: demonstration.url, UPSTREAM_TOKEN: demonstration.token } : {};
  const env = { ...given, ...upstream };
  const machine = thisMachine();
  const stopWithinMs = Math.round(parseConfig(env).shutdownMs * STOP_SHARES.instance);
  tree.start({
    name: "instance",
    entry: new URL("../../../workers/one.ts", import.meta.url),
    nodeFlags: heapFlags(env, machine),
    args: [
      ...(output.json ? ["--json"] : []),
      ...(demonstration ? ["--demonstrate", demonstration.repositories.join(",")] : []),
    ],
    env: { ...env, ...frugalSettings(env, machine), SHUTDOWN_TIMEOUT: stopLimit({ stopWithinMs }) },
    stopWithinMs,
    isHeard: true,
  });
  await aborted(signal);
}
