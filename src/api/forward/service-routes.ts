import { readFileSync } from "node:fs";
import { PathTree } from "./path-tree.ts";

const { routes } = readRoutes();
const TREE = new PathTree(routes);

/**
 * Whether the service publishes a route for such a path. It does not tell whether the path exists. Pure.
 * @param path below the API's address
 */
export function isServiceRoute(method: string, path: string): boolean {
  return serviceRoute(method, path) !== null;
}

/** The route that the service publishes for such a path, with a star for each name in it; null: there is none. Pure. */
export function serviceRoute(method: string, path: string): string | null {
  return TREE.formOf(method, named(path));
}

/**
 * Whether the service has its own route for this word, where ours takes a number: `/user/keys` is not `/user/{id}`.
 * Pure.
 */
export function isServiceWord(method: string, path: string): boolean {
  return !/\/\d+$/.test(path) && TREE.hasWord(method, named(path));
}

/** The path with names in place of the service's ids. */
function named(path: string): string {
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
