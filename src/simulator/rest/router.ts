import type { Answer, Call, RepositoryCall } from "./call.ts";

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

export interface Route {
  readonly method: Method;
  /** `:name` takes one segment (decoded), `*name` all that is left. Below `/repos/:owner/:repo` for repository routes. */
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

interface Node {
  readonly fixed: Map<string, Node>;
  parameter: Node | null;
  /** Taking all that is left. */
  rest: Route | null;
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
    for (const segment of segmentsOf(one.pattern)) {
      if (segment.startsWith("*")) {
        node.rest = one;
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
    let wild: { route: Route; from: number } | null = null;
    for (const [at, segment] of segments.entries()) {
      if (node.rest) wild = { route: node.rest, from: at };
      const next = node.fixed.get(segment) ?? node.parameter;
      if (!next) {
        if (!wild || wild.route.method !== method) return undefined;
        return bound(wild.route, [...segments.slice(0, wild.from), segments.slice(wild.from).join("/")]);
      }
      node = next;
    }
    const found = node.routes.get(method);
    return found && bound(found, segments);
  }
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
  return { fixed: new Map(), parameter: null, rest: null, routes: new Map() };
}
