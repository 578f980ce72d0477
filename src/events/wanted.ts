import { objectOf, rowsOf, textOf } from "../json.ts";
import { parsedPayload } from "./request.ts";
import type { Target } from "./target.ts";

/** Whether a target wants an event, by its name and action. The writer of the log has the same rule in SQL. Pure. */
export function wantsEvent(
  { events, actions }: Pick<Target, "events" | "actions">,
  { event, action }: { event: string; action: string | null },
): boolean {
  const isNamed = events.includes("*") || events.includes(event);
  return isNamed && (actions === null || (action !== null && actions.includes(action)));
}

/**
 * Whether a target wants an event, by the labels of what it is about, or by the label that it is about itself. An event
 * that is too long to be read has none. Pure.
 */
export function wantsLabels({ labels }: Pick<Target, "labels">, payload: Buffer): boolean {
  if (labels === null) return true;
  const { issue, pull_request, label } = parsedPayload(payload) ?? {};
  const rows = [...[issue, pull_request].flatMap((each) => rowsOf(objectOf(each).labels)), objectOf(label)];
  const names = rows.flatMap(({ name }) => textOf(name)?.toLowerCase() ?? []);
  return labels.some((each) => names.includes(each.toLowerCase()));
}
