import type { ApiWorld } from "../api/api-world.ts";
import type { Pools } from "../support/graphql-queries.ts";

/** The names and ids that generated queries ask for. Most exist in the mirror, and a few do not. */
export async function poolsIn({ repositories, send }: Pick<ApiWorld, "repositories" | "send">): Promise<Pools> {
  const fullNames = repositories.map(({ fullName }) => fullName);
  const ids =
    "id labels(first: 3) { nodes { id } } milestones(first: 2) { nodes { id } } issues(first: 3) { nodes { id author { login } comments(first: 1) { nodes { id } } } } pullRequests(first: 3) { nodes { id } }";
  const queries = fullNames.map((fullName) => {
    const [owner, name] = fullName.split("/");
    return `repository(owner: "${owner}", name: "${name}") { ${ids} }`;
  });
  const { body } = await send("POST", "/graphql", {
    body: JSON.stringify({ query: `{ ${queries.map((query, at) => `r${at}: ${query}`).join(" ")} }` }),
  });
  const texts = JSON.stringify(body.data);
  const found = (key: string) => [...texts.matchAll(new RegExp(`"${key}":"([^"]+)"`, "g"))].map(([, one]) => one);
  const [owner = ""] = (fullNames[0] ?? "").split("/");
  return {
    owner: [owner],
    name: [...fullNames.map((fullName) => fullName.split("/")[1]), "bug"],
    login: [...found("login"), owner, "nobody-at-all"],
    id: [...found("id"), "no id"],
    ids: [...found("id"), "no id"],
    number: [1, 2, 3, 4, 5, 6, 7, 9_999],
    first: [1, 2, 3, 5, 100, 101, -1],
    last: [1, 2, 3],
    after: ["not a cursor"],
    before: ["not a cursor"],
    url: fullNames.map((fullName) => `https://github.com/${fullName}`),
  };
}
