import { readFileSync } from "node:fs";
import type { Call } from "../call/call.ts";
import { ApiFault, hint, REST_DOCS } from "../dialect/fault.ts";

interface PathNode {
  readonly fixed: Map<string, PathNode>;
  any: PathNode | null;
  /** The forms that go on behind a `**`. */
  many: PathNode | null;
  methods: readonly string[];
  form: string;
}

/** Forms of paths, in which `*` stands for one segment and `**` for any number of them. */
class PathTree {
  readonly #root = newPathNode();

  /** @param forms with the methods of each, separated by blanks */
  constructor(forms: Readonly<Record<string, string>>) {
    for (const [form, methods] of Object.entries(forms)) {
      let node = this.#root;
      for (const segment of form.split("/").slice(1)) {
        if (segment === "**") node = node.many ??= newPathNode();
        else if (segment === "*") node = node.any ??= newPathNode();
        else node = node.fixed.getOrInsertComputed(segment, newPathNode);
      }
      node.methods = methods.split(" ");
      node.form = form;
    }
  }

  /**
   * The form that a path has with this method; null: it has none. A HEAD is a GET. A trailing slash is a segment of its
   * own.
   */
  routeForm(method: string, path: string): string | null {
    return formOf(this.#root, path.split("/").slice(1), 0, servedMethod(method));
  }

  /** Whether a form without `**` matches the path and ends in the path's last word. */
  hasWord(method: string, path: string): boolean {
    const segments = path.split("/").slice(1);
    const word = segments.pop() ?? "";
    const node = segments.reduce<PathNode | null>((at, one) => at && (at.fixed.get(one) ?? at.any), this.#root);
    return node?.fixed.get(word)?.methods.includes(servedMethod(method)) ?? false;
  }
}

function servedMethod(method: string): string {
  return method === "HEAD" ? "GET" : method;
}

/** A form has at most one `**`, so this takes only a few steps for each segment. */
function formOf(node: PathNode, segments: readonly string[], at: number, method: string): string | null {
  const segment = segments[at];
  const { many } = node;
  if (segment === undefined) return [node, many].find((one) => one?.methods.includes(method))?.form ?? null;
  const fixed = node.fixed.get(segment);
  const named = (fixed && formOf(fixed, segments, at + 1, method)) ?? null;
  if (named !== null) return named;
  const any = node.any && segment !== "" ? formOf(node.any, segments, at + 1, method) : null;
  if (any !== null || !many) return any;
  for (let end = at; end <= segments.length; end++) {
    const form = formOf(many, segments, end, method);
    if (form !== null) return form;
  }
  return null;
}

function newPathNode(): PathNode {
  return { fixed: new Map(), any: null, many: null, methods: [], form: "" };
}

const { routes } = readRoutes();
const TREE = new PathTree(routes);

/**
 * Whether the service publishes a route for such a path. It does not tell whether the path exists. Pure.
 * @param path below the API's address
 */
function isServiceRoute(method: string, path: string): boolean {
  return serviceRoute(method, path) !== null;
}

/** The route that the service publishes for such a path, with a star for each name in it; null: there is none. Pure. */
export function serviceRoute(method: string, path: string): string | null {
  return TREE.routeForm(method, pathByNames(path));
}

/**
 * Whether the service has its own route for this word, where ours takes a number: `/user/keys` is not `/user/{id}`.
 * Pure.
 */
export function isServiceWord(method: string, path: string): boolean {
  return !/\/\d+$/.test(path) && TREE.hasWord(method, pathByNames(path));
}

/** The path with names in place of the service's ids. */
function pathByNames(path: string): string {
  return path
    .replace(/^\/repositories\/\d+(?=\/|$)/, "/repos/owner/name")
    .replace(/^\/organizations\/\d+(?=\/|$)/, "/orgs/login")
    .replace(/^\/user\/\d+(?=\/|$)/, "/users/login");
}

function readRoutes(): { routes: Record<string, string> } {
  const file = new URL("../description/service-routes.json", import.meta.url);
  // No type can say what stands in a file: `scripts/generate/service-routes.ts` writes it so.
  return JSON.parse(readFileSync(file, "utf8")) as { routes: Record<string, string> };
}

/**
 * The answer to a request that is neither served nor forwarded. Clients read a 404 as "there is none": no member, no
 * branch, no check. So 404 is only for routes that the service does not have either. The status depends on the path's
 * form alone, so it reveals nothing. Pure.
 */
export function notServed({ method, path, ctx }: Pick<Call, "method" | "path" | "ctx">): ApiFault {
  const what = `this mirror does not serve ${method} on this route`;
  if (!isServiceRoute(method, path)) return noRoute(`Here, ${what}, and neither does the service.`);
  // The same with PASS_THROUGH=all, for paths that the mirror's own credential may not read.
  const help = ctx.config.forwarding
    ? "It asks the service for those who show a token of the service's own."
    : ASK_UPSTREAM;
  const message = `Forbidden: ${what}, and so cannot say what is there. ${help}`;
  return new ApiFault(403, message, { documentationUrl: REST_DOCS });
}

/** The service's answer where it has no route. Libraries choose the error that they raise by these very words. */
function noRoute(sentence: string): ApiFault {
  return new ApiFault(404, "Not Found", { documentationUrl: REST_DOCS, headers: hint(sentence) });
}

/**
 * The answer to a caller whose token upstream knows, about a repository or an account that the mirror does not show
 * them, where nothing is forwarded. Upstream may well show it, so this is no 404. Pure.
 */
export function notAsked({ method }: Pick<Call, "method">): ApiFault {
  const message = `Forbidden: this mirror does not hold what this ${method} asks about, and so cannot say what is there. ${ASK_UPSTREAM}`;
  return new ApiFault(403, message, { documentationUrl: REST_DOCS });
}

const ASK_UPSTREAM = "Ask the service itself, or have the mirror's operator set PASS_THROUGH=on.";
