import { Readable } from "node:stream";
import type { Context } from "../../context.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import type { Opened } from "../../upstream/protocol/opened.ts";
import { ApiFault, REST_DOCS } from "../dialect/fault.ts";

// Questions of Apps about themselves go to upstream: the answers are about no account here, and hold tokens.

/** What takes an App's JWT. GitHub docs, "Endpoints available for GitHub App …". */
const BY_JWT =
  /^\/(app|marketplace_listing|(orgs|organizations|users|user|enterprises|repositories)\/[^/]+\/installation|repos\/[^/]+\/[^/]+\/installation)(\/|$)/;
/** What an installation asks about itself, by its own token. */
const BY_INSTALLATION = /^\/installation(\/|$)/;
/** An App's signature, in its compact form (RFC 7515). Tokens have a prefix. */
const JWT = /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/;

/** Whether this is asked as an App, and not as an account. Pure. */
export function isAppsQuestion(path: string, token: string): boolean {
  return isJwt(token) ? BY_JWT.test(path) : BY_INSTALLATION.test(path);
}

/** Whether such questions go to upstream before anything is known of their caller. Pure. */
export function areAppsForwarded(
  config: Pick<Context["config"], "forwardsApps" | "allowedUsers" | "allowedOrganizations">,
): boolean {
  if (config.forwardsApps !== "auto") return config.forwardsApps === "on";
  // A list of accounts cannot be held against a signature that names none.
  return config.allowedUsers.length === 0 && config.allowedOrganizations.length === 0;
}

/** Whether this is an App's signature, which names no account. Pure. */
export function isJwt(token: string): boolean {
  return JWT.test(token);
}

/** The answer to an App's signature where Apps' questions are not forwarded. */
export function appsRefused(): ApiFault {
  const help = "Ask the service itself, or have the mirror's operator set PASS_THROUGH_APPS=on.";
  return new ApiFault(403, `Forbidden: this mirror does not forward what Apps ask about themselves. ${help}`, {
    documentationUrl: REST_DOCS,
  });
}

/** How much of an answer is read to judge it: a refusal is short. */
const MOST_READ_BYTES = 64 * 1024;

/**
 * Whether upstream rejects the credential, and upstream's whole answer. Upstream says "not found" of an unknown App as
 * of any other missing thing, so only the words of the answer tell the two apart.
 * @throws UpstreamUnavailableError when the answer breaks off, or is longer than a refusal
 */
export async function judged(opened: Opened): Promise<{ isRejected: boolean; answer: Opened }> {
  if (opened.status !== 404) return { isRejected: opened.status === 401, answer: opened };
  const read: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of opened.body) {
      read.push(piece);
      size += piece.length;
      if (size > MOST_READ_BYTES) throw new Error("it is too long for a refusal");
    }
  } catch (cause) {
    throw new UpstreamUnavailableError("Upstream's refusal cannot be read", "unreadable", { status: 404, cause });
  }
  const answer = { ...opened, body: Readable.from(read) };
  return { isRejected: /"Integration not found/.test(Buffer.concat(read).toString()), answer };
}
