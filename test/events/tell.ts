import { randomUUID } from "node:crypto";
import { sign } from "@octokit/webhooks-methods";
import { hookSecret } from "../../src/config/hook-secrets.ts";
import type { Context } from "../../src/context.ts";

export interface ToldRepository {
  id: number;
  full_name: string;
  owner: { id: number };
}

/** Sends the mirror a webhook as upstream would, signed with the repository's own secret; answers its GUID. */
export async function tell(
  { ctx, url }: { ctx: Context; url: string },
  {
    event,
    payload,
    guid = randomUUID(),
    hookId = 1,
    headers = {},
  }: { event: string; payload: object; guid?: string; hookId?: number; headers?: Record<string, string> },
): Promise<string> {
  const { repository } = payload as { repository: ToldRepository };
  const secret = hookSecret(ctx.config.webhookSecrets[0] ?? "", { type: "repository", id: repository.id });
  const body = JSON.stringify(payload);
  const answer = await fetch(`${url}/webhooks`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "user-agent": "GitHub-Hookshot/test",
      "x-github-event": event,
      "x-github-delivery": guid,
      "x-github-hook-id": String(hookId),
      "x-github-hook-installation-target-id": String(repository.id),
      "x-github-hook-installation-target-type": "repository",
      "x-hub-signature-256": await sign(secret, body),
      ...headers,
    },
    body,
  });
  if (answer.status !== 202) throw new Error(`The receiver answers ${answer.status}: ${await answer.text()}`);
  return guid;
}
