import { fitted, type Notice } from "./notice.ts";

/** Of the top-level text, which is shown in notifications. Slack advises 4,000 and cuts at 40,000. */
const MOST_TEXT = 1_000;
/** Of a section's text: https://docs.slack.dev/reference/block-kit/blocks/section-block */
const MOST_SECTION = 3_000;
/** A message is a notice, and not the document. */
const MOST_SHOWN = 600;

/**
 * A message of Slack's incoming webhooks: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
 *
 * Texts of strangers are plain text, in which Slack formats nothing. Its three control characters are escaped, so that
 * they make no link and call nobody. Pure.
 */
export function slackMessage({ headline, subject, url, text }: Notice): object {
  const title = subject === null ? headline : `${headline}\n${subject}`;
  return {
    text: fitted(title, MOST_TEXT, escaped),
    mrkdwn: false,
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      plainSection(title),
      ...(text === null ? [] : [plainSection(fitted(text, MOST_SHOWN))]),
      ...(url === null ? [] : [{ type: "context", elements: [{ type: "mrkdwn", text: `<${linked(url)}|Open>` }] }]),
    ],
  };
}

function plainSection(text: string): object {
  return { type: "section", text: { type: "plain_text", text: fitted(text, MOST_SECTION, escaped), emoji: false } };
}

/** https://docs.slack.dev/messaging/formatting-message-text#escaping */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** An address within a link, which a bar would end. */
function linked(url: string): string {
  return escaped(url.replaceAll("|", "%7C").replaceAll("<", "%3C").replaceAll(">", "%3E"));
}
