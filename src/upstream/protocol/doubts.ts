/** With this word in `Prefer`, a refresh asks an upstream mirror for its doubts; `doubtHeaders` answers. */
export const SETTLED = "settled";

/** A mirror sends this header while it cannot answer yet. The header says nothing about the credential. */
export const NOT_YET = "X-Tain-Not-Yet";

/** Whether an answer says "not yet". Pure. */
export function isNotYet(headers: Readonly<Record<string, unknown>>): boolean {
  return headers["x-tain-not-yet"] !== undefined;
}

/** The resources that upstream, a mirror itself, is not certain of at the moment; "all": too many to name. */
export type Doubts = ReadonlySet<string> | "all";

/** Undefined: upstream is no mirror. Pure. */
export function doubtsIn(headers: Readonly<Record<string, unknown>>): Doubts | undefined {
  const header = headers["x-tain-in-doubt"];
  if (header === undefined) return undefined;
  const text = String(header);
  return text === "*" ? "all" : new Set(text.split(" "));
}

/** Whether the resource is among the doubts. A doubt about one side of a pull request covers both. Pure. */
export function isDoubtful(
  doubts: Doubts | undefined,
  { kind, repositoryId, key }: { kind: string; repositoryId: number; key: number },
): boolean {
  if (doubts === undefined || doubts === "all") return doubts === "all";
  const kinds = kind === "issue" || kind === "pull_request" ? ["issue", "pull_request"] : [kind];
  return kinds.some((one) => doubts.has(`${repositoryId}/${one}/${key}`));
}
