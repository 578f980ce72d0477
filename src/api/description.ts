import { readFileSync } from "node:fs";
import { version } from "../operations/version.ts";
import type { Route } from "./router.ts";

/** What the service's own description says of an operation, as far as ours repeats it. */
export interface Published {
  operationId: string;
  summary: string;
  tag: string;
  parameters: PublishedParameter[];
  /** A JSON schema; absent: the operation takes no body. */
  body?: object;
  /** By status. */
  responses: Record<string, string>;
}

interface PublishedParameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: object;
}

/** By method and path in the service's own form: `GET /repos/{owner}/{repo}`. Out of GitHub's OpenAPI, held equal by a test. */
const published = JSON.parse(readFileSync(new URL("published-operations.json", import.meta.url), "utf8")) as Record<
  string,
  Published
>;

export interface Operation {
  method: string;
  /** `/repos/{owner}/{repo}/issues/{issue_number}` */
  path: string;
  docs: string;
  published: Published | null;
}

/** The routes in the form of the service's description. Pure. */
export function operationsOf(routes: readonly { path: string; route: Route }[]): Operation[] {
  const forms = new Map(
    Object.keys(published).map((key) => [key.replace(/\{[^}]*\}/g, "{}"), key.slice(key.indexOf(" ") + 1)]),
  );
  return routes.map(({ path, route: { method, docs, run } }) => {
    const below = run.of === "repository" ? `/repos/:owner/:repo${path === "/" ? "" : path}` : path;
    const known = forms.get(`${method} ${below.replace(/:\w+/g, "{}")}`);
    return {
      method,
      path: known ?? below.replace(/:(\w+)/g, "{$1}"),
      docs,
      published: known === undefined ? null : (published[`${method} ${known}`] as Published),
    };
  });
}

/** The OpenAPI document of what is served here. */
export function openApiDocument(operations: readonly Operation[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of operations) {
    paths[operation.path] ??= {};
    (paths[operation.path] as Record<string, object>)[operation.method.toLowerCase()] = described(operation);
  }
  return {
    openapi: "3.0.3",
    info: {
      title: "Tain",
      version,
      description:
        "What this mirror serves of the service's REST API. Each operation answers in the service's own form, which the page that it links to describes in full. What is below `/repos/{owner}/{repo}` is also below `/repositories/{id}`. GraphQL is at `/graphql` and describes itself by introspection.",
    },
    servers: [{ url: "/" }, { url: "/api/v3" }],
    security: [{}, { token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: {
        Error: {
          type: "object",
          required: ["message", "documentation_url", "status"],
          properties: {
            message: { type: "string" },
            documentation_url: { type: "string" },
            status: { type: "string" },
            errors: {},
          },
        },
      },
    },
  };
}

function described({ path, docs, published: known }: Operation): object {
  const parameters = known?.parameters ?? [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => pathParameter(name ?? ""));
  const responses = Object.entries(known?.responses ?? { 200: "Response" }).map(([status, description]) => [
    status,
    Number(status) < 400 ? { description } : { description, content: FAULT },
  ]);
  return {
    ...(known ? { operationId: known.operationId, summary: known.summary, tags: [known.tag] } : { tags: ["more"] }),
    externalDocs: { url: docs },
    parameters,
    ...(known?.body ? { requestBody: { content: { "application/json": { schema: known.body } } } } : {}),
    responses: Object.fromEntries(responses),
  };
}

const FAULT = { "application/json": { schema: { $ref: "#/components/schemas/Error" } } };

function pathParameter(name: string): PublishedParameter {
  return { name, in: "path", required: true, schema: { type: "string" } };
}

/** The same for people, on one page that needs nothing from elsewhere. */
export function descriptionPage(operations: readonly Operation[]): string {
  const tags = Map.groupBy(operations, ({ published: known }) => known?.tag ?? "more");
  const sections = [...tags].map(
    ([tag, some]) => `<section><h2 id="${text(tag)}">${text(tag)}</h2>${some.map(operationHtml).join("\n")}</section>`,
  );
  const links = [...tags.keys()].map((tag) => `<a href="#${text(tag)}">${text(tag)}</a>`);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Tain: what is served here</title><style>${STYLE}</style></head>
<body><main><h1>What is served here</h1>
<p>Tain ${text(version)} mirrors repositories, issues and pull requests and serves them as the service itself does. Each
operation links to the service's own page about it. GraphQL is at <code>/graphql</code>; all of this is also below
<code>/api/v3</code>, and what is below a repository also below <code>/repositories/{id}</code>. For machines:
<a href="openapi.json">openapi.json</a>.</p>
<nav>${links.join(" ")}</nav>
${sections.join("\n")}
</main></body></html>
`;
}

function operationHtml({ method, path, docs, published: known }: Operation): string {
  const asked = (known?.parameters ?? []).filter((parameter) => parameter.in === "query");
  const rows = asked.map(({ name, description = "", schema = {} }) => {
    const { default: initial, enum: values } = schema as { default?: unknown; enum?: unknown[] };
    const allowed = values ? values.map((value) => `<code>${text(String(value))}</code>`).join(" ") : "";
    const stands = initial === undefined ? "" : `<code>${text(String(initial))}</code>`;
    return `<tr><th>${text(name)}</th><td>${text(description)}</td><td>${allowed}</td><td>${stands}</td></tr>`;
  });
  const table =
    rows.length > 0
      ? `<table><thead><tr><th>parameter</th><th>is</th><th>one of</th><th>otherwise</th></tr></thead><tbody>${rows.join("")}</tbody></table>`
      : "";
  const body = known?.body ? "<p>Takes a JSON body.</p>" : "";
  return `<details><summary><b class="${text(method.toLowerCase())}">${text(method)}</b> <code>${text(path)}</code> <span>${text(known?.summary ?? "")}</span></summary>
<p><a href="${text(docs)}">The service's page</a></p>${body}${table}</details>`;
}

function text(value: string): string {
  return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; } main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h2 { text-transform: capitalize; border-bottom: 1px solid #8886; } nav { display: flex; flex-wrap: wrap; gap: .75rem; }
details { border: 1px solid #8884; border-radius: .4rem; margin: .4rem 0; padding: .3rem .6rem; }
summary { cursor: pointer; overflow-wrap: anywhere; } summary span { opacity: .75; }
summary b { display: inline-block; min-width: 4rem; } .get { color: #1a7f37; } .post, .put, .patch { color: #9a6700; } .delete { color: #cf222e; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; } th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-top: 1px solid #8884; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
`;

/** Nothing but its own style may be loaded by the page. */
export const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
