import type { Config } from "../../config.ts";
import { VERSION } from "../../version.ts";
import type { ServedOperation } from "../call/operation.ts";
import { API_VERSIONS } from "../dialect/protocol.ts";
import { dereferenced, type Parameter, type Published, type PublishedOperation, wholePath } from "./published.ts";

/** An OpenAPI 3.1 document, as far as we read it. */
export interface Description {
  openapi: "3.1.0";
  info: { title: string; version: string; summary: string; description: string; license: object };
  servers: { url: string; description?: string }[];
  security: object[];
  tags: { name: string; description?: string }[];
  paths: Record<string, Record<string, PublishedOperation | object>>;
  components: Published["components"] & { securitySchemes: object };
}

/** Headers that every answer of REST carries, beside those that are published. */
const HEADERS = {
  "X-RateLimit-Limit": number("Requests an hour; searches a minute. Absent where there is no limit."),
  "X-RateLimit-Remaining": number("How many of them are left."),
  "X-RateLimit-Reset": number("When they are all there again: seconds since 1970, UTC."),
  "X-GitHub-Request-Id": textHeader("Names this request; the mirror's log has it where something failed."),
  "X-Tain-Confirmed-At": textHeader(
    "When upstream last confirmed what is shown. Absent where it never has, and where nothing of upstream's is shown.",
  ),
  "X-Tain-Not-Confirmed": textHeader(
    "What that does not cover: `accounts, comments, reactions`. These are as webhooks, later reads and the last audit showed them.",
  ),
  "X-Tain-Missing": textHeader(
    "The parts of a repository that the mirrored service did not show then, such as `pulls, review comments`. Absent where none is missing.",
  ),
  "X-Tain-Part": textHeader(
    "`mirrored repositories`: the answer shows what lies in these, and the mirrored service may have more. Absent where the answer is whole.",
  ),
  "X-Tain-Hint": textHeader("Explains an error whose body is the mirrored service's own."),
  Age: number("Seconds since then."),
  Warning: textHeader("110: upstream has confirmed nothing for long, or not yet. 111: it could not be asked, and why."),
  ETag: textHeader(
    "Send it as `If-None-Match`: a 304 costs a caller with a token nothing. Absent where the answer may not be kept.",
  ),
};

const PARAMETERS: Readonly<Record<string, Parameter>> = {
  "x-github-api-version": {
    name: "X-GitHub-Api-Version",
    in: "header",
    description: `The version of the dialect. Without it: ${API_VERSIONS[1]}.`,
    schema: { type: "string", enum: [...API_VERSIONS], default: API_VERSIONS[1] },
  },
  fresh: {
    name: "fresh",
    in: "query",
    description:
      "Ask the mirrored service first, as `Cache-Control: no-cache` does. For callers with a token: one of the mirrored service pays for it there, and all others have a share an hour. When it cannot be asked, `Warning` says why.",
    schema: { type: "boolean", default: false },
  },
  "if-none-match": {
    name: "If-None-Match",
    in: "header",
    description: "The `ETag` of the answer that you have. The same answer is then 304 without a body.",
    schema: { type: "string" },
  },
};

/**
 * The API as an OpenAPI document: each route of the router with the service's published description, and GraphQL's
 * address. Pure.
 * @param api the address of the API as the caller wrote it
 * @throws Error for a route that `published` lacks
 */
export function describeApi(
  routes: readonly ServedOperation[],
  { operations, components, source }: Published,
  { api, authMode, forwarding }: { api: string } & Pick<Config, "authMode" | "forwarding">,
): Description {
  const paths: Description["paths"] = {};
  const taken = new Set<string>();
  for (const served of routes) {
    const ours = wholePath(served);
    const known = operations[`${served.route.method} ${ours}`];
    if (!known) throw new Error(`${served.route.method} ${ours} is not in published.json: run extract.ts`);
    const isPublished = pathForm(known.path) === pathForm(ours);
    const path = isPublished ? known.path : ours.replace(/:(\w+)/g, "{$1}");
    const operation = operationOf(known.operation, components, {
      names: isPublished ? null : namesIn(path),
      own: served.route.method === "GET" ? (served.route.run.of === "repository" ? OF_READS : OF_ANSWERS) : OF_WRITES,
    });
    // The same operation at a second address needs a name of its own.
    if (taken.has(operation.operationId)) operation.operationId += ` at ${path}`;
    taken.add(operation.operationId);
    if (served.route.isFree) operation.description = "Costs nothing of the caller's quota.";
    paths[path] = { ...paths[path], [served.route.method.toLowerCase()]: operation };
  }
  paths["/graphql"] = graphqlOperation(api);
  return {
    openapi: "3.1.0",
    info: {
      title: "Tain",
      version: VERSION,
      summary: "A mirror of repositories, issues and pull requests, in the dialect of the service that is mirrored.",
      description: `${introduction(authMode, forwarding)}\n\nParameters and schemas come from ${source}.`,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: api }, { url: `${api}/api/v3`, description: "The same, for clients of an enterprise server" }],
    security: [{}, { bearer: [] }, { basic: [] }],
    tags: [...new Set(Object.values(paths).flatMap((methods) => Object.values(methods).flatMap(tagsOf)))].map(
      (name) => ({ name }),
    ),
    paths,
    components: {
      ...components,
      parameters: { ...components.parameters, ...PARAMETERS },
      headers: { ...components.headers, ...HEADERS },
      responses: { ...components.responses, fault: FAULT },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: TOKENS[authMode] },
        basic: { type: "http", scheme: "basic", description: "The token as the password, with any user name." },
      },
    },
  };
}

