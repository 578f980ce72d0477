const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const CONTENT_TYPE = new RegExp(`^\\s*${TOKEN}/${TOKEN}\\s*(;|$)`);

/** Whether a Content-Type names a type and a subtype, as RFC 9110 writes them. */
export function isContentType(header: string): boolean {
  return CONTENT_TYPE.test(header);
}
