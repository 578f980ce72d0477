import type { Exchange } from "../../http/exchange.ts";
import { escapedHtml } from "../../http/html.ts";
import { isUnchanged, JSON_TYPE, type Reply } from "../../http/reply.ts";
import type { Route } from "../../http/router.ts";
import type { Pace } from "../../work/pace.ts";
import type { ApiContext } from "../call/call.ts";
import { faultReply } from "../call/failure.ts";
import type { ServedOperation } from "../call/operation.ts";
import { ApiFault } from "../dialect/fault.ts";
import { apiAddress, dialectReply, type RequestIds } from "../dialect/protocol.ts";
import { apiSchema } from "../graphql/schema.ts";
import { cacheHeaders } from "../rest/run.ts";
import { describeApi } from "./document.ts";
import { descriptionPage, PAGE_POLICY } from "./page.ts";
import { readPublished } from "./published.ts";

/** Placeholders for the caller's address, and for gh's variables, in texts that are made once. No such hosts can exist. */
const [ADDRESS, GH] = ["https://address-of-the-caller.invalid", "gh-of-the-caller.invalid"];

/**
 * The routes that describe the API: `/-/openapi.json` for programs, `/-/docs` for people. They are free, and open to
 * all.
 */
export function description(
  {
    config,
    clock,
    mirror: { pace },
    requestIds,
  }: Pick<ApiContext, "config" | "clock" | "mirror"> & { requestIds: RequestIds },
  operations: readonly ServedOperation[],
): Route[] {
  // Each description is made when it is first asked for. It is made step by step, so that nobody else waits for it.
  const giveWay = async () => {
    if (pace.isOver()) await pace.turn();
  };
  const described = once(async () => {
    await giveWay();
    const published = readPublished();
    await giveWay();
    return describeApi(operations, published, { ...config, api: ADDRESS });
  });
  const json = once(async () => {
    const whole = await described();
    await giveWay();
    return JSON.stringify(whole);
  });
  const page = once(async () => {
    const whole = await described();
    await giveWay();
    let text = "";
    for (const piece of descriptionPage(whole, apiSchema(), { ...config, api: ADDRESS, gh: GH })) {
      text += piece;
      await giveWay();
    }
    return text;
  });
  return [
    {
      method: "GET",
      path: "/-/openapi.json",
      handle: (exchange) =>
        pageReply({ config, clock, pace }, exchange, requestIds.next(), async (address) => ({
          body: (await json()).replaceAll(ADDRESS, () => JSON.stringify(address).slice(1, -1)),
          headers: { "Content-Type": JSON_TYPE },
        })),
    },
    {
      method: "GET",
      path: "/-/docs",
      handle: (exchange) =>
        pageReply({ config, clock, pace }, exchange, requestIds.next(), async (address) => ({
          body: (await page())
            .replaceAll(ADDRESS, () => escapedHtml(address))
            .replaceAll(GH, () => escapedHtml(ghVariables(address))),
          headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": PAGE_POLICY },
        })),
    },
  ];
}

async function pageReply(
  { config, clock, pace }: Pick<ApiContext, "config" | "clock"> & { pace: Pace },
  exchange: Exchange,
  requestId: string,
  written: (address: string) => Promise<{ body: string; headers: Record<string, string> }>,
): Promise<Reply> {
  const { address, headers: asked } = exchange;
  try {
    const { body, headers: own } = await written(apiAddress(config, exchange, { isEnterprise: false }));
    const headers = {
      ...own,
      ...(await cacheHeaders(
        { status: 200, body },
        { kind: "anonymous", address },
        { request: asked, agent: undefined, pace, now: clock.now() },
      )),
    };
    return isUnchanged(headers, asked)
      ? dialectReply(requestId, { status: 304, headers, body: null })
      : dialectReply(requestId, { status: 200, headers, body });
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    return faultReply(requestId, error);
  }
}

/** How gh is led here: it speaks plain HTTP to one name alone, to which this mirror is the proxy. Pure. */
function ghVariables(address: string): string {
  const { protocol, host } = new URL(address);
  if (protocol === "https:") return `GH_HOST=${host} GH_ENTERPRISE_TOKEN=$TOKEN`;
  return `http_proxy=${address} GH_HOST=github.localhost GH_TOKEN=$TOKEN`;
}

/** Makes something once, for all who ask for it. */
function once<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | null = null;
  return () => {
    made ??= make();
    return made;
  };
}