/** The tokens that callers may show, by the mode. */
export const TOKENS: Readonly<Record<Config["authMode"], string>> = {
  tokens: "A token that the mirror's operator makes with `tain token create`.",
  upstream: "A token of the mirrored service: you then see what the service shows you, and write as yourself.",
  both: "A token that the mirror's operator makes with `tain token create`, or one of the mirrored service: with that you see what the service shows you, and write as yourself.",
};

/** Published parameters that are refused here, since what they ask about is not mirrored. */
const NOT_MIRRORED: ReadonlySet<string> = new Set(["issue_field_values"]);

const FAULT = {
  description:
    "Anything else: the service's shape of an error. 401 for a credential that is none, 403 for what the token was not given, 403 or 429 for a spent quota, 404 also for what the caller may not see, 502, 503 and 504 when upstream or the mirror's database cannot be reached.",
  content: { "application/json": { schema: { $ref: "#/components/schemas/basic-error" } } },
};

/** Says how a request is answered that no described route serves. */
export function elsewhere(forwarding: Config["forwarding"]): string {
  const reads =
    forwarding === "all"
      ? " Reads below a repository that they may see are asked for all others, too, with the mirror's own credential."
      : "";
  return forwarding
    ? `What is not listed here is asked of the mirrored service, for callers who show a token of its own. To all others it answers 403 with a message that says so, and 404 if the service has no such route.${reads}`
    : "What is not listed here is not served: it answers 403 with a message that says so, and 404 if the mirrored service has no such route.";
}

function introduction(authMode: Config["authMode"], forwarding: Config["forwarding"]): string {
  return [
    "Answers come from the mirror; writes are sent to the mirrored service and are in the mirror when they are answered.",
    `Without a token only public repositories are seen. ${TOKENS[authMode]}`,
    "Whatever is below `/repos/{owner}/{repo}` is also below `/repositories/{repository_id}`, and each GET may be asked by HEAD. A request needs a `User-Agent`.",
    "Bodies that people wrote are shown raw, or as text, HTML or all of these by `Accept: application/vnd.github.text+json`, `html`, `full`.",
    elsewhere(forwarding),
  ].join("\n\n");
}

const OF_WRITES: readonly string[] = ["x-github-api-version"];
const OF_ANSWERS: readonly string[] = [...OF_WRITES, "if-none-match"];
/** The parameters of a read below a repository. */
const OF_READS: readonly string[] = ["fresh", ...OF_ANSWERS];

/**
 * @param options.names names of the path's parameters, if it is not the published path; null: as published
 * @param options.own the names among PARAMETERS that it takes
 */
function operationOf(
  published: PublishedOperation,
  components: Published["components"],
  { names, own: taken }: { names: string[] | null; own: readonly string[] },
): PublishedOperation {
  const parameters = (published.parameters ?? []).filter((parameter) => {
    const { in: where, name } = dereferenced<Parameter>(parameter, components);
    return !NOT_MIRRORED.has(name) && (names === null || where !== "path");
  });
  const own = (names ?? []).map(
    (name): Parameter => ({ name, in: "path", required: true, schema: { type: name === "id" ? "integer" : "string" } }),
  );
  const headers = Object.keys(HEADERS).map((name) => [name, { $ref: `#/components/headers/${name}` }]);
  const responses = Object.entries(published.responses).map(([status, response]) => [
    status,
    /^2/.test(status) && !("$ref" in response)
      ? { ...response, headers: { ...Object.fromEntries(headers), ...response.headers } }
      : response,
  ]);
  return {
    ...published,
    parameters: [...own, ...parameters, ...taken.map((name) => ({ $ref: `#/components/parameters/${name}` }))],
    responses: { ...Object.fromEntries(responses), default: { $ref: "#/components/responses/fault" } },
  };
}

function graphqlOperation(api: string): Record<string, object> {
  const result = { type: "object", properties: { data: { type: ["object", "null"] }, errors: { type: "array" } } };
  return {
    servers: [{ url: api }],
    post: {
      summary: "Run a GraphQL query, mutation or subscription",
      description:
        "A strict subset of the service's schema; ask it for itself by introspection. Also at `/api/graphql`. Needs a token.",
      operationId: "graphql",
      tags: ["graphql"],
      externalDocs: { url: "https://docs.github.com/graphql" },
      security: [{ bearer: [] }, { basic: [] }],
      requestBody: {
        required: true,
        content: {
          "application/json": {
            schema: {
              type: "object",
              required: ["query"],
              properties: {
                query: { type: "string", description: "The document." },
                variables: { type: ["object", "null"], description: "Values of its variables." },
                operationName: {
                  type: ["string", "null"],
                  description: "Which of its operations to run, where it has several.",
                },
              },
            },
          },
        },
      },
      responses: {
        "200": {
          description:
            "The result. With `Accept: text/event-stream` a subscription answers a stream of results (experimental).",
          content: { "application/json": { schema: result }, "text/event-stream": { schema: { type: "string" } } },
        },
        default: { $ref: "#/components/responses/fault" },
      },
    },
  };
}

function pathForm(path: string): string {
  return path.replace(/\{\w+\}|:\w+/g, "{}");
}

function namesIn(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
}

function tagsOf(operation: object): string[] {
  return "tags" in operation && Array.isArray(operation.tags) ? operation.tags : [];
}

function number(description: string): object {
  return { description, schema: { type: "integer" } };
}

function textHeader(description: string): object {
  return { description, schema: { type: "string" } };
}
