import { isObject, type Json, wholeOf } from "../../json.ts";

/** An installation of the App, as upstream shows it. */
export interface Installed {
  id: number;
  account: string;
  accountId: number | null;
  type: string;
  selection: string;
  /** JSON. */
  permissions: string;
  /** JSON. */
  events: string;
  suspendedAt: string | null;
}

/** Reads an installation. Null: the JSON shows none. Pure. */
export function installedBy(shown: Json | undefined): Installed | null {
  if (!isObject(shown) || !isObject(shown.account)) return null;
  const id = wholeOf(shown.id);
  if (id === null) return null;
  const { account, permissions, events, repository_selection: selection, suspended_at: suspendedAt } = shown;
  // GitHub docs: an enterprise has no login, and a slug.
  const login = account.login ?? account.slug;
  return {
    id,
    account: typeof login === "string" ? login : String(id),
    accountId: wholeOf(account.id),
    type: typeof account.type === "string" ? account.type : "Enterprise",
    selection: selection === "all" ? "all" : "selected",
    permissions: JSON.stringify(permissions ?? {}),
    events: JSON.stringify(events ?? []),
    suspendedAt: typeof suspendedAt === "string" ? suspendedAt : null,
  };
}
