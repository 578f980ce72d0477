import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type GraphQLSchema, isIntrospectionType, isSpecifiedScalarType, printType } from "graphql";
import type { Config } from "../../config.ts";
import { escapedHtml } from "../../http/html.ts";
import { type Description, elsewhere, TOKENS } from "./document.ts";
import { inline } from "./prose.ts";
import { dereferenced, type Parameter, type PublishedOperation, type Schema } from "./published.ts";

const STYLE = readFileSync(new URL("./page.css", import.meta.url), "utf8");

/** The page's policy: the page loads nothing and runs nothing. Its only style is allowed by hash. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

type PageSettings = Pick<
  Config,
  | "authMode"
  | "forwarding"
  | "rateLimitUser"
  | "rateLimitAnonymous"
  | "rateLimitGraphql"
  | "rateLimitSearchUser"
  | "rateLimitSearchAnonymous"
>;

/**
 * One page of HTML for people: the description, and GraphQL's schema. Pure. It comes in pieces, and each takes a few
 * milliseconds to make.
 */
export function* descriptionPage(
  description: Description,
  schema: GraphQLSchema,
  { api, gh, ...settings }: { api: string; gh: string } & PageSettings,
): Iterable<string> {
  const { info } = description;
  const groups = tagGroups(description);
  const contents = [
    ["use", "Point a client at it"],
    ["callers", "Who is asking"],
    ["answers", "How it answers"],
    ...groups.map(({ tag, operations }) => [`rest-${tag}`, `REST: ${tag} (${operations.length})`]),
    ["graphql", "GraphQL"],
  ];
  yield `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapedHtml(info.title)}: what is served</title>
<style>${STYLE}</style>
</head>
<body>
<nav aria-label="Contents">
<p class="name">${escapedHtml(info.title)} <small>${escapedHtml(info.version)}</small></p>
<ul>
${contents.map(([id = "", title = ""]) => `<li><a href="#${escapedHtml(id)}">${escapedHtml(title)}</a></li>`).join("\n")}
</ul>
<p><a href="${escapedHtml(api)}/-/openapi.json">openapi.json</a></p>
</nav>
<main>
<h1>What this mirror serves</h1>
<p class="lead">${escapedHtml(info.summary)}</p>
${use(api, gh)}
${callers(settings)}
${answers(settings)}
`;
  for (const group of groups) yield* restGroup(group, description);
  yield* graphql(schema);
  yield `
</main>
</body>
</html>
`;
}

function use(api: string, gh: string): string {
  return `<section id="use">
<h2>Point a client at it</h2>
<p>Change the address that a client of the service uses to <code>${escapedHtml(api)}</code>, and show a token.</p>
<h3>curl</h3>
${code(`curl -H "Authorization: Bearer $TOKEN" "${api}/user/repos?per_page=5"`)}
<h3>octokit</h3>
${code(`const octokit = new Octokit({ baseUrl: "${api}", auth: process.env.TOKEN });
const issues = await octokit.paginate("GET /repos/{owner}/{repo}/issues", { owner, repo });`)}
<h3>gh</h3>
${code(`${gh} gh issue list -R OWNER/NAME`)}
<p class="note"><code>gh</code> takes a host without a path and speaks HTTPS to it (plain HTTP to <code>github.localhost</code> alone, to which this mirror is the proxy). Clients of an enterprise server find REST at <code>${escapedHtml(api)}/api/v3</code> and GraphQL at <code>${escapedHtml(api)}/api/graphql</code>.</p>
<h3>GraphQL</h3>
${code(`curl -H "Authorization: Bearer $TOKEN" ${api}/graphql \\
  -d '{"query":"{ viewer { login } rateLimit { remaining } }"}'`)}
</section>`;
}

