import { sql } from "../../../db/sql.ts";
import { exists, isCompleted, numberInAddress, resource, resourceEvents, sets } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { workflowRunLists, workflowRuns } from "./table.ts";

export const workflowRun = resource("workflow_run", workflowRuns, {
  right: "actions",
  part: "actions",
  columns: ({ actor, workflow_url }) => ({ actor_id: referenceId(actor), workflow_id: numberInAddress(workflow_url) }),
  needed: ["workflow_url", "event", "head_sha", "created_at", "updated_at"],
  upstream: { path: (id) => `/actions/runs/${id}`, rows: "workflow_runs" },
  // The runs of a deleted workflow stay.
  parent: { kind: "workflow", address: "workflow_url", column: "workflow_id", buriedWith: null },
  list: {
    table: workflowRunLists,
    path: "/actions/runs",
    everyMs: 60 * 60_000,
    moving: { everyMs: 5 * 60_000, rows: sql`t.status <> 'completed'` },
    newestFirst: { wholeEveryMs: 24 * 60 * 60_000 },
  },
  events: resourceEvents({
    event: "workflow_run",
    in: "workflow_run",
    beside: { workflow: "workflow" },
    fields: { status: isCompleted },
    // Upstream tells of no run's deletion. Another attempt is requested, too.
    actions: { requested: exists(true), completed: sets("status", true) },
    maker: ({ actor }) => actor,
    sinceBirth: ({ status }) => (status === "completed" ? [["status", false]] : []),
    toldSinceBirth: "each",
  }),
});
