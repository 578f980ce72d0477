/** Requests made to cost more than they seem. */
import { getIntrospectionQuery } from "graphql";
import type { Fuzz } from "./measured-web.ts";
import { asGraphql } from "./nasty.ts";

const aliases = (count: number, field: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => `a${at}: ${field(at)}`).join(" ");
const words = (count: number, word: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => word(at)).join(" ");

function nested(levels: number, names: string[]): string {
  const fragments = words(levels, (at) => {
    const inner = at === levels - 1 ? "name" : `...F${at + 1}`;
    return `fragment F${at} on Repository { ${names.map((name) => `${name}: owner { repository(name: "x") { ${inner} } }`).join(" ")} }`;
  });
  return `query { repository(owner: "no", name: "body") { ...F0 } } ${fragments}`;
}

/** GraphQL's, by name. */
function queries(repository: string): Record<string, [query: string, variables?: object]> {
  const of = (fields: string) => `{ ${repository} { ${fields} } }`;
  const issue = "number title body state author { login } labels(first: 10) { nodes { name color } }";
  const type = "name fields { name type { name fields { name args { name type { name } } } } }";
  const manyNames = words(8_000, (at) => `"x${at}"`);
  return {
    "fields that double at each level": [nested(29, ["a", "b"])],
    "fields that triple at each level": [nested(29, ["a", "b", "c"])],
    "ten aliases at each level": [nested(29, [..."abcdefghij"])],
    "9,900 aliases": [`{ viewer { ${aliases(9_900, () => "login")} } }`],
    "29,000 times the same field": [`{ viewer { ${"login ".repeat(29_000)} } }`],
    "7,000 conflicting fields": [`{ viewer { ${words(7_000, (at) => `x: ${at % 2 ? "login" : "id"}`)} } }`],
    "2,500 fields that might conflict": [`{ ${words(2_500, () => `x: user(login: "u") { id }`)} }`],
    "1,500 fragments at one place": [
      `{ viewer { ${words(1_500, (at) => `...F${at}`)} } } ${words(1_500, (at) => `fragment F${at} on User { id a${at}: login }`)}`,
    ],
    "2,000 fragments in a row": [
      `{ viewer { ...F0 } } ${words(2_000, (at) => `fragment F${at} on User { id ${at < 1_999 ? `...F${at + 1}` : ""} }`)}`,
    ],
    "a fragment in itself": ["{ viewer { ...F } } fragment F on User { id ...F }"],
    "nested 5,000 deep": [`{ viewer { ${"... { ".repeat(5_000)} id ${"}".repeat(5_000)} } }`],
    "6,000 variables": [`query(${words(6_000, (at) => `$v${at}: Int`)}) { viewer { id } }`],
    "a long list": [`{ nodes(ids: [${manyNames}]) { id } }`],
    "a longer list in a variable": [
      "query($ids: [ID!]!) { nodes(ids: $ids) { id } }",
      { ids: Array.from({ length: 200_000 }, () => "") },
    ],
    "a list that filters each parent": [
      `query($l: [String!]) { ${repository} { labels(first: 100) { nodes { ${aliases(20, () => "issues(labels: $l, first: 1) { totalCount }")} } } } }`,
      { l: Array.from({ length: 990 }, (_, at) => `label ${at}`) },
    ],
    "400 filters by text": [of(aliases(400, (at) => `issues(filterBy: {mentioned: "z${at}"}) { totalCount }`))],
    "100 searches": [`{ ${aliases(100, (at) => `search(type: ISSUE, query: "w${at}", first: 1) { issueCount }`)} }`],
    "10 searches": [
      `{ ${aliases(10, (at) => `search(type: ISSUE, query: "w${at} OR the", first: 50) { nodes { ...on Issue { ${issue} } } }`)} }`,
    ],
    "1,500 counts": [of(aliases(1_500, (at) => `pullRequests(headRefName: "z${at}") { totalCount }`))],
    "600 single issues": [
      of(aliases(600, (at) => `issueOrPullRequest(number: ${(at % 100) + 1}) { ...on Issue { ${issue} } }`)),
    ],
    "twenty pages of issues": [
      of(
        aliases(
          20,
          () => `issues(first: 100) { nodes { ${issue} comments(first: 20) { nodes { body author { login } } } } }`,
        ),
      ),
    ],
    "one body a thousand times": [of(`issues(first: 100) { nodes { ${aliases(1_000, () => "body")} } }`)],
    "each issue by each label": [
      of(`labels(first: 100) { nodes { issues(first: 100) { nodes { ${issue} ${aliases(40, () => "title")} } } } }`),
    ],
    introspection: [getIntrospectionQuery()],
    "300 introspections": [`{ ${aliases(300, () => "__schema { types { name fields { name args { name } } } }")} }`],
    "introspection in depth": [`{ __schema { types { ${type} } } }`],
    "introspection of one type, often": [`{ ${aliases(150, () => `__type(name: "Repository") { ${type} }`)} }`],
  };
}

