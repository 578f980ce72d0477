import type { Exchange } from "./exchange.ts";
import type { Reply } from "./reply.ts";

/** Values of the path, decoded, by the names that the route gives them. */
export type Params = Readonly<Record<string, string>>;

export type Handler = (exchange: Exchange, params: Params) => Reply | Promise<Reply>;

export interface Route {
  method: string;
  /** A segment that begins with a colon stands for any one that is not empty. */
  path: string;
  /** Its last segment, which begins with a colon, stands for one or more. */
  takesRest?: boolean;
  handle: Handler;
}

interface RouteMatch {
  handle: Handler;
  params: Params;
  /** The path that the route was declared with. */
  template: string;
}

interface RouteNode {
  literal: Map<string, RouteNode>;
  any: RouteNode | null;
  /** Of one segment or more. */
  rest: RouteNode | null;
  /** By method. */
  routes: Map<string, { handle: Handler; names: readonly string[]; template: string }>;
}

/** All routes, as a tree of path segments. A literal segment goes before any other. A trailing slash is a segment of its own. */
export class Router {
  readonly #root = newNode();

  constructor(routes: Iterable<Route>) {
    for (const { method, path, takesRest = false, handle } of routes) {
      let node = this.#root;
      const names: string[] = [];
      const segments = path === "/" ? [] : path.slice(1).split("/");
      for (const [at, segment] of segments.entries()) {
        if (segment.startsWith(":")) names.push(segment.slice(1));
        if (takesRest && at === segments.length - 1) {
          node.rest ??= newNode();
          node = node.rest;
        } else if (segment.startsWith(":")) {
          node.any ??= newNode();
          node = node.any;
        } else {
          const next = node.literal.get(segment) ?? newNode();
          node.literal.set(segment, next);
          node = next;
        }
      }
      if (node.routes.has(method)) throw new Error(`There are two routes ${method} ${path}`);
      node.routes.set(method, { handle, names, template: path });
    }
  }

  /** Null: there is no such route. A HEAD goes where a GET goes. */
  find(method: string, path: string): RouteMatch | null {
    let node: RouteNode | null = this.#root;
    /** Where the path might end in more segments than one: the last such place wins. */
    let wide: { node: RouteNode; values: string[] } | null = null;
    const values: string[] = [];
    const isEncoded = path.includes("%");
    for (let start = 1, end = 0; node && end < path.length && path !== "/"; start = end + 1) {
      const slash = path.indexOf("/", start);
      end = slash < 0 ? path.length : slash;
      if (node.rest) wide = wideAt(node.rest, values, path.slice(start)) ?? wide;
      const segment = path.slice(start, end);
      const literal: RouteNode | undefined | false = node.literal.size > 0 && node.literal.get(segment);
      if (literal) {
        node = literal;
        continue;
      }
      const value: string | null = isEncoded ? decoded(segment) : segment;
      if (value) values.push(value);
      node = value ? node.any : null;
    }
    return (node && routeIn(node, method, values)) ?? (wide && routeIn(wide.node, method, wide.values));
  }
}

function wideAt(
  node: RouteNode,
  values: readonly string[],
  rest: string,
): { node: RouteNode; values: string[] } | null {
  const value = decoded(rest);
  return value ? { node, values: [...values, value] } : null;
}

function routeIn({ routes }: RouteNode, method: string, values: readonly string[]): RouteMatch | null {
  const route = routes.get(method) ?? (method === "HEAD" ? routes.get("GET") : undefined);
  if (!route) return null;
  const params: Record<string, string> = {};
  for (let at = 0; at < values.length; at++) params[route.names[at] ?? ""] = values[at] ?? "";
  return { handle: route.handle, params, template: route.template };
}

function newNode(): RouteNode {
  return { literal: new Map(), any: null, rest: null, routes: new Map() };
}

/** Null: its percent-encoding is none of text. */
export function decoded(text: string): string | null {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}
