import { prow, releasePlease, renovate, semanticRelease } from "./bots.ts";
import { backstage, devlake, grafana, kodiak, perceval, policyBot } from "./dashboards.ts";
import type { ClientDocument } from "./document.ts";
import { gh } from "./gh.ts";
import { ghDash } from "./gh-dash.ts";
import { jira } from "./jira.ts";
import { mcp } from "./mcp.ts";

/** What public clients send: each document is written anew from the fields that its tool asks for. */
export const clientDocuments: readonly ClientDocument[] = [
  ...gh,
  ...ghDash,
  ...renovate,
  ...prow,
  ...releasePlease,
  ...semanticRelease,
  ...backstage,
  ...devlake,
  ...grafana,
  ...policyBot,
  ...kodiak,
  ...jira,
  ...mcp,
  ...perceval,
];
