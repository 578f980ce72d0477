import { type Command, CommandError, type Given, UsageError } from "./command.ts";
import { readInstance } from "./instance.ts";

/** The option that names the mirror of `mirrorAddress`. */
export const MIRROR_URL: NonNullable<Command["values"]> = {
  url: { takes: "URL", about: "another mirror than the one that runs here; TAIN_TOKEN is shown to it" },
};

/** Where a mirror's API is. `token`: what is shown to it; null: another mirror, and no TAIN_TOKEN. */
export interface MirrorAddress {
  url: string;
  token: string | null;
}

/** The mirror that `--url` names, or the one that runs here. @throws UsageError, CommandError */
export async function mirrorAddress(values: Given["values"], env: NodeJS.ProcessEnv): Promise<MirrorAddress> {
  const token = env.TAIN_TOKEN?.trim() || null;
  // It is not repeated, nor would HTTP's own error leave it out.
  if (token !== null && !/^[\x21-\x7e]+$/.test(token))
    throw new UsageError("TAIN_TOKEN is no token: see what it holds");
  const other = values.get("url");
  if (other !== undefined) return { url: checkedUrl(other), token };
  const home = env.TAIN_HOME?.trim() || ".tain";
  const instance = await readInstance({ home });
  if (!instance)
    throw new CommandError(`Tain has not run in ${home} yet: begin with \`npm start\`, or name a mirror by --url`);
  return { url: instance.apiUrl, token: token ?? instance.token };
}

/** The token, where one has to be shown. @throws UsageError */
export function requiredToken({ token }: MirrorAddress): string {
  if (token === null) throw new UsageError("--url needs TAIN_TOKEN in the environment: a token of that mirror's");
  return token;
}

/** Without its last slashes. @throws UsageError */
function checkedUrl(text: string): string {
  const url = URL.parse(text);
  if (!url) throw new UsageError(`--url ${text} is no address`);
  // The address is not repeated: a password would stand in the error.
  if (url.username || url.password)
    throw new UsageError("--url takes no password: TAIN_TOKEN is what a mirror is shown");
  if (!["http:", "https:"].includes(url.protocol))
    throw new UsageError(`--url ${text} begins with http:// or https://`);
  return text.replace(/\/+$/, "");
}
