import { expect } from "vitest";
import type { Health } from "../../src/health/health.ts";
import type { TroubleName } from "../../src/health/troubles.ts";
import { openHeartbeat } from "../../src/operations/heartbeat.ts";
import { VIEWS } from "../../src/operator/views.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { tainOn } from "../cli/tain-on.ts";
import { eventually } from "../support/patience.ts";
import { openWorld, type TestWorld, type TestWorldOptions } from "../support/world.ts";

export const OPERATOR = "the-operators-token";

export interface HealthWorld extends AsyncDisposable {
  world: TestWorld;
  /** What `tain status`, `/-/status` and every view of the page say, in this order. */
  said(): Promise<Health[]>;
  /** What all of them say, once they say the same. */
  line(): Promise<Health>;
  /** Waits until all three say that this is the worst, and answers what they say. */
  worst(name: TroubleName): Promise<Health["troubles"][number] & { line: string }>;
  /** Waits until all three say that all is well. */
  well(): Promise<void>;
}

/**
 * A mirror of which all places that tell of its health are asked. Its scheduler only says that it lives. `fill` may still
 * add to `env`.
 */
export async function openHealthWorld({ env = {}, ...options }: TestWorldOptions = {}): Promise<HealthWorld> {
  env.OPERATOR_TOKEN = OPERATOR;
  const resources = new AsyncDisposableStack();
  const world = resources.use(
    await openWorld({
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 3, repositories: 2, issues: 4, pulls: 1 }),
      ...options,
      env,
    }),
  );
  resources.use(openHeartbeat(world.ctx, "scheduler"));
  const signIn = await fetch(`${world.url}/-/session`, {
    method: "POST",
    redirect: "manual",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: `token=${OPERATOR}`,
  });
  const cookie = (signIn.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const healthAt = async (path: string): Promise<Health> => {
    const headers = { cookie, authorization: `Bearer ${OPERATOR}` };
    const { health } = (await (await fetch(world.url + path, { headers })).json()) as { health: Health };
    return health;
  };
  const views = Object.keys(VIEWS).map((view) => `/-/operator/${view}?target=1`);

  const said = async () => {
    const { json } = await tainOn(world, ["status", "--json"]);
    const all: Health[] = [json.health];
    for (const path of ["/-/status", ...views]) all.push(await healthAt(path));
    return all;
  };
  const line = () =>
    eventually(async () => {
      const [first, ...others] = await said();
      if (!first) throw new Error("Nothing was said");
      for (const other of others) expect(other).toEqual(first);
      return first;
    });
  return {
    world,
    said,
    line,
    worst: (name) =>
      eventually(async () => {
        const { troubles, line: said } = await line();
        expect([troubles[0]?.name, said]).toEqual([name, expect.anything()]);
        const [worst] = troubles;
        if (!worst) throw new Error("There is no trouble");
        expect(said.startsWith(worst.says)).toBe(true);
        return { ...worst, line: said };
      }),
    well: () =>
      eventually(async () => {
        const { line: said, state } = await line();
        expect([said, state]).toEqual(["All is well", "well"]);
      }),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
