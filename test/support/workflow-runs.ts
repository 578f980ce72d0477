import { beginJob, endJob, startWorkflowRun, workflowOf } from "../../src/simulator/changes/actions.ts";
import type { TestWorld } from "./world.ts";

/** Has a workflow of the repository run at upstream, with two jobs, until it has ended. Webhooks tell of each step. */
export function runWorkflow({ simulator: { world } }: TestWorld, fullName: string): void {
  const [owner = "", name = ""] = fullName.split("/");
  const repository = world.repositoryByName(owner, name)?.repository;
  const headSha = repository?.branches.get(repository.defaultBranch);
  if (!repository || headSha === undefined) throw new Error(`${fullName} has no commit to run a workflow on`);
  const by = repository.ownerId;
  const workflow = workflowOf(world, { repository, name: "CI" });
  const run = startWorkflowRun(world, by, { workflow, headSha, jobs: ["build", "lint"] });
  for (const job of run.jobs) {
    beginJob(world, by, job);
    endJob(world, by, job, "success");
  }
}
