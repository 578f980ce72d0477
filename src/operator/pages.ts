import { escapedHtml } from "../http/html.ts";
import type { Reply } from "../http/reply.ts";
import { VERSION } from "../version.ts";

/**
 * The browser loads scripts, styles and data only from this host, runs no inline scripts, and shows the page in no
 * frame.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The page's style sheets, in the order in which they apply. */
export const STYLES = [
  "page.css",
  "forms.css",
  "tables.css",
  "plot.css",
  "dialogs.css",
  "browse.css",
  "phone.css",
] as const;

/**
 * Headers of all answers of the page. Referrers are allowed to this host, because without one the browser would send no
 * origin with a POST.
 */
export const GUARDS = {
  "Content-Security-Policy": POLICY,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
} as const;

/** How the pages begin that show the mirror. The caller ends the header. */
const top = (upstream: string) => `<a class="skip" href="#main">Skip to the content</a>
<header class="top">
  <p class="brand"><span class="mark" aria-hidden="true"></span>Tain <span class="muted">${escapedHtml(VERSION)}</span></p>
  <p class="upstream muted">mirrors ${escapedHtml(upstream)}</p>`;

/** The page of a signed-in operator. Its script loads everything else. `word`: see `Session`. */
export function shell({ word, upstream }: { word: string; upstream: string }): Reply {
  return html(
    200,
    "Tain",
    `${top(upstream)}
  <p id="live" class="live muted">Loading …</p>
  <a href="/-/browse">Browse</a>
  <form method="post" action="/-/session/end"><input type="hidden" name="word" value="${escapedHtml(word)}"><button class="quiet">Sign out</button></form>
</header>
<section id="health" class="health" role="status" aria-label="Whether all is well"></section>
<nav class="tabs" aria-label="Views"><ul id="tabs"></ul></nav>
<main id="main" tabindex="-1"><noscript><p>This page needs JavaScript. <code>tain status</code> shows the same in a terminal.</p></noscript></main>
<div id="said" class="said" role="status" aria-live="polite"></div>`,
    `<meta name="word" content="${escapedHtml(word)}"><script type="module" src="/-/files/page.js"></script>`,
  );
}

/** The page on which the mirror is looked at. Its script asks the API, with the token of who looks. */
export function browsePage({ upstream }: { upstream: string }): Reply {
  return html(
    200,
    "Browse · Tain",
    `${top(upstream)}
  <p class="way"><a id="way" href="#/" hidden>All repositories</a></p>
  <button class="quiet" id="leave" hidden>Forget the token</button>
</header>
<main id="main" tabindex="-1"><noscript><p>This page needs JavaScript. <code>tain sql</code> and the API show the same.</p></noscript></main>
<div id="said" class="said" role="status" aria-live="polite"></div>`,
    '<script type="module" src="/-/files/browse.js"></script>',
  );
}

/** `problem`: why the last attempt failed, in words. */
export function signInPage(status: number, problem: string | null, headers: Record<string, string> = {}): Reply {
  const said = problem === null ? "" : `<p class="problem" id="problem" role="alert">${escapedHtml(problem)}</p>`;
  const described = problem === null ? "hint" : "problem hint";
  return html(
    status,
    "Sign in to Tain",
    `<main class="card sign-in" id="main">
  <h1><span class="mark" aria-hidden="true"></span>Tain</h1>
  <p class="muted">The page of this mirror's operator.</p>
  <form method="post" action="/-/session">
    <label for="token">Operator's token</label>
    <input id="token" name="token" type="password" autocomplete="current-password" required autofocus spellcheck="false" aria-describedby="${described}"${problem === null ? "" : ' aria-invalid="true"'}>
    ${said}
    <p class="hint muted" id="hint">It is the setting <code>OPERATOR_TOKEN</code>. <code>npm start</code> makes one where none is set, and keeps it in <code>.tain/instance.json</code> as <code>operatorToken</code>.</p>
    <button class="primary">Sign in</button>
  </form>
</main>`,
    "",
    headers,
  );
}

/** The page that is shown if OPERATOR_TOKEN is not set, so that nobody can sign in. */
export function unsetPage(): Reply {
  return html(
    403,
    "Tain",
    `<main class="card sign-in" id="main">
  <h1><span class="mark" aria-hidden="true"></span>Tain</h1>
  <p>This page is for the operator, and nobody can sign in yet: <code>OPERATOR_TOKEN</code> is not set.</p>
  <p>Set it to a long random text for every <code>web</code> process, and restart them:</p>
  <pre>OPERATOR_TOKEN=$(openssl rand -hex 24)</pre>
  <p class="muted">Until then <code>tain status</code> shows in a terminal how the mirror stands.</p>
</main>`,
  );
}

/** The page that answers a form which another host's page sent. */
export function refusedPage(status: number, says: string): Reply {
  const body = `<main class="card sign-in" id="main"><h1>Tain</h1><p class="problem">${escapedHtml(says)}</p><p><a href="/-/">To the page</a></p></main>`;
  return html(status, "Tain", body);
}

function html(status: number, title: string, body: string, head = "", headers: Record<string, string> = {}): Reply {
  const text = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${escapedHtml(title)}</title>
<link rel="icon" href="/-/files/icon.svg" type="image/svg+xml">
${STYLES.map((name) => `<link rel="stylesheet" href="/-/files/${name}">`).join("\n")}
${head}
</head>
<body>
${body}
</body>
</html>
`;
  const own = { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" };
  return { status, headers: { ...own, ...GUARDS, ...headers }, body: text };
}
