import { escapedHtml } from "../../http/html.ts";
import { HOOK_EVENTS } from "../../sync/events/followed.ts";
import { NEEDED_PERMISSIONS } from "../hooks/app-diagnosis.ts";

/**
 * The manifest of the App that upstream is asked to make. It has the rights and events that a mirror needs, and no
 * others. Pure.
 */
export function manifestOf({
  name,
  publicUrl,
  homepage,
  redirectUrl,
  mayWrite,
}: {
  name: string;
  /** Null: upstream cannot reach us, and the App has no webhook. */
  publicUrl: string | null;
  /** Upstream requires a homepage. */
  homepage: string;
  redirectUrl: string;
  /** Whether the App also needs rights for callers' writes. */
  mayWrite: boolean;
}): object {
  const levels = NEEDED_PERMISSIONS.map((permission) => [
    permission,
    mayWrite && permission !== "metadata" ? "write" : "read",
  ]);
  return {
    name,
    url: homepage,
    redirect_url: redirectUrl,
    description: "Keeps a mirror of the repositories that it is installed on.",
    public: false,
    default_permissions: Object.fromEntries(levels),
    ...(publicUrl !== null && {
      hook_attributes: { url: `${publicUrl}/webhooks`, active: true },
      default_events: HOOK_EVENTS,
    }),
  };
}

/** Our page: says what will happen, and has the one button that posts the manifest to upstream's page. Pure. */
export function manifestPage({ action, manifest }: { action: string; manifest: object }): string {
  return page(
    "Make a GitHub App for Tain",
    `<p>The button leads to ${escapedHtml(new URL(action).host)}, which shows what the App may do and asks you once more.</p>
    <pre>${escapedHtml(JSON.stringify(manifest, null, 2))}</pre>
    <form method="post" action="${escapedHtml(action)}">
      <input type="hidden" name="manifest" value="${escapedHtml(JSON.stringify(manifest))}">
      <button>Make this App</button>
    </form>`,
  );
}

/** Pure. */
export function page(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>${escapedHtml(title)}</title>
    <style>
      :root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
      body { max-width: 40rem; margin: 3rem auto; padding: 0 1rem; }
      pre { overflow: auto; padding: 1rem; border: 1px solid; }
      button { font: inherit; padding: 0.5rem 1rem; }
    </style>
  </head>
  <body>
    <h1>${escapedHtml(title)}</h1>
    ${content}
  </body>
</html>
`;
}
