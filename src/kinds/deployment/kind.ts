import { sql } from "../../../db/sql.ts";
import { exists, resource, resourceEvents } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { deploymentLists, deployments } from "./table.ts";

export const deployment = resource("deployment", deployments, {
  right: "deployments",
  part: "deployments",
  columns: ({ creator }) => ({ creator_id: referenceId(creator) }),
  needed: ["sha", "ref", "task", "environment", "created_at", "updated_at"],
  upstream: { path: (id) => `/deployments/${id}` },
  list: {
    table: deploymentLists,
    path: "/deployments",
    everyMs: 60 * 60_000,
    // Upstream makes the earlier deployments of an environment inactive after a success, and sends no event for that
    // (its OpenAPI description, `deployment_status`).
    moving: { everyMs: 5 * 60_000, rows: sql`false` },
    newestFirst: { wholeEveryMs: 24 * 60 * 60_000 },
  },
  events: resourceEvents({
    event: "deployment",
    in: "deployment",
    ownKeys: ["workflow", "workflow_run"],
    fields: {},
    // Upstream tells of no deployment's deletion.
    actions: { created: exists(true) },
    maker: ({ creator }) => creator,
  }),
});
