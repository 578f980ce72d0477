/**
 * The path of an address below the base. A path is answered unchanged. Pure.
 * @throws Error for an address elsewhere: our tokens go nowhere but to UPSTREAM_URL
 */
export function pathBelow(base: string, address: string): string {
  if (address.startsWith("/")) return address;
  // The text stays as upstream wrote it. Parsing would encode parts such as the template `/organizations{?since}`.
  if (address.startsWith(`${base}/`)) return address.slice(base.length);
  const root = new URL(base);
  const url = URL.parse(address);
  const basePath = root.pathname.replace(/\/+$/, "");
  if (!url || url.origin !== root.origin || !url.pathname.startsWith(`${basePath}/`)) {
    throw new Error(
      `${url ? url.origin + url.pathname : "an address"} is not below UPSTREAM_URL (${root.origin}${basePath})`,
    );
  }
  return url.pathname.slice(basePath.length) + url.search;
}

/** GraphQL's path from the host's root: beside `/api/v3` on an enterprise server, else below the REST base. Pure. */
export function graphqlPath(base: string): string {
  const path = new URL(base).pathname.replace(/\/+$/, "");
  return path.endsWith("/api/v3") ? `${path.slice(0, -"/v3".length)}/graphql` : `${path}/graphql`;
}

/**
 * The address of upstream's pages for people, without a trailing slash. An enterprise server has its API below them.
 * Pure.
 */
export function pagesOf(base: string): string {
  const { hostname, origin, pathname } = new URL(base);
  return hostname === "api.github.com" ? "https://github.com" : origin + pathname.replace(/\/(api\/v3)?$/, "");
}
