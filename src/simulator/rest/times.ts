import { Refusal } from "../world/refusal.ts";

/**
 * A time of ISO 8601 in milliseconds; without a zone it counts as UTC.
 * Public reports of 2020 and 2026 show these words for other texts, such as lampepfl/bench pull request 581.
 */
export function timeOf(name: string, text: string): number {
  const isIso = /^\d{4}-\d\d-\d\d/.test(text);
  const hasZone = !text.includes(":") || /(Z|[+ -]\d\d:?\d\d)$/i.test(text);
  const at = Date.parse(hasZone ? text.replace(/ (\d\d:?\d\d)$/, "+$1") : `${text}Z`);
  if (isIso && !Number.isNaN(at)) return at;
  throw new Refusal(422, `The ${name} parameter needs to be in ISO 8601 format: YYYY-MM-DDTHH:MM:SSZ`);
}
