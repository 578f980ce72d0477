/**
 * What Slack, Teams and Discord publish of the messages that their webhooks take. Each function answers what a message
 * breaks, in words, and what a reader sees of it: texts as they are shown, and links with where they lead.
 */
import { z } from "zod";

export interface Seen {
  faults: string[];
  /** Each text as it is shown. */
  texts: string[];
  links: { text: string; url: string }[];
  /** Whom the message calls, by the markup that does so. */
  calls: string[];
}

const webUrl = z.url({ protocol: /^https?$/ });

// https://docs.slack.dev/reference/block-kit/blocks/section-block, …/context-block,
// https://docs.slack.dev/reference/block-kit/composition-objects/text-object
const plainText = (most: number) =>
  z.strictObject({ type: z.literal("plain_text"), text: z.string().min(1).max(most), emoji: z.boolean() });
const mrkdwn = z.strictObject({ type: z.literal("mrkdwn"), text: z.string().min(1).max(3_000) });
const slackBlock = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("section"), text: plainText(3_000) }),
  z.strictObject({ type: z.literal("context"), elements: z.array(mrkdwn).min(1).max(10) }),
]);
const slackMessage = z.strictObject({
  text: z.string().min(1).max(4_000),
  mrkdwn: z.literal(false),
  unfurl_links: z.literal(false),
  unfurl_media: z.literal(false),
  blocks: z.array(slackBlock).min(1).max(50),
});

export function readSlack(body: string): Seen {
  const { data, error } = slackMessage.safeParse(JSON.parse(body));
  if (!data) return unreadable(error);
  const blocks = data.blocks.flatMap((block): { type: string; text: string }[] =>
    block.type === "section" ? [block.text] : block.elements,
  );
  const [links, calls]: [Seen["links"], string[]] = [[], []];
  // Slack reads its tokens in every text, which it decodes afterwards.
  const texts = [data.text, ...blocks.map(({ text }) => text)].map((text) =>
    text
      .replaceAll(/<([^>]*)>/g, (_, token: string) => {
        const [target = "", label = target] = token.split("|");
        if (/^[@#!]/.test(target)) calls.push(token);
        else links.push({ text: decoded(label), url: decoded(target) });
        return label;
      })
      .replaceAll(/&(?!amp;|lt;|gt;)/g, "UNESCAPED&"),
  );
  const odd = blocks.filter(({ type, text }) => type === "mrkdwn" && !/^<[^<>|]+\|Open>$/.test(text));
  return { faults: odd.map(({ text }) => `not plain: ${text}`), texts: texts.map(decoded), links, calls };
}

function decoded(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

// https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using,
// https://adaptivecards.io/schemas/adaptive-card.json
const run = z.strictObject({
  type: z.literal("TextRun"),
  text: z.string().min(1),
  isSubtle: z.boolean().optional(),
  weight: z.enum(["Bolder"]).optional(),
  size: z.enum(["Medium"]).optional(),
});
const card = z.strictObject({
  $schema: z.literal("http://adaptivecards.io/schemas/adaptive-card.json"),
  type: z.literal("AdaptiveCard"),
  version: z.literal("1.4"),
  body: z.array(z.strictObject({ type: z.literal("RichTextBlock"), inlines: z.array(run).min(1) })).min(1),
  actions: z
    .array(z.strictObject({ type: z.literal("Action.OpenUrl"), title: z.literal("Open"), url: webUrl }))
    .optional(),
});
const teamsMessage = z.strictObject({
  type: z.literal("message"),
  attachments: z.tuple([
    z.strictObject({
      contentType: z.literal("application/vnd.microsoft.card.adaptive"),
      contentUrl: z.null(),
      content: card,
    }),
  ]),
});
const MOST_TEAMS_BYTES = 28 * 1_024;

export function readTeams(body: string): Seen {
  const { data, error } = teamsMessage.safeParse(JSON.parse(body));
  if (!data) return unreadable(error);
  const [{ content }] = data.attachments;
  const isLong = Buffer.byteLength(body) > MOST_TEAMS_BYTES;
  return {
    faults: isLong ? [`${Buffer.byteLength(body)} bytes`] : [],
    texts: content.body.flatMap(({ inlines }) => inlines.map(({ text }) => text)),
    links: (content.actions ?? []).map(({ title, url }) => ({ text: title, url })),
    // Only those whom `msteams.entities` names, which the schema refuses.
    calls: [],
  };
}

// https://docs.discord.com/developers/resources/webhook#execute-webhook,
// https://docs.discord.com/developers/resources/message#embed-object-embed-limits
const embed = z.strictObject({
  author: z.strictObject({ name: z.string().min(1).max(256) }).optional(),
  title: z.string().min(1).max(256),
  url: webUrl.optional(),
  description: z.string().min(1).max(4_096).optional(),
});
const discordMessage = z.strictObject({
  content: z.string().max(2_000).optional(),
  allowed_mentions: z.strictObject({ parse: z.tuple([]) }),
  embeds: z.array(embed).min(1).max(10),
});

export function readDiscord(body: string): Seen {
  const { data, error } = discordMessage.safeParse(JSON.parse(body));
  if (!data) return unreadable(error);
  const marked = data.embeds.flatMap(({ title, description }) => [title, ...(description ? [description] : [])]);
  const names = data.embeds.flatMap(({ author }) => (author ? [author.name] : []));
  const length = [...marked, ...names].join("").length;
  // A backslash before a sign is not shown, and the sign means nothing then.
  const bare = marked.map((text) => text.replaceAll(/\\[^0-9A-Za-z\s]/g, ""));
  return {
    faults: [
      ...(length > 6_000 ? [`${length} characters`] : []),
      ...bare.filter((text) => /[!-/:-@[-`{-~]/.test(text)).map((text) => `marked up: ${text}`),
    ],
    texts: [...names, ...marked.map((text) => text.replaceAll(/\\([^0-9A-Za-z\s])/g, "$1"))],
    links: data.embeds.flatMap(({ title, url }) => (url ? [{ text: title, url }] : [])),
    calls: [],
  };
}

function unreadable(error: z.ZodError | undefined): Seen {
  return { faults: [z.prettifyError(error ?? new z.ZodError([]))], texts: [], links: [], calls: [] };
}
