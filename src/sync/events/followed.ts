import { MIRROR_PARTS, type MirrorPart } from "../../config/parts.ts";
import { resources } from "../../kinds/registry.ts";
import { FOLLOWED_ALWAYS, type FollowedEvent, type FurtherReading, readingOf } from "./events.ts";
import { FOLLOWED_FOR_PARTS } from "./part-events.ts";

const FURTHER: ReadonlyMap<string, FurtherReading> = new Map([
  ...resources.flatMap(({ events }) => (events ? [[events.event, {}] as const] : [])),
  ...Object.entries({ ...FOLLOWED_ALWAYS, ...FOLLOWED_FOR_PARTS }),
]);

/** The events that the mirror follows. A delivery names its event as it likes, so the table has no inherited names. */
export const FOLLOWED_EVENTS: ReadonlyMap<string, FollowedEvent> = new Map(
  [...FURTHER].map(([event, { parts = [], own = [], observe, ...further }]) => {
    const ofKind = readingOf(event);
    return [
      event,
      {
        ...further,
        parts: [...ofKind.parts, ...parts],
        own: [...ofKind.own, ...own],
        observe: (payload, at) => {
          const shown = () => ofKind.observe(payload, at);
          return observe ? observe(payload, at, shown) : shown();
        },
      },
    ];
  }),
);

function eventsWhere(holds: (followed: FollowedEvent) => boolean): string[] {
  return [...FOLLOWED_EVENTS].flatMap(([event, followed]) => (holds(followed) ? [event] : []));
}

/** The events that the mirror reads of every repository. */
export const HOOK_EVENTS: readonly string[] = eventsWhere(({ parts }) => parts.length === 0);

export const LATER_EVENTS: ReadonlySet<string> = new Set(eventsWhere(({ isLate = false }) => isLate));

/** The events that an App has to hear where this part is mirrored. */
export function eventsForApps(part: MirrorPart): readonly string[] {
  return eventsWhere(({ parts }) => parts.includes(part));
}

/** The events that a repository's hook has to send where this part is mirrored. */
export function eventsOfPart(part: MirrorPart): readonly string[] {
  return eventsWhere(({ parts, isOfOrganization = false }) => parts.includes(part) && !isOfOrganization);
}

/** The event is read only where one of these parts is mirrored; none: it is read of every repository. */
export function partsOfEvent(event: string): MirrorPart[] {
  return MIRROR_PARTS.filter((part) => FOLLOWED_EVENTS.get(event)?.parts.includes(part));
}
