/**
 * The rights to what belongs to commits: check runs and suites, commit statuses, code with releases, deployments, and
 * Actions. Each is called as the service's permission is (GitHub docs, "Permissions required for fine-grained personal access tokens").
 */
export const CODE_RIGHTS = ["checks", "statuses", "contents", "deployments", "actions"] as const;
export type CodeRight = (typeof CODE_RIGHTS)[number];

/**
 * The rights that a token may have in a repository: to the repository itself, its issues, its pull requests, and what
 * belongs to its commits. Labels, milestones and assignable people need either issues or pull requests.
 */
export type Right = "metadata" | "issues" | "pulls" | "issues or pulls" | CodeRight;

export function isCodeRight(right: string): right is CodeRight {
  const all: readonly string[] = CODE_RIGHTS;
  return all.includes(right);
}

/** The same for each right to code. */
export function forCode<Value>(value: (right: CodeRight) => Value): Readonly<Record<CodeRight, Value>> {
  const entries = CODE_RIGHTS.map((right): [CodeRight, Value] => [right, value(right)]);
  return Object.fromEntries(entries) as Record<CodeRight, Value>;
}
