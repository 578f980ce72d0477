import { asShown, CHANGES, exists, mayBeEmpty, resource, resourceEvents, sets } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { milestones } from "./table.ts";

export const milestone = resource("milestone", milestones, {
  right: "issues or pulls",
  columns: ({ creator }) => ({ creator_id: referenceId(creator) }),
  needed: ["number", "title", "state"],
  upstream: { path: (_id, number) => `/milestones/${number}`, numberColumn: "number", phase: "milestones" },
  events: resourceEvents({
    event: "milestone",
    in: "milestone",
    fields: { title: asShown, description: mayBeEmpty, due_on: asShown, state: asShown },
    actions: {
      created: exists(true),
      edited: CHANGES,
      deleted: exists(false),
      closed: sets("state", "closed"),
      // A milestone is opened again.
      opened: sets("state", "open"),
    },
    maker: ({ creator }) => creator,
  }),
});
