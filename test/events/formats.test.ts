/** Events as messages of chats and as CloudEvents, without a receiver. */
import examples from "@octokit/webhooks-examples" with { type: "json" };
import { CloudEvent, HTTP } from "cloudevents";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { TargetFormat } from "../../db/schema/states.ts";
import { requestTo } from "../../src/events/request.ts";
import { wantsEvent, wantsLabels } from "../../src/events/wanted.ts";
import { readDiscord, readSlack, readTeams } from "./chat-rules.ts";

const published = examples as unknown as { name: string; examples: { action?: string }[] }[];
const CHATS = { slack: readSlack, teams: readTeams, discord: readDiscord } as const;
type Chat = keyof typeof CHATS;
const chats: Chat[] = ["slack", "teams", "discord"];
const config = { upstreamUrl: "https://api.github.com" };

async function toldAs(format: TargetFormat, event: string, payload: object) {
  const target = { id: 1, scope: { kind: "everything", id: 0 }, contentType: "json", format } as const;
  const action = "action" in payload && typeof payload.action === "string" ? payload.action : null;
  const at = new Date("2026-01-02T03:04:05Z");
  const of = { event, action, guid: "a-guid", eventId: 7, isMade: false, receivedAt: at, sentAt: at };
  const message = { ...of, payload: Buffer.from(JSON.stringify(payload)) };
  return await requestTo({ config }, { ...target, rewriteTo: null, installationId: null }, null, message);
}

async function seen(chat: Chat, event: string, payload: object) {
  return CHATS[chat]((await toldAs(chat, event, payload)).body.toString());
}

const HOME = "https://github.com/octo/demo";
const repository = { full_name: "octo/demo", html_url: HOME, url: "https://api.github.com/repos/octo/demo" };
const issueWith = (fields: object) => ({
  action: "opened",
  issue: { number: 7, title: "It breaks", body: "Sometimes.", html_url: `${HOME}/issues/7`, ...fields },
  repository,
  sender: { login: "octocat" },
});

test("the messages, as their services are sent them", async () => {
  const told = async (chat: Chat) => JSON.parse((await toldAs(chat, "issues", issueWith({}))).body.toString());
  expect(await told("slack")).toMatchObject({
    text: "octo/demo: issue opened by octocat\n#7 It breaks",
    blocks: [
      { type: "section", text: { type: "plain_text", text: "octo/demo: issue opened by octocat\n#7 It breaks" } },
      { type: "section", text: { type: "plain_text", text: "Sometimes." } },
      { type: "context", elements: [{ type: "mrkdwn", text: `<${HOME}/issues/7|Open>` }] },
    ],
  });
  expect((await told("teams")).attachments[0].content).toMatchObject({
    body: [
      { inlines: [{ type: "TextRun", text: "octo/demo: issue opened by octocat" }] },
      { inlines: [{ type: "TextRun", text: "#7 It breaks" }] },
      { inlines: [{ type: "TextRun", text: "Sometimes." }] },
    ],
    actions: [{ type: "Action.OpenUrl", url: `${HOME}/issues/7` }],
  });
  expect(await told("discord")).toEqual({
    allowed_mentions: { parse: [] },
    embeds: [
      {
        author: { name: "octo/demo: issue opened by octocat" },
        title: "\\#7 It breaks",
        url: `${HOME}/issues/7`,
        description: "Sometimes\\.",
      },
    ],
  });
});

test.each([
  [
    "pull_request",
    { action: "closed", pull_request: { number: 8, title: "Mend", merged: true } },
    "pull request merged by octocat",
    "#8 Mend",
  ],
  [
    "issues",
    { action: "labeled", issue: { number: 7, title: "A" }, label: { name: "bug" } },
    "issue labeled by octocat: bug",
    "#7 A",
  ],
  [
    "pull_request_review",
    { action: "submitted", review: { state: "approved", body: "Fine" }, pull_request: { number: 8, title: "Mend" } },
    "pull request review submitted by octocat: approved",
    "#8 Mend",
  ],
  [
    "workflow_run",
    { action: "completed", workflow_run: { conclusion: "failure", display_title: "CI" } },
    "workflow run completed by octocat: failure",
    "CI",
  ],
  ["push", { ref: "refs/heads/main", commits: [{ message: "One\n\nmore" }] }, "push by octocat", "main"],
  ["status", { state: "success", context: "ci", commit: { sha: "abc" } }, "status by octocat: success", "abc"],
])("what %s says in few words", async (event, payload, headline, subject) => {
  const { texts } = await seen("teams", event, { ...payload, repository, sender: { login: "octocat" } });
  expect(texts.slice(0, 2)).toEqual([`octo/demo: ${headline}`, subject]);
});

