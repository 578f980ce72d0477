/** Shorter setting names are not checked: too many other variables are one edit away, as `HOME` is from `HOST`. */
const SHORTEST = 8;

/**
 * The variables that look like a misspelt setting, if that setting itself is not set. Other programs have variables in
 * the same environment. So a name counts as misspelt only if one letter is too many, missing or wrong, or if two
 * neighbours are swapped. Pure.
 */
export function misspeltNames(
  env: Readonly<Record<string, string | undefined>>,
  settings: readonly string[],
): { name: string; meant: string }[] {
  const known = new Set(settings);
  const missing = settings.filter((name) => name.length >= SHORTEST && !env[name]?.trim());
  return Object.keys(env).flatMap((name) => {
    if (known.has(name) || !env[name]?.trim()) return [];
    const meant = missing.find((setting) => isNear(name.toUpperCase(), setting));
    return meant === undefined ? [] : [{ name, meant }];
  });
}

/** Whether a single edit turns one name into the other. Pure. */
function isNear(one: string, other: string): boolean {
  if (Math.abs(one.length - other.length) > 1) return false;
  let start = 0;
  while (start < one.length && one[start] === other[start]) start++;
  let end = 0;
  while (end < Math.min(one.length, other.length) - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  const left = one.slice(start, one.length - end);
  const right = other.slice(start, other.length - end);
  return (left.length <= 1 && right.length <= 1) || (left.length === 2 && left[1] === right[0] && left[0] === right[1]);
}
