import { sql } from "../../../db/sql.ts";
import { exists, numberInAddress, resource, resourceEvents } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { deploymentStatuses, deploymentStatusLists } from "./table.ts";

export const deploymentStatus = resource("deployment_status", deploymentStatuses, {
  right: "deployments",
  part: "deployments",
  columns: ({ deployment_url, creator }) => ({
    deployment_id: numberInAddress(deployment_url),
    creator_id: referenceId(creator),
  }),
  needed: ["deployment_url", "state", "created_at", "updated_at"],
  upstream: { path: (id, deployment) => `/deployments/${deployment}/statuses/${id}`, numberColumn: "deployment_id" },
  parent: { kind: "deployment", address: "deployment_url", column: "deployment_id", buriedWith: "deployment" },
  listBelow: {
    table: deploymentStatusLists,
    path: (deployment) => `/deployments/${deployment}/statuses`,
    most: 100,
    // Each status gives its deployment its own time (the examples of @octokit/webhooks-examples). In a read this proves
    // nothing: a status may have been made in the same second.
    isNew: ({ created_at, updated_at }) => created_at === updated_at,
    isCurrent: sql`(l.read_at > p.updated_at + interval '1 minute' or p.updated_at <= greatest(p.created_at,
      (select max(t.created_at) from deployment_statuses t where t.repository_id = p.repository_id and t.deployment_id = p.id)))`,
  },
  events: resourceEvents({
    event: "deployment_status",
    in: "deployment_status",
    beside: { deployment: "deployment" },
    ownKeys: ["check_run", "workflow", "workflow_run"],
    fields: {},
    actions: { created: exists(true) },
    // Upstream sends no event for a status that says that the deployment has become inactive.
    isHidden: ({ state }) => state === "inactive",
    maker: ({ creator }) => creator,
  }),
});
