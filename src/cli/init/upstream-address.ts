import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import { ONE_REQUEST, OWN_HEADERS, Transport } from "../../upstream/protocol/transport.ts";
import { type Finding, okFinding, problem, upstreamAway } from "../doctor/finding.ts";

/** Whether an API answers at the address. It speaks JSON to strangers too, also where it only refuses them. */
export async function upstreamAddressFinding(upstreamUrl: string): Promise<Finding> {
  const todo = "Write https://api.github.com, or https://HOST/api/v3 for an enterprise server";
  const transport = new Transport(upstreamUrl, ONE_REQUEST);
  try {
    // It costs no quota.
    const { status, text } = await transport.send({ method: "GET", path: "/rate_limit", headers: OWN_HEADERS });
    if (isJson(text)) return okFinding("upstream", `An API answers at ${upstreamUrl}`);
    return problem("upstream-away", `${upstreamUrl} is no API's address: it answers ${status}, and not in JSON`, todo);
  } catch (error) {
    if (!(error instanceof UpstreamUnavailableError)) throw error;
    return upstreamAway(`${upstreamUrl} does not answer`, error, todo);
  } finally {
    await transport.close(1_000);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
