// A part of `npm run verify`: whether the registry knows of faults in the packages that run in production.
import { CHECKOUT } from "./checkout.mjs";
import { run } from "./processes.mjs";
import { say } from "./voice.mjs";

/** What npm audit says, as JSON. `npm` is given by tests. */
export async function advisories(npm = "npm") {
  const { stdout, stderr } = await run(npm, ["audit", "--json", "--omit=dev"], { cwd: CHECKOUT });
  const { code, lines } = verdict(stdout || stderr);
  for (const line of lines) say(line);
  return code;
}

/**
 * Pure. A registry that answers no question about advisories proves nothing, and fails nothing: mirrors of the npm registry
 * often do not offer it. The line says that nobody was asked.
 * @param {string} answer
 * @returns {{ code: number, lines: string[] }}
 */
export function verdict(answer) {
  /** @type {{ metadata?: { vulnerabilities?: { total?: number } }, vulnerabilities?: Record<string, { severity?: string, range?: string }>, message?: string }} */
  let report;
  try {
    report = JSON.parse(answer);
  } catch {
    return { code: 0, lines: ["advisories were not asked for: npm audit gave no JSON"] };
  }
  const total = report.metadata?.vulnerabilities?.total;
  if (total === undefined)
    return { code: 0, lines: [`advisories were not asked for: ${report.message ?? "the registry gave no report"}`] };
  const faults = Object.entries(report.vulnerabilities ?? {}).map(
    ([name, { severity, range }]) => `${name} ${range}: ${severity}; see npm audit`,
  );
  return total === 0 ? { code: 0, lines: [] } : { code: 1, lines: faults };
}
