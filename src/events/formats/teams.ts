import { fitted, type Notice } from "./notice.ts";

/** A message has 28 KB at most, in UTF-8: https://learn.microsoft.com/connectors/teams (known issues) */
const MOST_TITLE = 600;
const MOST_SHOWN = 1_000;

/**
 * A message for the flow "Post to a channel when a webhook request is received" of Power Automate's Workflows, with one
 * Adaptive Card: https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
 *
 * Runs of text have no Markdown, other than blocks of text:
 * https://learn.microsoft.com/adaptive-cards/schema-explorer/text-run. A card mentions only those whom its `msteams`
 * names. Pure.
 */
export function teamsMessage({ headline, subject, url, text }: Notice): object {
  const shown = subject === null ? headline : subject;
  const card = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    body: [
      ...(subject === null ? [] : [textBlock(fitted(headline, MOST_TITLE), { isSubtle: true })]),
      textBlock(fitted(shown, MOST_TITLE), { weight: "Bolder", size: "Medium" }),
      ...(text === null ? [] : [textBlock(fitted(text, MOST_SHOWN), {})]),
    ],
    ...(url === null ? {} : { actions: [{ type: "Action.OpenUrl", title: "Open", url }] }),
  };
  return {
    type: "message",
    attachments: [{ contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content: card }],
  };
}

function textBlock(text: string, style: object): object {
  return { type: "RichTextBlock", inlines: [{ type: "TextRun", text, ...style }] };
}
