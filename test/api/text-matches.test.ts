import { afterAll, beforeAll, expect, test } from "vitest";
import { fragmentOf } from "../../src/mirror/search/text-matches.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let repo: string;
beforeAll(async () => {
  world = await openApiWorld({ issues: 30, repositories: 1 });
  repo = world.repositories[0]?.fullName ?? "";
});
afterAll(() => world?.[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

async function search(path: string, accept: string) {
  const { status, body, headers } = await world.get(path, { headers: { accept } });
  expect(status).toBe(200);
  return { items: body.items as Body[], media: headers.get("x-github-media-type") };
}

/** Each index of each match leads to its text in the fragment, and the fragment is of the property. */
function requireTrue(item: Body, source: (property: string) => string): void {
  for (const { object_url, property, fragment, matches } of item.text_matches) {
    expect(object_url).toBe(item.url.replace(`/repos/${repo}`, `/repositories/${world.repositories[0]?.id}`));
    expect(source(property)).toContain(fragment);
    expect(matches.length).toBeGreaterThan(0);
    for (const { text, indices } of matches) expect(fragment.slice(...indices)).toBe(text);
  }
}

test.each(["application/vnd.github.text-match+json", "application/vnd.github.v3.text-match+json"])(
  "a search by %s shows where the words stand, by their stems",
  async (accept) => {
    const [one] = (await world.get(`/repos/${repo}/issues?state=all`)).body;
    const word = one.title.split(/\s+/).find((part: string) => /^[a-z]{5,}$/i.test(part)) as string;
    const path = `/search/issues?q=${encodeURIComponent(`repo:${repo} ${word.toUpperCase()} is:issue`)}`;
    const { items, media } = await search(path, accept);
    expect(media).toBe("github.v3; param=text-match; format=json");
    expect(items.length).toBeGreaterThan(0);
    for (const item of items) requireTrue(item, (property) => item[property]);
    const found = items.find(({ number }) => number === one.number)?.text_matches;
    expect(found).toContainEqual({
      object_url: expect.any(String),
      object_type: "Issue",
      property: "title",
      fragment: one.title,
      matches: [{ text: word, indices: [one.title.indexOf(word), one.title.indexOf(word) + word.length] }],
    });
    const { items: titles } = await search(`${path}+in:title`, accept);
    for (const { text_matches } of titles) for (const { property } of text_matches) expect(property).toBe("title");
  },
);

test("a search for nothing but qualifiers matches no text, and without the media type there is no such key", async () => {
  const path = `/search/issues?q=${encodeURIComponent(`repo:${repo} is:issue -is:draft NOT zebra`)}`;
  const { items } = await search(path, "application/vnd.github.text-match+json");
  expect(items.length).toBeGreaterThan(0);
  for (const { text_matches } of items) expect(text_matches).toEqual([]);
  for (const item of (await search(path, "application/vnd.github+json")).items)
    expect(item).not.toHaveProperty("text_matches");
});

test("repositories and labels show their matches, too", async () => {
  const accept = "application/vnd.github.text-match+json";
  const name = repo.split("/")[1] as string;
  const { items: repositories } = await search(
    `/search/repositories?q=${encodeURIComponent(`repo:${repo} ${name}`)}`,
    accept,
  );
  expect(repositories[0].text_matches).toMatchObject([
    { object_type: "Repository", property: "name", fragment: name, matches: name.split("-").map((text) => ({ text })) },
  ]);
  for (const item of repositories) requireTrue(item, (property) => item[property]);
  const { body: labels } = await world.get(`/repos/${repo}/labels`);
  const label = labels.find((one: Body) => /^[a-z]+$/.test(one.name));
  const { items } = await search(`/search/labels?repository_id=${world.repositories[0]?.id}&q=${label.name}`, accept);
  expect(items.find((one: Body) => one.name === label.name).text_matches).toMatchObject([
    { object_type: "Label", property: "name", fragment: label.name },
  ]);
});

test("a long text is shown around its first word", () => {
  const marked = `${"a ".repeat(400)}\u0002word\u0003${" b".repeat(400)} \u0002word\u0003`;
  const text = marked.replaceAll("\u0002", "").replaceAll("\u0003", "").replaceAll(" b", "-b");
  const { fragment, matches } = fragmentOf(marked, text) ?? { fragment: "", matches: [] };
  expect(fragment.length).toBeLessThanOrEqual(200);
  expect(matches).toEqual([{ text: "word", indices: [100, 104] }]);
  expect(fragment.slice(100, 104)).toBe("word");
  expect(fragmentOf("no word of it", "no word of it")).toBeNull();
});
