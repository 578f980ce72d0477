import type { Hook } from "../../src/simulator/world/records.ts";
import type { Simulated } from "./simulated.ts";

/** Makes a hook by REST, and waits until its ping has gone out. Answers the hook's id. */
export async function settledHook(
  it: Simulated,
  config: Readonly<Record<string, string>>,
  events: readonly string[],
): Promise<number> {
  const made = await it.ask("POST", "/repos/octo/demo/hooks", { body: { config, events } });
  if (made.status !== 201) throw new Error(`No hook: ${made.text}`);
  await it.simulator.quiet();
  return made.body.id;
}

/** A hook for every event that was there from the beginning, so it gets no ping. */
export async function addedHook(it: Simulated, url: string): Promise<Hook> {
  return it.simulator.world.addHook({ repository: it.repository, url, contentType: "json", events: ["*"] });
}
