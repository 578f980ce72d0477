/** Whether `If-None-Match` names the tag. Compared weakly: compression turns a strong tag into a weak one. Pure. */
export function namesTag(tags: string, tag: string): boolean {
  const strong = (one: string) => one.trim().replace(/^W\//, "");
  return tags.trim() === "*" || tags.split(",").some((one) => strong(one) === strong(tag));
}
