import { sql } from "../../../db/sql.ts";
import { progressOf } from "../check-run/kind.ts";
import { exists, isCompleted, numberInAddress, resource, resourceEvents, sets } from "../contract/kind.ts";
import { workflowJobLists, workflowJobs } from "./table.ts";

export const workflowJob = resource("workflow_job", workflowJobs, {
  right: "actions",
  part: "actions",
  columns: ({ run_url }) => ({ run_id: numberInAddress(run_url) }),
  needed: ["run_url", "name", "status"],
  upstream: { path: (id) => `/actions/jobs/${id}`, rows: "jobs" },
  isVersioned: false,
  // Each job is a check run, and goes on as one does.
  progressOf,
  parent: { kind: "workflow_run", address: "run_url", column: "run_id", buriedWith: "workflow_run" },
  listBelow: {
    table: workflowJobLists,
    path: (run) => `/actions/runs/${run}/jobs`,
    query: "filter=all",
    most: 100,
    askedAs: "jobs",
    // The run is requested with equal times (the examples of @octokit/webhooks-examples).
    isNew: ({ run_attempt, created_at, updated_at }) => run_attempt === 1 && created_at === updated_at,
    // It was read once no replica could lack what is known of the run; or each job was told. Of a further attempt, upstream may take jobs over from an earlier one without a word.
    isCurrent: sql`(l.read_at > p.seen_at + interval '10 seconds' or (not p.seen_by_read and p.run_attempt = 1
      and (p.status <> 'completed' or (
        exists (select from workflow_jobs t where t.repository_id = p.repository_id and t.run_id = p.id)
        and not exists (select from workflow_jobs t where t.repository_id = p.repository_id and t.run_id = p.id
          and t.deleted_at is null and t.status <> 'completed')))))`,
  },
  events: resourceEvents({
    event: "workflow_job",
    in: "workflow_job",
    ownKeys: ["deployment"],
    fields: { status: isCompleted },
    actions: { queued: exists(true), waiting: exists(true), completed: sets("status", true) },
    madeAt: ({ created_at, started_at }) => created_at ?? started_at,
    maker: () => undefined,
    sinceBirth: ({ status }) => (status === "completed" ? [["status", false]] : []),
    toldSinceBirth: "each",
  }),
});
