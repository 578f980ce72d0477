import { isSameSecret } from "../config/same-secret.ts";
import type { Exchange } from "../http/exchange.ts";

/**
 * Whether the caller shows the operator's token. The caller's address is no proof: behind a proxy or tunnel on this
 * machine, every stranger seems to call from here.
 */
export function isOperator({ headers }: Pick<Exchange, "headers">, operatorToken: string | null): boolean {
  const [, given] = /^bearer +(\S+)$/i.exec(headers.authorization ?? "") ?? [];
  return given !== undefined && operatorToken !== null && isSameSecret(given, operatorToken);
}
