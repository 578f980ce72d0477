import { isSameSecret } from "../config/same-secret.ts";
import type { Exchange } from "../http/exchange.ts";

/**
 * Whether the caller shows the operator's token. From where a request comes says nothing: behind a proxy or a tunnel of
 * this machine every stranger seems to sit here.
 */
export function isOperator({ headers }: Pick<Exchange, "headers">, operatorToken: string | null): boolean {
  const [, given] = /^bearer +(\S+)$/i.exec(headers.authorization ?? "") ?? [];
  return given !== undefined && operatorToken !== null && isSameSecret(given, operatorToken);
}
