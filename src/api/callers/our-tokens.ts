/** The form of the tokens that `tain token create` makes. */
const OUR_TOKEN = /^tain_[0-9A-Za-z]{40}$/;

export function isOfOurForm(text: string): boolean {
  return OUR_TOKEN.test(text);
}

/** Whether the text begins as our tokens do. Such a text never goes to upstream, even where its form is wrong. */
export function beginsAsOurs(text: string): boolean {
  return text.startsWith("tain_");
}
