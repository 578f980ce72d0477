import type { Answer, Call, RepositoryCall } from "./call.ts";

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

export interface Route {
  readonly method: Method;
  /** `:name` takes one segment (decoded), `*name` one or more. Below `/repos/:owner/:repo` for repository routes. */
  readonly pattern: string;
  /** Page and anchor of the operation in the service's REST documentation. */
  readonly docs: string;
  readonly run: ((call: Call) => Answer) | { readonly inRepository: (call: RepositoryCall) => Answer };
  /** Creates something that notifies people: counts for the content-creation limit. */
  readonly content?: boolean;
  /** Only for Apps, by their JWT. */
  readonly forApps?: boolean;
  /** Changed in 2026-03-10: answers to the old version say so. */
  readonly deprecated?: boolean;
}

export function inRepository(
  method: Method,
  pattern: string,
  docs: string,
  run: (call: RepositoryCall) => Answer,
  extra: Partial<Route> = {},
): Route {
  return { method, pattern: `/repos/:owner/:repo${pattern}`, docs, run: { inRepository: run }, ...extra };
}

interface Rest {
  readonly route: Route;
  /** What the path must end with. */
  readonly end: readonly string[];
}

interface Node {
  readonly fixed: Map<string, Node>;
  parameter: Node | null;
  /** Taking all that is left, or all before their last segments. */
  readonly rest: Rest[];
  readonly routes: Map<string, Route>;
}

/** The routes as a tree of path segments; fixed segments win over parameters. */
export class Router {
  readonly #root = emptyNode();

  constructor(routes: readonly Route[]) {
    for (const one of routes) this.#add(one);
  }

  #add(one: Route): void {
    let node = this.#root;
    const segments = segmentsOf(one.pattern);
    for (const [at, segment] of segments.entries()) {
      if (segment.startsWith("*")) {
        node.rest.push({ route: one, end: segments.slice(at + 1) });
        node.rest.sort((a, b) => b.end.length - a.end.length);
        return;
      }
      if (segment.startsWith(":")) {
        node.parameter ??= emptyNode();
        node = node.parameter;
      } else {
        const next = node.fixed.get(segment) ?? emptyNode();
        node.fixed.set(segment, next);
        node = next;
      }
    }
    node.routes.set(one.method, one);
  }

  /** `segments` are decoded. Undefined: no such route; numbers in paths must be numbers. */
  find(
    method: string,
    segments: readonly string[],
  ): { readonly route: Route; readonly params: Record<string, string> } | undefined {
    let node = this.#root;
    let wild: { readonly rest: readonly Rest[]; readonly from: number } | null = null;
    for (const [at, segment] of segments.entries()) {
      if (node.rest.length > 0) wild = { rest: node.rest, from: at };
      const next = node.fixed.get(segment) ?? node.parameter;
      if (!next) return wild ? taken(wild.rest, method, segments, wild.from) : undefined;
      node = next;
    }
    const found = node.routes.get(method);
    if (found) return bound(found, segments);
    return wild ? taken(wild.rest, method, segments, wild.from) : undefined;
  }
}

/** The route with the longest end that the path has. */
function taken(rest: readonly Rest[], method: string, segments: readonly string[], from: number) {
  const found = rest.find(({ route, end }) => {
    const named = segments.length - end.length;
    return route.method === method && named > from && end.every((one, at) => one === segments[named + at]);
  });
  if (!found) return undefined;
  const named = segments.length - found.end.length;
  return bound(found.route, [...segments.slice(0, from), segments.slice(from, named).join("/"), ...found.end]);
}

function bound(
  found: Route,
  segments: readonly string[],
): { route: Route; params: Record<string, string> } | undefined {
  const params: Record<string, string> = {};
  for (const [at, name] of segmentsOf(found.pattern).entries()) {
    if (!name.startsWith(":") && !name.startsWith("*")) continue;
    const value = segments[at] ?? "";
    if ((name === ":number" || name === ":id" || name === ":review" || name === ":delivery") && !/^\d+$/.test(value))
      return undefined;
    params[name.slice(1)] = value;
  }
  return { route: found, params };
}

export function segmentsOf(path: string): string[] {
  return path
    .split("/")
    .slice(1)
    .filter((segment, at, all) => segment !== "" || at < all.length - 1);
}

function emptyNode(): Node {
  return { fixed: new Map(), parameter: null, rest: [], routes: new Map() };
}
