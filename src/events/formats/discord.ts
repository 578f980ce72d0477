import { fitted, type Notice } from "./notice.ts";

/** https://docs.discord.com/developers/resources/message#embed-object-embed-limits; 6,000 in all */
const MOST_AUTHOR = 256;
const MOST_TITLE = 256;
/** Of 4,096. With the others it stays far below 6,000. */
const MOST_DESCRIPTION = 2_048;
const MOST_SHOWN = 1_000;

/**
 * A message of Discord's webhooks: https://docs.discord.com/developers/resources/webhook#execute-webhook
 *
 * Whatever is written in it, it calls nobody. Pure.
 */
export function discordMessage({ headline, subject, url, text }: Notice): object {
  return {
    allowed_mentions: { parse: [] },
    embeds: [
      {
        // Names of authors have no Markdown.
        ...(subject === null ? {} : { author: { name: fitted(headline, MOST_AUTHOR) } }),
        title: fitted(subject ?? headline, MOST_TITLE, escaped),
        ...(url === null ? {} : { url }),
        ...(text === null ? {} : { description: fitted(fitted(text, MOST_SHOWN), MOST_DESCRIPTION, escaped) }),
      },
    ],
  };
}

/** Discord's Markdown takes a backslash before any sign of ASCII, and then the sign as it is. */
function escaped(text: string): string {
  return text.replaceAll(/[!-/:-@[-`{-~]/g, "\\$&");
}
