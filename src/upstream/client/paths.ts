/** More layers of percent-encoding than any proxy takes off. */
const MAX_LAYERS = 4;

/** A path leads elsewhere than it says once a proxy decodes it, so it is not sent. It is a bug of ours: callers' paths are checked. */
export class UnsafePathError extends Error {
  override name = "UnsafePathError";
}

/**
 * Whether a path leads where it says, however often its percent-encoding is taken off: no segment is dots, and there is no
 * backslash, NUL or other control character. An encoded slash may stand, since names of labels have it. Pure.
 * @param path with or without its query
 */
export function isSafePath(path: string): boolean {
  let text = path.split("?", 1)[0] ?? "";
  for (let layer = 0; layer <= MAX_LAYERS; layer++) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
    if (/[\\\u0000-\u001f\u007f]/.test(text) || /(^|\/)\.{1,2}(\/|$)/.test(text)) return false;
    if (!text.includes("%")) return true;
    const inner = decodedOnce(text);
    // What is no encoding is what it is.
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
