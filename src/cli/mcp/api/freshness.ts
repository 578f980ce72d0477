import type { Fields } from "../../../json.ts";

/** What the mirror said of one of its answers. */
export interface PartFreshness {
  /** Which part of the tool's answer it is: `issue`, `comments`. */
  part: string;
  /** Whether upstream was asked for it with the caller's token, or in the mirror's name. */
  isForwarded: boolean;
  /** Of a forwarded part: `hit`, if a kept answer was shown and upstream was not asked, `revalidated` or `miss`. */
  cache: string | null;
  /** When upstream last confirmed what is shown, as ISO 8601. Null: the mirror does not say. */
  confirmedAt: string | null;
  /** Null: the mirror does not say. */
  ageSeconds: number | null;
  notConfirmed: readonly string[];
  missing: readonly string[];
  warnings: readonly string[];
  /** Whether only upstream has the whole answer. */
  isPart: boolean;
}

/** Reads the headers that docs/reading.md lists. Pure. */
export function freshnessIn(part: string, headers: Headers): PartFreshness {
  const names = (header: string) => (headers.get(header) ?? "").split(",").flatMap((each) => each.trim() || []);
  const isForwarded = headers.has("x-tain-passed-through");
  const age = headers.get("age");
  return {
    part,
    isForwarded,
    cache: isForwarded ? headers.get("x-cache") : null,
    confirmedAt: headers.get("x-tain-confirmed-at"),
    ageSeconds: age !== null ? Number(age) : isForwarded ? 0 : null,
    notConfirmed: names("x-tain-not-confirmed"),
    missing: names("x-tain-missing"),
    warnings: Array.from((headers.get("warning") ?? "").matchAll(/\d{3} \S+ "([^"]*)"/g), ([, text = ""]) => text),
    isPart: headers.has("x-tain-part"),
  };
}

/**
 * How fresh a tool's answer is, as agents are shown it: as old as its oldest part. What there is nothing to say about is
 * left out. Pure.
 */
export function freshnessOf(answered: readonly PartFreshness[]): Fields {
  // Parts are asked for together, and answered in any order.
  const parts = answered.toSorted((one, other) => one.part.localeCompare(other.part));
  const forwarded = parts.filter(({ isForwarded }) => isForwarded);
  const ours = parts.filter(({ isForwarded }) => !isForwarded);
  const sources = [...(ours.length > 0 ? ["mirror"] : []), ...(forwarded.length > 0 ? ["upstream"] : [])];
  // ISO 8601 in UTC sorts by time.
  const [confirmedAt = null] = ours.flatMap((one) => one.confirmedAt ?? []).sort();
  const ages = parts.flatMap(({ ageSeconds }) => ageSeconds ?? []);
  const all = (name: "notConfirmed" | "missing" | "warnings") => [...new Set(parts.flatMap((one) => one[name]))];
  const lists = { not_confirmed: all("notConfirmed"), missing: all("missing"), warnings: all("warnings") };
  return {
    answered_by: sources.join(" and "),
    confirmed_at: confirmedAt,
    age_seconds: ages.length > 0 ? Math.max(...ages) : null,
    ...(forwarded.length > 0 && { forwarded: forwarded.map(({ part, cache }) => ({ part, cache })) }),
    ...Object.fromEntries(Object.entries(lists).filter(([, texts]) => texts.length > 0)),
    ...(parts.some(({ isPart }) => isPart) && { only_mirrored_repositories: true }),
  };
}
