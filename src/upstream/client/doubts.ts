/** By `Prefer` a refresh asks a mirror what is in doubt there: `doubtHeaders` answers it. */
export const SETTLED = "settled";

/** By this header a mirror says that it cannot answer yet, be it that it has not read it. It says nothing of the credential. */
export const NOT_YET = "X-Tain-Not-Yet";

/** Pure. */
export function isNotYet(headers: Readonly<Record<string, unknown>>): boolean {
  return headers["x-tain-not-yet"] !== undefined;
}

/** What upstream, a mirror itself, does not know for certain at the time; "all": too much to be told. */
export type Doubts = ReadonlySet<string> | "all";

/** Undefined: upstream is no mirror. Pure. */
export function doubtsIn(headers: Readonly<Record<string, unknown>>): Doubts | undefined {
  const header = headers["x-tain-in-doubt"];
  if (header === undefined) return undefined;
  const text = String(header);
  return text === "*" ? "all" : new Set(text.split(" "));
}

/** A pull request's two sides are one thing. Pure. */
export function isDoubtful(
  doubts: Doubts | undefined,
  { kind, repositoryId, key }: { kind: string; repositoryId: number; key: number },
): boolean {
  if (doubts === undefined || doubts === "all") return doubts === "all";
  const kinds = kind === "issue" || kind === "pull_request" ? ["issue", "pull_request"] : [kind];
  return kinds.some((one) => doubts.has(`${repositoryId}/${one}/${key}`));
}
