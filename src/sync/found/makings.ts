import type { Fields, Json } from "../../json.ts";
import type { Kind, Report, ResourceEvents, ResourceKey } from "../../kinds/contract/kind.ts";
import { resourceOf } from "../../kinds/registry.ts";

/** An aspect that was found changed: the value that targets know, and the value now. */
export interface Changed {
  aspect: string;
  was: Json;
  now: Json;
}

/** An event to be made: its action, and the aspects that it reports. */
export interface Making {
  action: string;
  /** The aspects that the event reports, with their values. */
  tells: readonly { aspect: string; value: Json }[];
  /** The label, milestone or account that its payload shows beside its subject. */
  beside?: Pick<ResourceKey, "kind" | "key"> & { as: string };
  /** Further keys of its payload. */
  more?: Fields;
}

/** The events for the changes of one resource, in order. Upstream has no event for some changes. Pure. */
export function makingsOf(kind: Kind, changed: readonly Changed[]): Making[] {
  const { events } = resourceOf(kind);
  if (!events) return [];
  const existence = changed.find(({ aspect }) => aspect === "exists");
  if (!existence) return [...edited(events, changed), ...changed.flatMap((one) => changedAlone(events, one))];
  const since = existence.now === true ? changed.filter((one) => isToldSinceBirth(events, one)) : [];
  return [...born(events, existence), ...since.flatMap((one) => changedAlone(events, one))];
}

/** A new resource that is already closed also gets a `closed` event, for listeners to that action. */
function isToldSinceBirth({ toldSinceBirth }: ResourceEvents, { aspect, now }: Changed): boolean {
  return toldSinceBirth === "each" || (toldSinceBirth === "closing" && aspect === "state" && now === "closed");
}

/** The event of a resource that is new or gone, if upstream sends one. */
function born({ actions }: ResourceEvents, { now }: Changed): Making[] {
  const action = actionOf(actions, (report) => "exists" in report && report.exists === (now === true));
  return action === null ? [] : [{ action, tells: [{ aspect: "exists", value: now }] }];
}

function actionOf(actions: ResourceEvents["actions"], reports: (report: Report) => boolean): string | null {
  return Object.entries(actions).find(([, report]) => reports(report))?.[0] ?? null;
}

/** One event for all changes of texts, which have no actions of their own. */
function edited({ actions, fields, former }: ResourceEvents, changed: readonly Changed[]): Making[] {
  const action = actionOf(actions, (report) => "changes" in report);
  const texts = changed.filter(
    ({ aspect }) =>
      Object.hasOwn(fields, aspect) &&
      actionOf(actions, (report) => "field" in report && report.field === aspect) === null,
  );
  if (action === null || texts.length === 0) return [];
  const changes = Object.fromEntries(texts.map(({ aspect, was }) => [aspect, former(aspect, was)]));
  return [{ action, tells: texts.map(({ aspect, now }) => ({ aspect, value: now })), more: { changes } }];
}

/** The events of a change that has an action of its own. */
function changedAlone({ actions, lists, more }: ResourceEvents, { aspect, was, now }: Changed): Making[] {
  const telling = (action: string | null, value: Json, beside?: Making["beside"]): Making[] =>
    action === null
      ? []
      : [{ action, tells: [{ aspect, value }], ...(beside && { beside }), ...withMore(more?.(action, was, now)) }];
  const [name = "", id] = aspect.split(" ");
  const list = Object.values(lists).find(({ member }) => member === name);
  if (list) {
    const action = actionOf(
      actions,
      (one) => "member" in one && one.member === name && one.isMember === (now === true),
    );
    return telling(action, now, { kind: list.kind, key: Number(id), as: name });
  }
  const sets = (value: Json) =>
    actionOf(actions, (one) => "field" in one && one.field === aspect && "value" in one && one.value === value);
  const [refers, report] = Object.entries(actions).find(([, one]) => "beside" in one && one.field === aspect) ?? [];
  if (refers === undefined || report === undefined || !("beside" in report))
    return telling(sets(now) ?? actionOf(actions, (one) => "isShown" in one && one.field === aspect), now);
  // A reference is taken away before another one takes its place.
  const referring = (action: string | null, key: Json, value: Json) =>
    typeof key === "number" ? telling(action, value, { kind: report.beside, key, as: aspect }) : [];
  return [...referring(sets(null), was, null), ...referring(refers, now, now)];
}

function withMore(more: Fields | undefined): Pick<Making, "more"> {
  return more && Object.keys(more).length > 0 ? { more } : {};
}
