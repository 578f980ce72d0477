import type { Setting } from "./setting.ts";
import { allowance, count, logins, oneOf, origins, serverVersion, sizeOrNone, span } from "./values.ts";

/** Who may ask, what it costs them, and what answers are made of. */
export const CALLER_SETTINGS = {
  authMode: {
    name: "AUTH_MODE",
    read: oneOf("tokens", "upstream", "both"),
    default: "both",
    about:
      "Which tokens callers of the API may show: those of `tain token create` (`tokens`), upstream's own (`upstream`), or either (`both`).",
  },
  upstreamCallerTtlMs: {
    name: "UPSTREAM_CALLER_TTL",
    read: span,
    default: "60s",
    about:
      "How long upstream's word about a caller with one of its tokens is believed. A token that was revoked there is refused here within this time.",
  },
  allowedUsers: {
    name: "ALLOWED_USERS",
    read: logins,
    default: "",
    about:
      "The logins whose upstream tokens are accepted, comma separated, an App's as `name[bot]`. With neither this nor `ALLOWED_ORGANIZATIONS` set, all are. Tain's own tokens are not affected.",
  },
  allowedOrganizations: {
    name: "ALLOWED_ORGANIZATIONS",
    read: logins,
    default: "",
    about:
      "Organizations whose members' upstream tokens are accepted, comma separated. Upstream is asked with the caller's token, which may need the scope `read:org`.",
  },
  hidesPaused: {
    name: "PAUSED_REPOSITORIES",
    read: (text) => oneOf("hidden", "shown")(text) === "hidden",
    default: "hidden",
    about:
      "What happens to a repository that upstream no longer shows (`paused`). `hidden` takes it for private until upstream shows it again; `shown` leaves it as it was.",
  },
  anonymous: {
    name: "ANONYMOUS",
    read: oneOf("public", "off"),
    default: "public",
    about:
      "What callers without a token may read: what is `public`, or nothing (`off`): 401 on every route of the API.",
  },
  corsOrigins: {
    name: "CORS_ORIGINS",
    read: origins,
    default: "*",
    about:
      "The web pages that may read the API in browsers: `*` for all, as at the service, origins such as `https://app.example`, comma separated, or `none`.",
  },
  rateLimitUser: {
    name: "RATE_LIMIT_USER",
    read: allowance,
    default: "5000",
    about: "REST requests an hour for each of our own callers; 0 is off.",
  },
  rateLimitAnonymous: {
    name: "RATE_LIMIT_ANONYMOUS",
    read: allowance,
    default: "60",
    about: "REST requests an hour for each address without a token; 0 is off.",
  },
  rateLimitSearchUser: {
    name: "RATE_LIMIT_SEARCH_USER",
    read: allowance,
    default: "30",
    about: "Searches by REST a minute for each of our own callers; 0 is off.",
  },
  rateLimitSearchAnonymous: {
    name: "RATE_LIMIT_SEARCH_ANONYMOUS",
    read: allowance,
    default: "10",
    about: "Searches by REST a minute for each address without a token; 0 is off.",
  },
  rateLimitGraphql: {
    name: "RATE_LIMIT_GRAPHQL",
    read: allowance,
    default: "5000",
    about: "GraphQL points an hour for each of our own callers; 0 is off.",
  },
  upstreamReadsPerCaller: {
    name: "UPSTREAM_READS_PER_CALLER",
    read: count,
    default: "100",
    about:
      "How many upstream reads an hour each caller with a token of Tain's may cause at the mirror's own cost. Callers without a token have as many together.",
  },
  upstreamReads: {
    name: "UPSTREAM_READS",
    read: count,
    default: "500",
    about: "The same limit for all callers together.",
  },
  failedLoginsPerAddress: {
    name: "FAILED_LOGINS_PER_ADDRESS",
    read: count,
    default: "10",
    about:
      "How many invalid tokens each address may show in a minute. Then unknown tokens from there are answered 403 until the minute is over.",
  },
  failedLogins: {
    name: "FAILED_LOGINS",
    read: count,
    default: "60",
    about:
      "How many such tokens upstream is asked about in a minute, for all addresses. Further ones are answered 503. As many again are kept for networks where a token was accepted within a week, and for Apps.",
  },
  streamsPerCaller: {
    name: "STREAMS_PER_CALLER",
    read: count,
    default: "10",
    about:
      "How many streams (GraphQL subscriptions, the feed of events) a caller may have open at once, in each web process.",
  },
  forwarding: {
    name: "PASS_THROUGH",
    read: (text) => {
      const value = oneOf("off", "on", "all")(text);
      return value === "off" ? false : value;
    },
    default: "all",
    about:
      "Whose requests are forwarded where Tain does not mirror the answer. `on`: those of callers with an upstream token, with that token. `all`: also reads of other callers below a repository that they may see (docs/reading.md), with the mirror's own credential, within `UPSTREAM_READS_PER_CALLER` and `UPSTREAM_READS`. `off`: nobody's.",
  },
  forwardsApps: {
    name: "PASS_THROUGH_APPS",
    read: oneOf("auto", "on", "off"),
    default: "auto",
    about:
      "Whether what Apps ask about themselves (`/app`, `…/installation`) is forwarded: `on`, `off`, or `auto`: unless `ALLOWED_USERS` or `ALLOWED_ORGANIZATIONS` is set. Each network has `RATE_LIMIT_USER` such questions an hour.",
  },
  forwardCacheBytes: {
    name: "FORWARD_CACHE_BYTES",
    read: sizeOrNone,
    default: "256MB",
    about:
      "How much of the database may hold upstream's answers to forwarded reads; 0 is off. A caller gets one only if upstream has shown it to their own token.",
  },
  enterpriseVersion: {
    name: "ENTERPRISE_VERSION",
    read: serverVersion,
    default: "3.20.0",
    about:
      "Which version of an enterprise server Tain says that it is, below `/api/v3` and `/api/graphql`. Where the upstream is an enterprise server, set its own.",
  },
  pageCacheBytes: {
    name: "PAGE_CACHE_BYTES",
    read: sizeOrNone,
    default: "64MB",
    about:
      "How much memory each web process may use to cache REST answers, and as much again for GraphQL; 0 caches none. Their index takes an eighth more. Counts and shared rows take up to 64 MB besides.",
  },
} satisfies Record<string, Setting<unknown>>;
