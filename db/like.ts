/** A text as a part of a pattern of `like` that stands for nothing but itself. */
export function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, "\\$&");
}