function callers({ authMode, ...limits }: PageSettings): string {
  const limit = (most: number, unit: string) => (most === 0 ? "no limit" : `${most.toLocaleString("en")} ${unit}`);
  const [hourly, minutely, points] = ["requests an hour", "a minute", "points an hour"];
  return `<section id="callers">
<h2>Who is asking</h2>
<p>Send <code>Authorization: Bearer TOKEN</code>, <code>Authorization: token TOKEN</code>, or Basic with the token as the password.
${inline(TOKENS[authMode])}</p>
<p>Without a token only public repositories are seen, and GraphQL not at all. What you may not see answers as what does not exist: 404.</p>
<table>
<thead><tr><th scope="col">caller</th><th scope="col">REST</th><th scope="col">searches</th><th scope="col">GraphQL</th></tr></thead>
<tbody>
<tr><td>with a token</td><td>${limit(limits.rateLimitUser, hourly)}</td><td>${limit(limits.rateLimitSearchUser, minutely)}</td><td>${limit(limits.rateLimitGraphql, points)}</td></tr>
<tr><td>without, per address</td><td>${limit(limits.rateLimitAnonymous, hourly)}</td><td>${limit(limits.rateLimitSearchAnonymous, minutely)}</td><td>not served</td></tr>
</tbody>
</table>
<p class="note">A token may have a limit of its own. A 304 to a caller with a token costs nothing, nor does <code>/rate_limit</code>.</p>
</section>`;
}

function answers({ forwarding }: PageSettings): string {
  const rows: [string, string][] = [
    [
      "Lists",
      "`page` and `per_page` (30, at most 100). Follow the `Link` header; it knows the next page, also where pages have no numbers.",
    ],
    ["Unchanged?", "Send `If-None-Match` with the `ETag`, or `If-Modified-Since`: 304 without a body."],
    [
      "How fresh",
      "`X-Tain-Confirmed-At` and `Age` say when the service last confirmed what is shown, `Warning` that it has not for long. With a token, `?fresh=true` or `Cache-Control: no-cache` asks it first.",
    ],
    [
      "Bodies",
      "Raw, or by `Accept: application/vnd.github.html+json` (`text`, `full`) also as HTML and text. Answers travel by brotli or gzip.",
    ],
    [
      "Addresses",
      "Addresses of the API in answers and in `Link` are of this mirror. Those of pages (`html_url`) are the service's.",
    ],
    ["Renamed", "A former name answers 301 (a write: 307) to the repository's id."],
    ["Errors", "`message`, `documentation_url`, `status` and often `errors`, as the service has them."],
    ["Not listed", elsewhere(forwarding)],
  ];
  return `<section id="answers">
<h2>How it answers</h2>
<dl>
${rows.map(([term, about]) => `<dt>${escapedHtml(term)}</dt><dd>${inline(about)}</dd>`).join("\n")}
</dl>
</section>`;
}

interface Group {
  tag: string;
  operations: { method: string; path: string; operation: PublishedOperation }[];
}

function tagGroups({ tags, paths }: Description): Group[] {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter((entry): entry is [string, PublishedOperation] => "operationId" in entry[1])
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  return tags
    .filter(({ name }) => name !== "graphql")
    .map(({ name }) => ({ tag: name, operations: all.filter(({ operation }) => operation.tags[0] === name) }))
    .filter(({ operations }) => operations.length > 0);
}

function* restGroup({ tag, operations }: Group, description: Description): Iterable<string> {
  yield `<section id="rest-${escapedHtml(tag)}">
<h2>REST: ${escapedHtml(tag)}</h2>
`;
  for (const one of operations) yield `${restOperation(one, description)}\n`;
  yield "</section>\n";
}

