import { wholeReasonOf } from "../../failure.ts";
import { isUnanswered } from "../../upstream/protocol/errors.ts";
import { checkNamedHook } from "../hooks/check.ts";
import type { HookFinding } from "../hooks/diagnosis.ts";
import { findHookNames } from "../hooks/hook-names.ts";
import { reachableAddress } from "../hooks/repository-hooks.ts";
import type { OpenedInstance } from "../terminal/open-instance.ts";
import { type Finding, firstNames, okFinding, problem, warning } from "./finding.ts";

/** How many hooks are checked, at two requests each. `tain hooks check` checks all. */
export const CHECKED_HOOKS = 20;

/** Whether deliveries reach us: our hooks of the first repositories, and the App's. */
export async function examineHooks(opened: OpenedInstance): Promise<Finding[]> {
  const { ctx } = opened;
  const address = await reachableAddress(opened);
  if (address === null)
    return [
      warning(
        "hook-address",
        "Upstream knows no address of ours (or no WEBHOOK_SECRET is set here): changes are found by catch-up only, deletions not at all",
        "Set PUBLIC_URL and WEBHOOK_SECRET, then `tain hooks register`",
      ),
    ];
  const names = await findHookNames(ctx, []);
  const checked = names.slice(0, CHECKED_HOOKS);
  const byKind = new Map<string, { level: "warning" | "problem"; says: string; names: string[] }>();
  let well = 0;
  for (const name of checked) {
    let findings: HookFinding[];
    try {
      ({ findings } = await checkNamedHook(ctx, name, address));
    } catch (error) {
      if (!isUnanswered(error)) throw error;
      return [warning("hook", `The hooks cannot be checked: ${wholeReasonOf(error)}`, "Ask again later")];
    }
    if (findings.length === 0) well += 1;
    for (const { kind, level, says } of findings) {
      const group = byKind.get(kind) ?? { level, says, names: [] };
      group.names.push(name);
      byKind.set(kind, group);
    }
  }
  const found = [...byKind.values()].map(({ level, says, names: concerned }): Finding => {
    const text = `${firstNames(concerned)}: ${says}`;
    const todo = "`tain hooks check` says what to do; `tain hooks register` mends most of it";
    return level === "problem" ? problem("hook", text, todo) : warning("hook", text, todo);
  });
  const of = names.length > checked.length ? `the first ${checked.length} of ${names.length}` : String(names.length);
  return [...found, ...(well > 0 ? [okFinding("hooks", `Well: ${well} of ${of}`)] : [])];
}
