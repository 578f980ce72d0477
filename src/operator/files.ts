import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { isUnchanged, type Reply } from "../http/reply.ts";
import type { Route } from "../http/router.ts";
import { GUARDS, STYLES } from "./pages.ts";

const FILE_TYPES = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
} as const;

/** The files of the page, below `browser/`. Browsers run the modules as they are. */
const FILES = [
  ...STYLES,
  "icon.svg",
  "page.js",
  "api.js",
  "audits.js",
  "browse.js",
  "browse-asking.js",
  "browse-lists.js",
  "browse-one.js",
  "browse-origin.js",
  "browse-sql.js",
  "chart.js",
  "commands.js",
  "deliveries.js",
  "delivery-way.js",
  "doctor.js",
  "dom.js",
  "fleet.js",
  "health.js",
  "home.js",
  "hooks.js",
  "plot.js",
  "queues.js",
  "quota.js",
  "table.js",
  "targets.js",
  "tokens.js",
  "words.js",
  "writes.js",
] as const;

interface File {
  body: Buffer;
  type: string;
  tag: string;
}

/** Serves the page's files to anybody, because they contain nothing about this instance. */
export function files(): Route {
  const known = new Map<string, File>(FILES.map((name) => [name, loadFile(name)]));
  return {
    method: "GET",
    path: "/-/files/:name",
    handle: ({ headers }, { params: { name = "" } }) => {
      const file = known.get(name);
      if (!file) return { status: 404, headers: { "Content-Type": "text/plain", ...GUARDS }, body: "Not found\n" };
      return withTag(file.tag, headers["if-none-match"], {
        status: 200,
        headers: { ...GUARDS, "Content-Type": file.type, "Cache-Control": "no-cache", Vary: "Accept-Encoding" },
        body: file.body,
        isEncodable: true,
      });
    },
  };
}

function loadFile(name: (typeof FILES)[number]): File {
  const body = readFileSync(new URL(`browser/${name}`, import.meta.url));
  // Each name in `FILES` ends in one of these three extensions.
  const type = FILE_TYPES[name.slice(name.lastIndexOf(".") + 1) as keyof typeof FILE_TYPES];
  return { body, type, tag: fileTagOf(body) };
}

/** The ETag of an answer. It is weak, because a body may be sent in several encodings. */
export function fileTagOf(body: string | Buffer): string {
  return `W/"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
}

/** The reply, or a 304 if the caller has the same version already. */
export function withTag(
  tag: string,
  known: string | undefined,
  reply: Omit<Reply, "headers"> & { headers: Record<string, string> },
): Reply {
  const headers = { ...reply.headers, ETag: tag };
  if (!isUnchanged({ ETag: tag }, { "if-none-match": known })) return { ...reply, headers };
  return { status: 304, headers, body: null };
}
