import { numberOf, objectOf, textOf } from "../../json.ts";
import { failureOf } from "../protocol/answer.ts";
import { UpstreamRefusedError } from "../protocol/errors.ts";
import { ONE_REQUEST, OWN_HEADERS, Transport } from "../protocol/transport.ts";

/** A GitHub App that has just been made, with the secrets that upstream shows only once. */
export interface NewApp {
  id: number;
  slug: string;
  /** The App's page. */
  htmlUrl: string;
  owner: string;
  /** PEM. */
  privateKey: string;
  /** Null: the App has no webhook. */
  webhookSecret: string | null;
}

/**
 * Exchanges the code from upstream's page for the App and its secrets. Upstream asks for no other credential.
 * @throws UpstreamUnavailableError, UpstreamRefusedError
 */
export async function convertManifest(upstreamUrl: string, code: string): Promise<NewApp> {
  const transport = new Transport(upstreamUrl, ONE_REQUEST);
  try {
    const path = `/app-manifests/${encodeURIComponent(code)}/conversions`;
    const received = await transport.send({ method: "POST", path, headers: OWN_HEADERS, body: "" });
    if (received.status === 404)
      throw new UpstreamRefusedError(404, "Upstream does not know this code: it holds once, for an hour", null);
    // The path contains the code, which is secret until it expires.
    if (received.status !== 201) throw failureOf("/app-manifests/…/conversions", received);
    const app = objectOf(JSON.parse(received.text));
    const id = numberOf(app.id);
    const privateKey = textOf(app.pem);
    if (id === null || privateKey === null)
      throw new UpstreamRefusedError(201, "Upstream's answer holds no App with a key", null);
    return {
      id,
      slug: textOf(app.slug) ?? String(id),
      htmlUrl: textOf(app.html_url) ?? "",
      owner: textOf(objectOf(app.owner).login) ?? "?",
      privateKey,
      webhookSecret: textOf(app.webhook_secret),
    };
  } finally {
    await transport.close(1_000);
  }
}
