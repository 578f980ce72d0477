import type { Config } from "../../config.ts";
import type { Context } from "../../context.ts";
import { rootReasonOf } from "../../failure.ts";
import { Waits } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { CommandError } from "../terminal/command.ts";
import { JsonObject } from "../terminal/json.ts";

/** @throws CommandError that says what is missing, if the process does not become ready in time */
export async function untilReady(
  { random }: Pick<Context, "random">,
  { apiUrl, operatorToken, signal }: Pick<Config, "operatorToken"> & { apiUrl: string; signal: AbortSignal },
): Promise<void> {
  const waits = new Waits({ policy: RETRIES.apiReady, random, signal });
  let lacking: string | null;
  do {
    signal.throwIfAborted();
    lacking = await lackingAt(apiUrl, operatorToken);
    if (lacking === null) return;
  } while (await waits.next());
  throw new CommandError(`The API is not ready after ${RETRIES.apiReady.withinMs / 1_000} s: ${lacking}`);
}

/** What the API lacks, in words. Null: it is ready. */
export async function lackingAt(apiUrl: string, operatorToken: Config["operatorToken"]): Promise<string | null> {
  const headers = { authorization: `Bearer ${operatorToken}` };
  // Only a request shows whether the process listens.
  const answer = await fetch(`${apiUrl}/-/ready`, { headers, signal: AbortSignal.timeout(3_000) }).catch(
    (error: Error) => error,
  );
  if (!(answer instanceof Response)) return `no answer (${rootReasonOf(answer)})`;
  if (answer.ok) return null;
  const text = await answer.text();
  return answer.status === 503 ? JsonObject.parse(text).strings("missing").join("; ") : `status ${answer.status}`;
}

/** The address for callers on this machine. */
export function localAddress({ host, port }: Pick<Config, "host" | "port">): string {
  const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}