/** Bodies of 65,536 characters, which is as long as the service takes them. */
export const LARGE_TEXTS = {
  prose: "Some *words* and `code`, [a link](https://example.com) and #12.\n\n".repeat(1_000),
  "letters of four bytes": "💩".repeat(65_536),
  "characters of six when they are escaped": "\u0001".repeat(65_536),
  quotes: '"'.repeat(65_536),
};

/** Markdown that takes long for its length. */
export const SLOW_TEXTS = ["_a__a".repeat(13_107), "[".repeat(65_536), "> ".repeat(32_768), "`".repeat(65_536)];

/** Requests to GraphQL. */
export function graphqlBombs({ owner, name }: { owner: string; name: string }): Fuzz[] {
  const all = Object.entries(queries(`repository(owner: "${owner}", name: "${name}")`));
  const brackets = `${"[".repeat(450_000)}${"]".repeat(450_000)}`;
  return [
    ...all.map(([what, [query, variables]]) => asGraphql(what, query, variables)),
    { ...asGraphql("brackets", ""), body: `{"query":"{ viewer { id } }","variables":{"a":${brackets}}}` },
    {
      ...asGraphql("objects", ""),
      body: `{"query":"{ viewer { id } }","variables":${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}}`,
    },
    {
      ...asGraphql("keys", ""),
      body: `{"query":"{ viewer { id } }","variables":{${words(80_000, (at) => `"k${at}":0,`)}"a":1}}`,
    },
  ];
}

/** Mutations whose answers are large. @param id an issue's */
export function mutationBombs(id: string): Fuzz[] {
  const issue = "number title body state author { login } labels(first: 10) { nodes { name color } }";
  const much = aliases(20, () => `issues(first: 100) { nodes { ${issue} } }`);
  const write = (inner: string) => `mutation { addComment(input: {subjectId: "${id}", body: "x"}) { ${inner} } }`;
  return [
    asGraphql("a mutation that shows twenty pages", write(`subject { ... on Issue { repository { ${much} } } }`)),
    asGraphql("a mutation with 9,000 aliases", write(aliases(9_000, () => "__typename"))),
    asGraphql(
      "50 mutations",
      `mutation { ${aliases(50, () => `addComment(input: {subjectId: "no", body: "x"}) { __typename }`)} }`,
    ),
  ];
}

/** Lists of a hundred texts, in each form and in some forms together. @param kind what the texts are made of */
export function listBombs(fullName: string, kind: string): (Fuzz & { isSingle: boolean })[] {
  const path = `/repos/${fullName}/issues?per_page=100&state=all`;
  const ask = (name: string, headers: Record<string, string> = {}, at = path) => ({
    name: `${name}, of ${kind}`,
    method: "GET",
    path: at,
    headers,
    isSingle: Object.keys(headers).length + Number(at !== path) <= 1,
  });
  const html = { Accept: "application/vnd.github.full+json" };
  const search = `/search/issues?q=${encodeURIComponent(`repo:${fullName}`)}&per_page=100`;
  return [
    ask("REST: a hundred issues"),
    ask("REST: the same, laid out", { "User-Agent": "curl/8" }),
    ask("REST: the same in another version", { "X-GitHub-Api-Version": "2026-03-10" }),
    ask("REST: the same compressed", { "Accept-Encoding": "br" }),
    ask("Markdown: a hundred issues", html),
    ask("Markdown: the same again", html, `${path}&direction=asc`),
    ask("Markdown: the same, laid out", { ...html, "User-Agent": "curl/8" }),
    ask("Search: a hundred issues", {}, search),
    ask("Search: the same as Markdown", html, search),
    ask("Search: the same, laid out", { "User-Agent": "curl/8" }, search),
  ];
}