describe.each(chats)("in %s", (chat) => {
  test("every event that the service documents is a message by the published rules", async () => {
    let count = 0;
    for (const { name, examples: payloads } of published)
      for (const payload of payloads) {
        const { faults, calls } = await seen(chat, name, payload);
        expect({ name, faults, calls }).toEqual({ name, faults: [], calls: [] });
        count += 1;
      }
    expect(count).toBeGreaterThan(200);
  });

  const HOSTILE = [
    "<!channel> <@U024BE7LH> <#C024BE7LR|general> <https://evil.example|https://github.com>",
    "&lt;!here&gt; &#60;!channel&#62; & < >",
    "@everyone @here <@123> <@&456> <#789> <t:1700000000:R> <:x:1> </cmd:1>",
    "[Sign in](https://evil.example) **bold** __u__ ~~s~~ ||spoiler|| `code` https://evil.example",
    "<at>Everyone</at> <a href='https://evil.example'>Sign in</a> ![i](https://evil.example/i.png)",
    `","blocks":[],"text":"<!channel>`,
    "\\<!channel\\> \\@everyone \\\\ \\",
    "a\u202egnp.exe \u2066b\u2069 \u0000\u001b[2J \ud800 line\nbreak\r\n> quote",
    "# heading",
    "x".repeat(70_000),
    "<".repeat(70_000),
    "&".repeat(3_001),
    "😀".repeat(40_000),
    "",
    "   ",
  ];

  test.each(HOSTILE.map((text) => [text.slice(0, 60), text]))("nothing is forged by %j", async (_, text) => {
    const payload = {
      ...issueWith({ title: text, body: text, html_url: `${HOME}/issues/7` }),
      action: "labeled",
      label: { name: text },
      sender: { login: text },
    };
    const opened = issueWith({ title: text, body: text });
    for (const each of [payload, opened]) {
      const { faults, calls, links, texts } = await seen(chat, "issues", each);
      expect({ faults, calls }).toEqual({ faults: [], calls: [] });
      expect(links.map(({ url }) => url)).toEqual([`${HOME}/issues/7`]);
      for (const shown of texts)
        expect(shown.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u);
    }
  });

  test("what was written is shown as it was written, if it is short", async () => {
    const words = fc.string({ unit: fc.constantFrom(..."ab <>&*_~`|[]()\\@#!:/.-+=😀".split(/(?:)/u)), maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(words, async (text) => {
        const { faults, calls, texts } = await seen(chat, "issues", issueWith({ title: `x${text}`, body: `y${text}` }));
        expect({ faults, calls }).toEqual({ faults: [], calls: [] });
        const trimmed = text.replaceAll(/\s+/g, " ").trimEnd();
        expect(texts.join("\n")).toContain(`#7 x${trimmed}`);
        expect(texts.join("\n")).toContain(`y${text.trimEnd()}`);
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    "https://evil.example/octo/demo/issues/7",
    "javascript:alert(1)",
    "https://github.com@evil.example/",
    "https://user:word@github.com/octo/demo",
    "https://github.com.evil.example/",
    "no address",
  ])("a page elsewhere is no link: %s", async (html_url) => {
    const { links, faults } = await seen(chat, "issues", issueWith({ html_url }));
    expect({ faults, urls: links.map(({ url }) => url) }).toEqual({ faults: [], urls: [HOME] });
  });

  test("an address that holds the markup of links stays one", async () => {
    const { links, faults, calls } = await seen(chat, "issues", issueWith({ html_url: `${HOME}/a|b>c<!channel>?d&e` }));
    expect({ faults, calls }).toEqual({ faults: [], calls: [] });
    expect(links.map(({ url }) => new URL(url).pathname.replaceAll("%7C", "|"))).toEqual([
      "/octo/demo/a|b%3Ec%3C!channel%3E",
    ]);
  });

  test("a payload that is too long to be read is told by its name, and one without anything too", async () => {
    const long = { ...issueWith({}), padding: "x".repeat(1_000_001) };
    expect(await seen(chat, "issues", long)).toMatchObject({
      faults: [],
      texts: expect.arrayContaining(["issue opened"]),
    });
    expect(await seen(chat, "ping", {})).toMatchObject({
      faults: [],
      texts: expect.arrayContaining(["ping"]),
      links: [],
    });
  });
});

describe("as CloudEvents", () => {
  test("every event that the service documents is one by the specification, with the payload as data", async () => {
    for (const { name, examples: payloads } of published)
      for (const payload of payloads) {
        const { headers, body } = await toldAs("cloudevents", name, payload);
        const told = HTTP.toEvent({ headers: lowered(headers), body: body.toString() });
        if (!(told instanceof CloudEvent)) throw new Error("One event, and no batch");
        expect(told.validate()).toBe(true);
        const action = payload.action === undefined ? "" : `.${payload.action}`;
        expect(told).toMatchObject({
          id: "a-guid",
          type: `com.github.${name}${action}`,
          time: "2026-01-02T03:04:05.000Z",
          datacontenttype: "application/json",
          githubdelivery: "a-guid",
        });
        expect(told.data).toEqual(payload);
      }
  });

  test("it names the repository and what it is about, and keeps each digit of the payload", async () => {
    const target = { id: 1, scope: { kind: "everything", id: 0 }, contentType: "json", format: "cloudevents" } as const;
    const payload = Buffer.from(
      `{"issue":{"number":7,"id":12345678901234567890},"repository":{"url":"${repository.url}"}}`,
    );
    const at = new Date(0);
    const of = {
      event: "issues",
      action: "opened",
      guid: "g",
      eventId: null,
      isMade: true,
      receivedAt: at,
      sentAt: at,
    };
    const rewriteTo = null;
    const request = await requestTo({ config }, { ...target, rewriteTo, installationId: null }, "s", {
      ...of,
      payload,
    });
    expect(request.headers).toMatchObject({
      "content-type": "application/cloudevents+json; charset=utf-8",
      "X-Hub-Signature-256": expect.stringMatching(/^sha256=/),
    });
    const text = request.body.toString();
    expect(JSON.parse(text)).toMatchObject({ source: repository.url, subject: "issues/7", tainmade: true });
    expect(text).toContain("12345678901234567890");
  });
});

function lowered(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

test("chats are sent none of the headers by which programs know an event, and nothing is signed", async () => {
  for (const chat of chats)
    expect(Object.keys((await toldAs(chat, "issues", issueWith({}))).headers)).toEqual([
      "Accept",
      "content-type",
      "User-Agent",
    ]);
});

test("a target wants an event by its name, its action and the labels of what it is about", () => {
  const of = (actions: string[] | null, events = ["issues"]) => ({ events, actions });
  expect(wantsEvent(of(null), { event: "issues", action: "closed" })).toBe(true);
  expect(wantsEvent(of(["opened"]), { event: "issues", action: "closed" })).toBe(false);
  expect(wantsEvent(of(["opened"]), { event: "issues", action: "opened" })).toBe(true);
  expect(wantsEvent(of(["opened"], ["*"]), { event: "push", action: null })).toBe(false);
  expect(wantsEvent(of(null), { event: "push", action: null })).toBe(false);
  const labelled = (labels: string[] | null, payload: object) =>
    wantsLabels({ labels }, Buffer.from(JSON.stringify(payload)));
  const issue = { labels: [{ name: "Bug" }, { name: "ui" }] };
  expect(labelled(null, {})).toBe(true);
  expect(labelled(["bug"], { issue })).toBe(true);
  expect(labelled(["BUG"], { pull_request: issue })).toBe(true);
  expect(labelled(["docs"], { issue })).toBe(false);
  // The label that was just taken away is what the event is about.
  expect(labelled(["docs"], { issue, label: { name: "docs" } })).toBe(true);
  expect(labelled(["bug"], { issue: { labels: "bug" } })).toBe(false);
  expect(labelled([""], { issue: { labels: [{}] } })).toBe(false);
});
