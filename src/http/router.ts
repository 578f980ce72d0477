import type { Exchange } from "./exchange.ts";
import type { Reply } from "./reply.ts";

/** Values of the path, decoded, by the names that the route gives them. */
export type Params = Readonly<Record<string, string>>;

export type Handler = (exchange: Exchange, at: FoundRoute) => Reply | Promise<Reply>;

/** What the router found for a request. */
export interface FoundRoute {
  /** Made when they are asked for: a kept answer needs none. */
  readonly params: Params;
}

export interface Route {
  method: string;
  /** A segment that begins with a colon stands for any one that is not empty. */
  path: string;
  /** Its last segment, which begins with a colon, stands for one or more. */
  takesRest?: boolean;
  handle: Handler;
}

interface DeclaredRoute {
  handle: Handler;
  /** Of its params, in the path's order. */
  names: readonly string[];
  /** The path that the route was declared with. */
  template: string;
}

export class RouteMatch implements FoundRoute {
  readonly #route: DeclaredRoute;
  readonly #values: readonly string[];

  constructor(route: DeclaredRoute, values: readonly string[]) {
    this.#route = route;
    this.#values = values;
  }

  get handle(): Handler {
    return this.#route.handle;
  }

  get template(): string {
    return this.#route.template;
  }

  get params(): Params {
    return Object.fromEntries(this.#route.names.map((name, at) => [name, this.#values[at] ?? ""]));
  }
}

interface RouteNode {
  literal: Map<string, RouteNode>;
  any: RouteNode | null;
  /** Of one segment or more. */
  rest: RouteNode | null;
  /** By method. */
  routes: Map<string, DeclaredRoute>;
}

/**
 * All routes, as a tree of path segments. A literal segment goes before any other. A trailing slash is a segment of its
 * own.
 */
export class Router {
  readonly #root = newRouteNode();

  constructor(routes: Iterable<Route>) {
    for (const { method, path, takesRest = false, handle } of routes) {
      let node = this.#root;
      const names: string[] = [];
      const segments = path === "/" ? [] : path.slice(1).split("/");
      for (const [at, segment] of segments.entries()) {
        if (segment.startsWith(":")) names.push(segment.slice(1));
        if (takesRest && at === segments.length - 1) {
          node.rest ??= newRouteNode();
          node = node.rest;
        } else if (segment.startsWith(":")) {
          node.any ??= newRouteNode();
          node = node.any;
        } else {
          const next = node.literal.get(segment) ?? newRouteNode();
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
    let wide: { node: RouteNode; values: number; start: number } | null = null;
    const values: string[] = [];
    const isEncoded = path.includes("%");
    for (let start = 1, end = 0; node && end < path.length && path !== "/"; start = end + 1) {
      const slash = path.indexOf("/", start);
      end = slash < 0 ? path.length : slash;
      if (node.rest && start < path.length) wide = { node: node.rest, values: values.length, start };
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
    const found = node && routeIn(node, method, values);
    if (found || !wide) return found;
    const rest = decoded(path.slice(wide.start));
    return rest === null ? null : routeIn(wide.node, method, [...values.slice(0, wide.values), rest]);
  }
}

function routeIn({ routes }: RouteNode, method: string, values: readonly string[]): RouteMatch | null {
  const route = routes.get(method) ?? (method === "HEAD" ? routes.get("GET") : undefined);
  return route ? new RouteMatch(route, values) : null;
}

function newRouteNode(): RouteNode {
  return { literal: new Map(), any: null, rest: null, routes: new Map() };
}

/** The text without its percent-encoding. Null: what is encoded is no UTF-8. */
export function decoded(text: string): string | null {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}
