import { type Fields, objectOf } from "../../json.ts";
import { numberInAddress, resource } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { issueEventLists, issueEvents } from "./table.ts";

/**
 * Webhooks tell that something happened, but not the event with its id. So a delivery costs nothing here: the list is read
 * each hour, and once somebody asks for what happened since, at most every five minutes.
 */
export const issueEvent = resource("issue_event", issueEvents, {
  right: "issues or pulls",
  part: "issue-events",
  isVersioned: false,
  columns: ({ issue_url, actor, assignee, requested_reviewer: reviewer, label, milestone, rename }) => ({
    issue_number: numberInAddress(issue_url),
    actor_id: referenceId(actor),
    subject_id: referenceId(assignee) ?? referenceId(reviewer),
    label: objectOf(label).name ?? null,
    milestone: objectOf(milestone).title ?? null,
    title_from: objectOf(rename).from ?? null,
    title_to: objectOf(rename).to ?? null,
  }),
  needed: ["event", "created_at"],
  upstream: { path: (id) => `/issues/events/${id}` },
  parent: { kind: "issue", address: "issue_url", column: "issue_number", buriedWith: "issue" },
  taken: withoutIssue,
  list: {
    table: issueEventLists,
    path: "/issues/events",
    everyMs: 60 * 60_000,
    askedEveryMs: 5 * 60_000,
    // An event ends only with its issue, which its own webhook and audit tell.
    newestFirst: { wholeEveryMs: 30 * 24 * 60 * 60_000, mostPages: 300 },
  },
});

/** The event with the address of its issue in the issue's place: the mirror has the issue itself. */
function withoutIssue(document: Fields): Fields {
  const { url = null } = objectOf(document.issue);
  return Object.fromEntries(
    Object.entries(document).map(([key, value]) => (key === "issue" ? ["issue_url", url] : [key, value])),
  );
}
