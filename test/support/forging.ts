import { randomUUID } from "node:crypto";
import { sign } from "@octokit/webhooks-methods";
import { expect } from "vitest";
import { sql } from "../../db/sql.ts";
import type { TestWorld } from "./world.ts";

/**
 * Sends a delivery as somebody who has a secret, but is not upstream. Answers what became of the delivery once it is
 * settled.
 * @param payload or the whole body
 * @param headers beside the usual ones
 */
export async function forge(
  world: Pick<TestWorld, "ctx" | "url" | "settle">,
  event: string,
  payload: object | string,
  { secret = world.ctx.config.webhookSecrets[0] ?? "", headers = {} }: { secret?: string; headers?: object } = {},
): Promise<{ status: string; reason: string | null } | undefined> {
  const body = typeof payload === "string" ? payload : JSON.stringify(payload);
  const guid = randomUUID();
  const answer = await fetch(`${world.url}/webhooks`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-github-event": event,
      "x-github-delivery": guid,
      "x-hub-signature-256": await sign(secret, body),
      ...headers,
    },
    body,
  });
  expect(answer.status).toBe(202);
  await world.settle();
  const [row] = await world.ctx.db.query<{ status: string; reason: string | null }>(
    sql`select status, reason from deliveries where guid = ${guid}`,
  );
  return row;
}
