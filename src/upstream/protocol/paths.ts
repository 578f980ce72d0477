// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const UNSENDABLE = /[\u0000\n\r]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const ENCODED_ONLY = /[\\\u0000-\u001f\u007f]/;

/** More layers of percent-encoding than any proxy decodes. */
const MAX_LAYERS = 4;

/**
 * A path would lead elsewhere after a proxy decodes it, so it is not sent. This is a bug of ours, since callers' paths
 * are checked.
 */
export class UnsafePathError extends Error {
  override name = "UnsafePathError";
}

/**
 * Whether a path leads to the same place however often it is decoded. No segment may be dots, also where a backslash
 * counts as a slash, and no byte may end a line or a text. Encoded, names of labels may have any other character. Pure.
 * @param path with or without its query
 */
export function isSafePath(path: string): boolean {
  let text = path.split("?", 1)[0] ?? "";
  for (let layer = 0; layer <= MAX_LAYERS; layer++) {
    if (UNSENDABLE.test(text) || /(^|[/\\])\.{1,2}([/\\]|$)/.test(text)) return false;
    if (layer === 0 && ENCODED_ONLY.test(text)) return false;
    if (!text.includes("%")) return true;
    const inner = decodedOnce(text);
    // A text that decodes to itself, or not at all, stays as it is.
    if (inner === null || inner === text) return true;
    text = inner;
  }
  return false;
}

function decodedOnce(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

/** Words of a path that are followed by a name. The name may contain slashes. */
const NAME_IN_PATH = /\/(labels|branches|refs|ref|tags|contents|commits|compare|assignees|collaborators|statuses)\/.+$/;

/** A path segment that is not a word of the API, such as a number, a hash or a token. */
const NO_WORD = /(?<=\/)(?![a-z][a-z_-]*(?:\/|$))[^/]+/g;

/** The path with a star for each name and number in it. Pure. */
export function pathFormOf(path: string): string {
  return path
    .replace(/\?.*$/s, "")
    .replace(/^\/repos\/[^/]+\/[^/]+/, "/repos/*/*")
    .replace(/^\/repositories\/\d+/, "/repos/*/*")
    .replace(/^\/(orgs|users|organizations)\/[^/]+/, "/$1/*")
    .replace(NAME_IN_PATH, "/$1/*")
    .replace(NO_WORD, "*");
}
