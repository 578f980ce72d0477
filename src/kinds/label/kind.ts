import { asShown, CHANGES, exists, mayBeEmpty, resource, resourceEvents } from "../contract/kind.ts";
import { labels } from "./table.ts";

export const label = resource("label", labels, {
  right: "issues or pulls",
  needed: ["name"],
  // A label is shown by its name, which may be another by now.
  upstream: { path: () => "/labels?per_page=100", phase: "labels" },
  isVersioned: false,
  // Old enterprise servers' labels have neither of the two: those are known by their names.
  lackedIdentity: ({ id, node_id }) =>
    typeof node_id === "string" || ((id ?? null) === null && (node_id ?? null) === null) ? null : "node_id",
  events: resourceEvents({
    event: "label",
    in: "label",
    fields: { name: asShown, color: asShown, description: mayBeEmpty },
    actions: { created: exists(true), edited: CHANGES, deleted: exists(false) },
  }),
});
