import { milestones } from "../../../db/schema/tables.ts";
import { CHANGES, exists, mayBeEmpty, plain, resource, resourceEvents, sets } from "../kind.ts";
import { referenceId } from "../placeholders.ts";

export const milestone = resource("milestone", milestones, {
  columns: ({ creator }) => ({ creator_id: referenceId(creator) }),
  needed: ["number", "title", "state"],
  upstream: { path: (_id, number) => `/milestones/${number}`, numberColumn: "number", phase: "milestones" },
  events: resourceEvents({
    event: "milestone",
    in: "milestone",
    fields: { title: plain, description: mayBeEmpty, due_on: plain, state: plain },
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
