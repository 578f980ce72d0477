/** Requests that once stopped a web process, its Postgres or its memory. Each must cost as little as any other now. */
import type { Fields } from "../../src/json.ts";
import type { Fuzz } from "./measured-web.ts";
import { asGraphql } from "./nasty.ts";

const times = (count: number, each: (at: number) => string, between = " ") =>
  Array.from({ length: count }, (_, at) => each(at)).join(between);
const MB = 1_000_000;

const byTurns = (pairs: number, inner: string) =>
  `{ node(id: "x") { ${"... on PullRequestTimelineItem { ... on Node { ".repeat(pairs)}${inner}${" } }".repeat(pairs)} } }`;

/** Types that only the service has stand for each of ours, at each place anew. */
export const ENDLESS_DOCUMENTS = [
  {
    name: "a fragment that spreads itself by such a type, and that nothing uses",
    query: "{ viewer { login nope } } fragment F on Subscribable { ... on Node { ... F } }",
  },
  {
    name: "a fragment that spreads itself by such a type",
    query: '{ node(id: "x") { ... F } } fragment F on Subscribable { ... on Node { ... F } }',
  },
  { name: "such types by turns", query: byTurns(12, "id") },
  { name: "such types by turns, in a fragment", query: `${byTurns(12, "... G")} fragment G on Node { id }` },
  {
    name: "such types by turns, around arguments",
    query: byTurns(3, `... on Issue { ${"a: comments(first: 1) { totalCount } ".repeat(1_000)} }`),
  },
];

/** @param signed makes a delivery of the first repository's holder */
export async function knownAttacks(
  { owner, name, repository }: { owner: string; name: string; repository: Fields },
  signed: (event: string, body: string) => Promise<Fuzz>,
): Promise<Fuzz[]> {
  const list = `/repos/${owner}/${name}/issues`;
  const read = (what: string, path: string): Fuzz => ({ name: what, method: "GET", path });
  const search = (what: string, q: string) => read(what, `/search/issues?q=${encodeURIComponent(q)}`);
  const labels = (count: number) =>
    read(`a list by ${count} labels`, `${list}?state=all&sort=updated&labels=${times(count, (at) => `l${at}`, ",")}`);
  const searches = (each: (at: number) => string) =>
    `{ ${times(10, (at) => `s${at}: search(type: ISSUE, query: "${each(at)}", first: 1) { issueCount }`)} }`;
  const conflicting = times(480, (at) => `a: search(type: ISSUE, query: "w${at}", first: 1) { issueCount }`);
  const unheld = times(323, (at) => `a${at}: commit { authoredDate author { __typename } }`);
  const failing = `pullRequests(first: 5) { nodes { reviews(first: 1) { nodes { ${unheld} } } } }`;
  const hook = (what: string, events: string[], secret = "x"): Fuzz => ({
    ...{ name: what, method: "POST", path: `/repos/${owner}/${name}/hooks` },
    body: JSON.stringify({ name: "web", events, config: { url: "https://example.com/", secret } }),
  });
  const nested = (levels: number, open: string, close: string) => `${open.repeat(levels)}1${close.repeat(levels)}`;
  const delivery = async (what: string, event: string, more: string): Promise<Fuzz> => {
    const own = JSON.stringify(repository);
    return { ...(await signed(event, `{${more},"repository":${own}}`)), name: what };
  };
  const large = `{"title":"x","odd":"${"x".repeat(24 * MB)}"}`;
  return [
    ...[100, 300, 2_400].map(labels),
    search(
      "80 words that must not stand there",
      times(80, (at) => `-w${at}`),
    ),
    search(
      "100 people who are involved",
      times(100, (at) => `involves:p${at}`),
    ),
    search(
      "100 commenters",
      times(100, (at) => `commenter:p${at}`),
    ),
    search("60 words in comments", `in:comments ${times(60, (at) => `w${at}`)}`),
    search("a word that many texts have", "is:issue pagination"),
    search(
      "words one or the other",
      times(100, (at) => `w${at}`, " OR "),
    ),
    asGraphql(
      "ten searches of negated words",
      searches((at) => times(80, (word) => `-w${at}x${word}`)),
    ),
    asGraphql(
      "ten searches in comments",
      searches((at) => `in:comments ${times(60, (word) => `w${at}x${word}`)}`),
    ),
    ...ENDLESS_DOCUMENTS.map(({ name: what, query }) => asGraphql(what, query)),
    asGraphql("480 aliases that conflict", `{ ${conflicting} }`),
    asGraphql("2,000 errors in one answer", `{ repository(owner: "${owner}", name: "${name}") { ${failing} } }`),
    hook(
      "a hook for half a million events",
      Array.from({ length: 515_238 }, (_, at) => `e${at}`),
    ),
    hook("a hook with a secret of 2 MB", ["*"], "x".repeat(2 * MB)),
    { name: "a body of 24 MB", method: "PATCH", path: `${list}/1`, body: large },
    {
      name: "a body in pieces of a byte",
      method: "PATCH",
      path: `${list}/1`,
      body: large.slice(0, 100_000),
      pieces: 1,
    },
    await delivery("25 MB of empty lists", "star", `"odd":[${"[],".repeat(8 * MB)}[]]`),
    await delivery("25 MB of one text", "star", `"odd":"${"x".repeat(24 * MB)}"`),
    await delivery("a delivery 8,000 lists deep", "star", `"sender":{"name":${nested(8_000, "[", "]")}}`),
    await delivery("a delivery 3,000 objects deep", "issues", `"issue":${nested(3_000, '{"base":', "}")}`),
    await delivery("a delivery with NUL in a key", "milestone", '"milestone":{"id":1,"number":1,"a\\u0000b":1}'),
  ];
}
