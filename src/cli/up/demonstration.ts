import { z } from "zod";
import type { Part, ProcessTree } from "./process-tree.ts";

/**
 * The upstream of the demonstration: the simulator as a process of its own, with a world that is the same at each start
 * and then goes its own way.
 */
export interface Demonstration {
  url: string;
  token: string;
  /** `owner/name` of each repository that is no fork. */
  repositories: string[];
}

/** Four repositories, the third of them private; 3,000 issues and pull requests take a third of a second to generate. */
const WORLD = ["--repositories", "4", "--issues", "2000", "--pulls", "1000", "--seed", "20"];
const CHANGES_PER_SECOND = 1;
const PATIENCE_MS = 60_000;

/** What people do all day. Repositories and their owners keep their names: the addresses that we print name them. */
const HAPPENINGS = [
  ...[
    "open",
    "edit",
    "label",
    "assign",
    "milestone",
    "comment",
    "editComment",
    "deleteComment",
    "close",
    "reopen",
    "lock",
  ],
  ...[
    "openPull",
    "push",
    "draft",
    "requestReview",
    "review",
    "dismissReview",
    "reviewComment",
    "editReviewComment",
    "merge",
  ],
  ...["createLabel", "renameLabel", "deleteLabel", "createMilestone", "editMilestone", "deleteIssue", "transferIssue"],
];

const readyLine = z.object({ ready: z.literal(true), url: z.string(), token: z.string() });
const summary = z.object({ repositories: z.array(z.object({ full_name: z.string(), fork: z.boolean() })) });

/** Starts the simulator and answers once it listens. */
export async function startDemonstration(
  tree: ProcessTree,
  { stopWithinMs }: Pick<Part, "stopWithinMs">,
): Promise<Demonstration> {
  const { promise: ready, resolve, reject } = Promise.withResolvers<z.infer<typeof readyLine>>();
  tree.start({
    name: "simulator",
    entry: new URL("../../simulator/main.ts", import.meta.url),
    args: WORLD,
    env: withoutSimulatorSettings(process.env),
    stopWithinMs,
    fatal: "its world is gone with it. Start again for a new one",
    onLine: (line) => {
      const parsed = readyLine.safeParse(parseJson(line));
      if (parsed.success) resolve(parsed.data);
    },
  });
  const timer = setTimeout(
    () => reject(new Error(`The simulator is not ready after ${PATIENCE_MS / 1_000} s`)),
    PATIENCE_MS,
  );
  void tree.failed.then((reason) => reject(new Error(reason)));
  const { url, token } = await ready.finally(() => clearTimeout(timer));
  const { repositories } = summary.parse(await control(`${url}/-/state`));
  return { url, token, repositories: repositories.filter(({ fork }) => !fork).map((each) => each.full_name) };
}

/** From now on things happen in the world, about one a second. */
export async function enliven({ url }: Pick<Demonstration, "url">): Promise<void> {
  await control(`${url}/-/live`, { ratePerSecond: CHANGES_PER_SECOND, seed: 20, kinds: HAPPENINGS });
}

async function control(url: string, body?: object): Promise<unknown> {
  const request = body
    ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }
    : {};
  const response = await fetch(url, { ...request, signal: AbortSignal.timeout(PATIENCE_MS) });
  if (!response.ok)
    throw new Error(`The simulator answers ${response.status} to ${new URL(url).pathname}: ${await response.text()}`);
  return await response.json();
}

/** Its settings in the environment are for those who run it by itself. */
function withoutSimulatorSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("SIMULATOR_")));
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
