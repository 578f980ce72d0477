import { idOf } from "../check-run/kind.ts";
import { isCompleted, resource, resourceEvents, sets } from "../contract/kind.ts";
import { checkSuites } from "./table.ts";

export const checkSuite = resource("check_suite", checkSuites, {
  right: "checks",
  part: "checks",
  columns: ({ app }) => ({ app_id: idOf(app) }),
  needed: ["head_sha"],
  upstream: { path: (id) => `/check-suites/${id}` },
  events: resourceEvents({
    event: "check_suite",
    in: "check_suite",
    fields: { status: isCompleted },
    // Upstream sends the event of a new suite only to the App that made it.
    actions: { completed: sets("status", true) },
    sinceBirth: ({ status }) => (status === "completed" ? [["status", false]] : []),
    toldSinceBirth: "each",
  }),
});
