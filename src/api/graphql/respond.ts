import type { Exchange } from "../../http/exchange.ts";
import type { Reply } from "../../http/reply.ts";
import type { QuotaFigures } from "../callers/quota.ts";
import { dialectReply, JSON_TYPE, quotaHeaders } from "../dialect/reply.ts";
import type { RequestFigures } from "../metering.ts";
import type { TimeLimit } from "./time-limit.ts";

/** What is known of a request so far. */
export interface GraphqlProgress {
  exchange: Exchange;
  requestId: string;
  metered: RequestFigures;
  /** The headers that say which server this is. */
  server: Record<string, string>;
  figures: QuotaFigures | null;
  freshness: Record<string, string>;
  limit: TimeLimit | null;
}

export function reply(
  { requestId, server, figures, freshness }: GraphqlProgress,
  status: number,
  body: string | Buffer,
  headers: Record<string, string> = {},
): Reply {
  const media = { "Content-Type": JSON_TYPE, "X-GitHub-Media-Type": "github.v4; format=json" };
  const all = { ...server, ...media, ...freshness, ...headers, ...quotaHeaders(figures, "graphql") };
  return dialectReply(requestId, { status, headers: all, body });
}
