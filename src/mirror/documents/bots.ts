import type { Fields, Json } from "../../json.ts";
import { PLACEHOLDER } from "../../kinds/contract/placeholders.ts";

// The bot of an App has one id, and several logins by the place where it stands: `name[bot]` as the author of a review,
// and a bare name as that of a comment. The account is stored under the App's name; each place keeps its own.

/** The App whose page this is; null: it is no App's. Pure. */
export function appOf(page: Json | undefined): string | null {
  return (typeof page === "string" && /\/apps\/([^/?#]+)$/.exec(page)?.[1]) || null;
}

/** The login by which a bot is stored, as its App's page names it; null: nothing shows its App. Pure. */
export function botLogin({ login, html_url }: Fields): string | null {
  const app = appOf(html_url);
  if (app !== null) return `${app}[bot]`;
  return typeof login === "string" && login.endsWith("[bot]") ? login : null;
}

/** The stored form of an account under another login, with the addresses that are made of it. Pure. */
export function withLogin(account: Fields, login: string): Fields {
  const [known, given] = [String(account.login), login].map((name) => below(name));
  const renamed = Object.entries(account).map(([key, value]): [string, Json] => {
    if (key === "login") return [key, login];
    if (typeof value !== "string" || known === undefined || !value.startsWith(known)) return [key, value];
    const rest = value.slice(known.length);
    return [key, rest === "" || "/{".includes(rest.charAt(0)) ? given + rest : value];
  });
  return Object.fromEntries(renamed);
}

function below(login: string): string {
  return `${String.fromCharCode(PLACEHOLDER.api)}/users/${encodeURIComponent(login)}`;
}
