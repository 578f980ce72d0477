import type { Config } from "../../config.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { Reply } from "../../http/reply.ts";
import type { Route } from "../../http/router.ts";
import type { ApiContext } from "../call.ts";
import { apiAddress } from "../dialect/addresses.ts";
import { faultReply } from "../dialect/failure.ts";
import { ApiFault } from "../dialect/fault.ts";
import { cacheHeaders, dialectReply, isUnchanged, JSON_TYPE } from "../dialect/reply.ts";
import type { RequestIds } from "../dialect/request-id.ts";
import { apiSchema } from "../graphql/schema.ts";
import type { ServedOperation } from "../operation.ts";
import { describeApi } from "./document.ts";
import { descriptionPage, PAGE_POLICY } from "./page.ts";
import { escaped } from "./prose.ts";
import { readPublished } from "./published.ts";

/** Stand for the caller's address in what is made once. No such hosts can exist. */
const [ADDRESS, HOST] = ["https://address-of-the-caller.invalid", "host-of-the-caller.invalid"];

/** What the API is: `/-/openapi.json` for programs, `/-/docs` for people. To anybody, and for nothing. */
export function description(
  { config, requestIds }: Pick<ApiContext, "config"> & { requestIds: RequestIds },
  operations: readonly ServedOperation[],
): Route[] {
  // Made when it is first asked for, so that nobody else waits for it.
  let made: { json: string; page: string } | null = null;
  const whole = () => {
    made ??= write(operations, config);
    return made;
  };
  return [
    {
      method: "GET",
      path: "/-/openapi.json",
      handle: (exchange) =>
        show(config, exchange, requestIds.next(), (address) => ({
          body: whole().json.replaceAll(ADDRESS, () => JSON.stringify(address).slice(1, -1)),
          headers: { "Content-Type": JSON_TYPE },
        })),
    },
    {
      method: "GET",
      path: "/-/docs",
      handle: (exchange) =>
        show(config, exchange, requestIds.next(), (address) => ({
          body: whole()
            .page.replaceAll(ADDRESS, () => escaped(address))
            .replaceAll(HOST, () => escaped(new URL(address).host)),
          headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": PAGE_POLICY },
        })),
    },
  ];
}

function show(
  config: Config,
  exchange: Exchange,
  requestId: string,
  written: (address: string) => { body: string; headers: Record<string, string> },
): Reply {
  const { address, headers: asked } = exchange;
  try {
    const { body, headers: own } = written(apiAddress(config, exchange, { isEnterprise: false }));
    const headers = { ...own, ...cacheHeaders({ status: 200, body }, { kind: "anonymous", address }, asked) };
    return isUnchanged(headers, asked)
      ? dialectReply(requestId, { status: 304, headers, body: null })
      : dialectReply(requestId, { status: 200, headers, body });
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    return faultReply(requestId, error, "https://docs.github.com/rest");
  }
}

function write(operations: readonly ServedOperation[], config: Config): { json: string; page: string } {
  const description = describeApi(operations, readPublished(), { ...config, api: ADDRESS });
  const page = descriptionPage(description, apiSchema(), { ...config, api: ADDRESS, host: HOST });
  return { json: JSON.stringify(description), page };
}
