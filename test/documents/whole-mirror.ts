import { MIRROR_PARTS } from "../../src/config/parts.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { PullIssue } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { fetchAndStoreNames } from "../../src/sync/people/names.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { OWNER, UPSTREAM_TOKEN } from "../support/config.ts";
import { markWholesDue } from "../support/due.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import type { At, ClientDocument } from "./document.ts";
import { SERVICE_SCHEMA } from "./service-schema.ts";

/** A mirror with all its parts, whose upstream knows the service's whole schema and can be cut off. */
export interface WholeMirror extends AsyncDisposable {
  world: TestWorld;
  /** `owner/name`. */
  repo: string;
  at: At;
  pull: PullIssue;
  /** Sends a document to the mirror with a token of its own, or to upstream. */
  ask(document: ClientDocument, whom?: "mirror" | "upstream"): Promise<Answered>;
  /** From now on upstream answers nothing. */
  cutOff(): void;
}

export async function openWholeMirror(): Promise<WholeMirror> {
  await using opening = new AsyncDisposableStack();
  const world = opening.use(
    await openWorld({
      simulator: { wholeSchema: SERVICE_SCHEMA },
      env: { MIRROR: MIRROR_PARTS.join() },
      copiedWithinMs: LONG_TEST_MS,
      fill: ({ world: filled, quota }) => {
        Object.assign(quota.limits, { contentPerMinute: Infinity, contentPerHour: Infinity });
        const code = { releases: 3, workflowRuns: 5, deployments: 4 };
        generateWorld(filled, { seed: 7, repositories: 1, issues: 40, pulls: 20, code });
      },
    }),
  );
  const { simulator, first: repo, token } = world;
  const [owner = "", name = ""] = repo.split("/");
  const repository = simulator.world.repositoryByName(owner, name)?.repository;
  const open = [...simulator.world.issues.values()].filter((one) => one.state === "open");
  const issue = open.find((one) => !isPull(one));
  const pull = open.find((one): one is PullIssue => isPull(one) && one.pull.head.repositoryId === repository?.id);
  if (!issue || !pull) throw new Error("The generated world lacks an open issue or pull request");
  await world.mirror(repo);
  await world.listen(repo);
  await copyParts(world);
  const ids = `{ repository(owner: "${owner}", name: "${name}") { id issue(number: ${issue.number}) { id } pullRequest(number: ${pull.number}) { id } labels(first: 1) { nodes { name } } } }`;
  const { body } = await askAt(simulator.url, "POST", "/graphql", {
    token: UPSTREAM_TOKEN,
    body: JSON.stringify({ query: ids }),
  });
  const { id: repositoryId, issue: i, pullRequest: p, labels } = body.data.repository;
  const numbers = { issue: issue.number, pull: pull.number, issueId: i.id, pullId: p.id };
  const at = {
    owner,
    name,
    ...numbers,
    repositoryId,
    label: labels.nodes[0].name,
    login: OWNER,
    oid: pull.pull.head.sha,
  };
  const all = opening.move();
  return {
    ...{ world, repo, at, pull },
    ask: ({ query, variables }, whom = "mirror") =>
      askAt(whom === "mirror" ? world.url : simulator.url, "POST", "/graphql", {
        token: whom === "mirror" ? token : UPSTREAM_TOKEN,
        body: JSON.stringify({
          query: query.replace("OWNER", owner).replace("NAME", name),
          variables: variables?.(at) ?? {},
        }),
      }),
    cutOff: () => simulator.setFaults({ http: [{ kind: "reset" }] }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Checks, lists, releases, refs and names, as they are copied while schedules run. */
async function copyParts({ ctx, settleMarks }: TestWorld): Promise<void> {
  await markWholesDue(ctx);
  await settleMarks();
  await fetchAndStoreNames(ctx);
}
