import type { Answer, Call, RepositoryCall } from "./call.ts";

/** One operation of the service that we serve. */
export interface Route {
  method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  docs: string;
  /** Whether it counts against the caller's quota. */
  isFree: boolean;
  /** Which quota; `core` unless it says. */
  bucket?: "search";
  /** What it reads says at once how the repository stands. */
  learnsStanding?: true;
  /** Below a repository: `run` is given one that the caller may see. */
  run:
    | { of: "service"; with: (call: Call) => Promise<Answer> }
    | { of: "repository"; with: (call: RepositoryCall) => Promise<Answer> };
}

/** Where a request goes. Values of the path are decoded. */
export interface Match {
  route: Route;
  params: Record<string, string>;
  /** What names the repository, and the path below it as it was sent; null for other routes. */
  repository: { fullName: string | null; id: string | null; rest: string } | null;
}

interface Node {
  literal: Map<string, Node>;
  param: { name: string; node: Node } | null;
  routes: Map<string, Route>;
}

/** A tree of path segments. Paths are as the service writes them: a trailing slash leads nowhere. */
export class Router {
  readonly #service = newNode();
  readonly #repository = newNode();
  readonly #added: { path: string; route: Route }[] = [];

  /** Every route, in the order of adding, with its path as it was added. */
  get routes(): readonly { path: string; route: Route }[] {
    return this.#added;
  }

  add(path: string, route: Route): void {
    this.#added.push({ path, route });
    let node = route.run.of === "repository" ? this.#repository : this.#service;
    for (const segment of segmentsOf(path)) {
      if (segment.startsWith(":")) {
        node.param ??= { name: segment.slice(1), node: newNode() };
        node = node.param.node;
      } else {
        const next = node.literal.get(segment) ?? newNode();
        node.literal.set(segment, next);
        node = next;
      }
    }
    node.routes.set(route.method, route);
  }

  /** Null: no such route. `path` begins with a slash. */
  match(method: string, path: string): Match | null {
    const segments = segmentsOf(path);
    const asked = method === "HEAD" ? "GET" : method;
    const [first, second = "", third = ""] = segments;
    if (first === "repos" && segments.length >= 3) {
      const [owner, name] = [decode(second), decode(third)];
      if (!owner || !name) return null;
      return this.#below(asked, segments.slice(3), { fullName: `${owner}/${name}`, id: null });
    }
    if (first === "repositories" && segments.length >= 2) {
      return this.#below(asked, segments.slice(2), { fullName: null, id: decode(second) });
    }
    const found = find(this.#service, segments, asked);
    return found && { ...found, repository: null };
  }

  #below(method: string, segments: string[], named: { fullName: string | null; id: string | null }): Match | null {
    const found = find(this.#repository, segments, method);
    return found && { ...found, repository: { ...named, rest: segments.map((segment) => `/${segment}`).join("") } };
  }
}

function find(root: Node, segments: string[], method: string): { route: Route; params: Record<string, string> } | null {
  let node = root;
  const params: Record<string, string> = {};
  for (const segment of segments) {
    const literal = node.literal.get(segment);
    if (literal) {
      node = literal;
      continue;
    }
    const value = decode(segment);
    if (!node.param || !value) return null;
    params[node.param.name] = value;
    node = node.param.node;
  }
  const route = node.routes.get(method);
  return route ? { route, params } : null;
}

function newNode(): Node {
  return { literal: new Map(), param: null, routes: new Map() };
}

function segmentsOf(path: string): string[] {
  return path === "/" || path === "" ? [] : path.slice(1).split("/");
}

/** Null for what is no percent-encoding of text. */
function decode(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}
