import fc from "fast-check";
import { expect, test } from "vitest";
import { condense, expand, lengthOf } from "../../src/mirror/repeating-text.ts";

const user = (login: string, id: number) =>
  JSON.stringify({
    login,
    id,
    avatar_url: `https://avatars.example/u/${id}`,
    url: `https://api.example/users/${login}`,
    html_url: `https://example/${login}`,
    followers_url: `https://api.example/users/${login}/followers`,
    gists_url: `https://api.example/users/${login}/gists{/gist_id}`,
    repos_url: `https://api.example/users/${login}/repos`,
    events_url: `https://api.example/users/${login}/events{/privacy}`,
    type: "User",
  });

test("what all have in common is kept once, and each comes back as it was", () => {
  const [one, other] = [condense(user("mona", 1), "mona"), condense(user("hubot-the-second", 2), "hubot-the-second")];
  if (typeof one === "string" || typeof other === "string") throw new Error("Nothing was saved");
  expect(one.tail).toBe(other.tail);
  expect([expand(one), expand(other)]).toEqual([user("mona", 1), user("hubot-the-second", 2)]);
  expect(lengthOf(one)).toBeLessThan(user("mona", 1).length / 3);
});

test("a word that hardly comes, none, and letters beyond Latin-1 leave the text whole", () => {
  for (const [text, word] of [
    ["a mona b", "mona"],
    [user("mona", 1), ""],
    [user("mona", 1), "hubot"],
    [`${user("mona", 1)} 𐍈`, "mona"],
  ] as const)
    expect(condense(text, word)).toBe(text);
});

test("any text comes back as it was, whatever the word", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "\0", "é", "€", "\ud83d"), maxLength: 60 });
  fc.assert(
    fc.property(letters, fc.string({ unit: fc.constantFrom("a", "b", "\0"), maxLength: 2 }), (text, word) => {
      expect(expand(condense(text, word))).toBe(text);
    }),
    { numRuns: 2_000 },
  );
});
