import { type Fields, isObject, numberOf, objectOf, textOf } from "../../json.ts";
import { resources } from "../../kinds/registry.ts";

/** An event, as it is told. */
export interface EventHead {
  /** Unique in its source. */
  id: number | string;
  guid: string;
  event: string;
  action: string | null;
  receivedAt: Date;
  /** Whether the mirror made the event, of a change that no webhook reported. */
  isMade: boolean;
}

/** An event as CloudEvents 1.0 has it, as one line of JSON. `data` is the payload as JSON. Pure. */
export function cloudEventOf(
  { id, guid, event, action, receivedAt, isMade }: EventHead,
  { source, payload, data }: { source: string; payload: Fields | null; data: string },
): string {
  const subject = payload && subjectPath(payload);
  const head = JSON.stringify({
    specversion: "1.0",
    id: String(id),
    source,
    type: action === null ? `com.github.${event}` : `com.github.${event}.${action}`,
    ...(subject === null ? {} : { subject }),
    time: receivedAt.toISOString(),
    githubdelivery: guid,
    ...(isMade ? { tainmade: true } : {}),
    datacontenttype: "application/json",
  });
  // JSON may have line breaks between its values, but not within its texts.
  return `${head.slice(0, -1)},"data":${data.replaceAll(/[\r\n]+/g, " ")}}`;
}

/** The path of an event's subject below its repository's address; null: the repository itself. Pure. */
function subjectPath(payload: Fields): string | null {
  const numbered = (key: string) => numberOf(objectOf(payload[key]).number);
  const pull = numbered("pull_request");
  if (pull !== null) return `pulls/${pull}`;
  const issue = numbered("issue");
  if (issue !== null) return `${isObject(objectOf(payload.issue).pull_request) ? "pulls" : "issues"}/${issue}`;
  const milestone = numbered("milestone");
  if (milestone !== null) return `milestones/${milestone}`;
  const label = textOf(objectOf(payload.label).name);
  if (label !== null) return `labels/${encodeURIComponent(label)}`;
  for (const [key, pathOf] of PATHS) {
    const id = numberOf(objectOf(payload[key]).id);
    if (id !== null) return pathOf(id);
  }
  const sha = textOf(payload.sha);
  return sha === null ? textOf(payload.ref) : `commits/${sha}`;
}

/** The paths of subjects that are known by their ids, by their keys in the payload. */
const PATHS: ReadonlyMap<string, (id: number) => string> = new Map([
  ...resources.flatMap(({ part, events, upstream: { path, numberColumn } }) =>
    part !== null && events && path && numberColumn === undefined
      ? [[events.in, (id: number) => path(id, null).slice(1)] as const]
      : [],
  ),
  ["workflow_job", (id: number) => `actions/jobs/${id}`],
  ["workflow_run", (id: number) => `actions/runs/${id}`],
]);
