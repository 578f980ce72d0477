import { JsonObject } from "../terminal/json.ts";
import type { ProcessTree, TreeProgram } from "./process-tree.ts";

/**
 * The upstream of the demonstration: the simulator as a process of its own. Its world is the same at each start and
 * then changes by itself.
 */
export interface Demonstration {
  url: string;
  token: string;
  /** `owner/name` of each repository that is no fork. */
  repositories: string[];
}

/**
 * Four repositories, the third of them private; 3,000 issues and pull requests take a third of a second to generate.
 */
const WORLD: readonly string[] = ["--repositories", "4", "--issues", "2000", "--pulls", "1000", "--seed", "20"];
const CHANGES_PER_SECOND = 1;
const SIMULATOR_PATIENCE_MS = 60_000;

/**
 * The kinds of change that happen in the demonstration. Renames are left out, because the addresses that we print
 * contain the names.
 */
const HAPPENINGS: readonly string[] = [
  "open edit label assign milestone comment editComment deleteComment close reopen lock",
  "openPull push draft requestReview review dismissReview reviewComment editReviewComment merge",
  "createLabel renameLabel deleteLabel createMilestone editMilestone deleteIssue transferIssue",
].flatMap((kinds) => kinds.split(" "));

/** Starts the simulator and answers once it listens. */
export async function startDemonstration(
  tree: ProcessTree,
  { stopWithinMs }: Pick<TreeProgram, "stopWithinMs">,
): Promise<Demonstration> {
  const { promise: ready, resolve, reject } = Promise.withResolvers<Pick<Demonstration, "url" | "token">>();
  tree.start({
    name: "simulator",
    entry: new URL("../../simulator/main.ts", import.meta.url),
    args: WORLD,
    env: withoutSimulatorSettings(process.env),
    stopWithinMs,
    fatal: "its world is gone with it. Start again for a new one",
    onLine: (line) => {
      try {
        const said = JsonObject.parse(line);
        resolve({ url: said.string("url"), token: said.string("token") });
      } catch (error) {
        reject(new Error(`The simulator does not say where it listens: ${line}`, { cause: error }));
      }
    },
  });
  const timer = setTimeout(
    () => reject(new Error(`The simulator is not ready after ${SIMULATOR_PATIENCE_MS / 1_000} s`)),
    SIMULATOR_PATIENCE_MS,
  );
  timer.unref(); // The timer must not delay the end of a start that fails for another reason.
  void tree.failed.then((reason) => reject(new Error(reason ?? "The instance has ended")));
  const { url, token } = await ready.finally(() => clearTimeout(timer));
  const state = new JsonObject(await control(`${url}/-/state`));
  const originals = state.objects("repositories").filter((each) => !each.boolean("fork"));
  return { url, token, repositories: originals.map((each) => each.string("full_name")) };
}

/** Lets the simulated world change, about once a second. */
export async function enliven({ url }: Pick<Demonstration, "url">): Promise<void> {
  await control(`${url}/-/live`, { ratePerSecond: CHANGES_PER_SECOND, seed: 20, kinds: HAPPENINGS });
}

async function control(url: string, body?: object): Promise<unknown> {
  const request = body
    ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }
    : {};
  const response = await fetch(url, { ...request, signal: AbortSignal.timeout(SIMULATOR_PATIENCE_MS) });
  if (!response.ok)
    throw new Error(`The simulator answers ${response.status} to ${new URL(url).pathname}: ${await response.text()}`);
  return await response.json();
}

/** Removes the simulator's settings, which are meant for a simulator that runs by itself. */
function withoutSimulatorSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("SIMULATOR_")));
}
