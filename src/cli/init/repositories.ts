import type { Context } from "../../context.ts";
import { wholeReasonOf } from "../../failure.ts";
import { isUnanswered, UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { type Finding, firstNames, okFinding, problem, warning } from "../doctor/finding.ts";

/** Whether upstream shows us the repositories of each pattern. Costs a request for each pattern. */
export async function examinePatterns(ctx: Pick<Context, "upstream">, patterns: readonly string[]): Promise<Finding[]> {
  const unseen: string[] = [];
  for (const pattern of patterns) {
    const [owner = "", name = ""] = pattern.split("/");
    try {
      const path = name === "*" ? `/users/${owner}` : `/repos/${owner}/${name}`;
      const answer = await ctx.upstream.get(path, { priority: "caller" });
      if (answer.kind === "missing") unseen.push(pattern);
    } catch (error) {
      if (error instanceof UpstreamRefusedError) unseen.push(`${pattern} (${error.message})`);
      else if (isUnanswered(error))
        return [
          warning(
            "token-sight",
            `It is not known whether upstream shows them: ${wholeReasonOf(error)}`,
            "Ask again later",
          ),
        ];
      else throw error;
    }
  }
  if (unseen.length > 0)
    return [
      problem("token-sight", `Upstream does not show ${firstNames(unseen)}`, "Mend the names, or the token's access"),
    ];
  return [okFinding("repositories", `Upstream shows ${firstNames(patterns)}`)];
}
