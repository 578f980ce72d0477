/** The form of the tokens that `tain token create` makes. */
const OUR_TOKEN = /^tain_[0-9A-Za-z]{40}$/;

export function isOfOurForm(text: string): boolean {
  return OUR_TOKEN.test(text);
}

/** As long as a login may be, and shorter than the tokens of any kind. It is never taken for an id of 12 digits. */
const NAME = /^(?![0-9a-f]{12}$)[a-z0-9][a-z0-9-]{0,38}$/;

/** Whether an operator may name a token so. */
export function isTokenName(text: string): boolean {
  return NAME.test(text);
}

/** Whether the text begins as our tokens do. Such a text never goes to upstream, even where its form is wrong. */
export function beginsAsOurs(text: string): boolean {
  return text.startsWith("tain_");
}