function restOperation({ method, path, operation }: Group["operations"][number], description: Description): string {
  const { components } = description;
  const parameters = (operation.parameters ?? [])
    .map((parameter) => dereferenced<Parameter>(parameter, components))
    .filter((parameter) => parameter.in !== "header");
  const body = operation.requestBody?.content?.["application/json"]?.schema;
  const successes = Object.entries(operation.responses).filter(([status]) => /^[23]/.test(status));
  const outcomes = successes.map(([status, response]) => {
    const { content = {}, description: about } = dereferenced(response, components);
    const [type, shown] = Object.entries(content)[0] ?? [];
    const what = shown?.schema && /json/.test(type ?? "") ? typeOf(shown.schema) : (type ?? "");
    return `<code>${escapedHtml(status)}</code> ${what || inline(about ?? "")}`;
  });
  const docs = operation.externalDocs?.url;
  return `<details id="${escapedHtml(anchorOf(operation.operationId))}">
<summary><span class="method ${method.toLowerCase()}">${method}</span> <code class="path">${pathHtml(path)}</code> <span class="about">${inline(operation.summary)}</span></summary>
${operation.description ? `<p>${inline(operation.description)}</p>` : ""}
${tableHtml(
  "Parameters",
  parameters.map((one) => ({ ...one, where: one.in, isRequired: one.required === true })),
)}
${body ? tableHtml("Body", bodyRows(body)) : ""}
<p class="outcomes">Answers ${outcomes.join(", ")}.${docs ? ` <a href="${escapedHtml(docs)}" rel="noreferrer">The service's page</a>` : ""}</p>
</details>`;
}

interface TableRow {
  name: string;
  where: string;
  isRequired: boolean;
  description?: string;
  schema: Schema;
}

function bodyRows(schema: Schema): TableRow[] {
  const [variant] = [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(({ properties }) => properties);
  return Object.entries(variant?.properties ?? {}).map(([name, property]) => ({
    name,
    where: "body",
    isRequired: variant?.required?.includes(name) ?? false,
    ...(property.description === undefined ? {} : { description: property.description }),
    schema: property,
  }));
}

function tableHtml(caption: string, rows: TableRow[]): string {
  if (rows.length === 0) return "";
  const cells = rows.map(({ name, where, isRequired, description = "", schema }) => {
    const values = (schema.enum ?? schema.items?.enum ?? []).map(
      (value) => `<code>${escapedHtml(String(value))}</code>`,
    );
    const bounds = [
      values.length > 0 ? `One of ${values.join(", ")}.` : "",
      schema.default === undefined ? "" : `Default: <code>${escapedHtml(String(schema.default))}</code>.`,
    ];
    return `<tr><th scope="row"><code>${escapedHtml(name)}</code>${isRequired ? ' <span class="required">required</span>' : ""}</th><td>${escapedHtml(where)}</td><td>${typeOf(schema)}</td><td>${[inline(description), ...bounds].filter(Boolean).join(" ")}</td></tr>`;
  });
  return `<table>
<caption>${caption}</caption>
<thead><tr><th scope="col">name</th><th scope="col">in</th><th scope="col">type</th><th scope="col">what it is</th></tr></thead>
<tbody>
${cells.join("\n")}
</tbody>
</table>`;
}

/** Describes a schema in a few words: by its name, if it has one. */
function typeOf(schema: Schema): string {
  if (schema.$ref) return `<code>${escapedHtml(schema.$ref.split("/").at(-1) ?? "")}</code>`;
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants) return [...new Set(variants.map(typeOf))].join(" or ");
  if (schema.items) return `list of ${typeOf(schema.items)}`;
  return escapedHtml([schema.type ?? "any"].flat().join(" or "));
}

/** A path that may be broken into lines behind each slash. */
function pathHtml(path: string): string {
  return escapedHtml(path)
    .replaceAll("/", "/<wbr>")
    .replace(/\{\w+\}/g, "<var>$&</var>");
}

/** The id of an operation's element: `issues-list-for-repo` for `issues/list-for-repo`. */
function anchorOf(operationId: string): string {
  return operationId.replace(/[^\w-]+/g, "-");
}

function* graphql(schema: GraphQLSchema): Iterable<string> {
  const types = Object.values(schema.getTypeMap()).filter(
    (type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type),
  );
  const roots = ["Query", "Mutation", "Subscription"];
  const shown = (type: (typeof types)[number], isOpen: boolean) =>
    `<details id="type-${escapedHtml(type.name)}"${isOpen ? " open" : ""}>
<summary><code class="path">${escapedHtml(type.name)}</code></summary>
${code(printType(type))}
</details>
`;
  const others = types.filter(({ name }) => !roots.includes(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
  yield `<section id="graphql">
<h2>GraphQL</h2>
<p><code>POST /graphql</code> with <code>query</code>, <code>variables</code> and <code>operationName</code>: a strict subset of the
service's schema, so whatever runs here runs there. It needs a token, costs points by the service's formula (ask
<code>rateLimit</code>), and says everything of itself by introspection. Subscriptions are server-sent events
(<code>Accept: text/event-stream</code>) and experimental; the service has none.</p>
`;
  for (const type of types) if (roots.includes(type.name)) yield shown(type, true);
  yield "<h3>Types</h3>\n";
  for (const type of others) yield shown(type, false);
  yield "</section>";
}

function code(text: string): string {
  return `<pre tabindex="0"><code>${escapedHtml(text)}</code></pre>`;
}
