import { resource } from "../contract/kind.ts";
import { workflowLists, workflows } from "./table.ts";

export const workflow = resource("workflow", workflows, {
  right: "actions",
  part: "actions",
  needed: ["name", "path", "state"],
  upstream: { path: (id) => `/actions/workflows/${id}`, rows: "workflows" },
  // No event is about a workflow. Those of its runs show it.
  list: { table: workflowLists, path: "/actions/workflows", everyMs: 60 * 60_000 },
});
