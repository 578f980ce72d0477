import type { Setting } from "./setting.ts";
import { allowance, count, logins, oneOf, origins, serverVersion, size, span, timeout } from "./values.ts";

/** Who may ask, what it costs them, and what answers are made of. */
export const CALLER_SETTINGS = {
  authMode: {
    name: "AUTH_MODE",
    read: oneOf("tokens", "upstream", "both"),
    default: "both",
    about:
      "Which tokens callers of the API may show: those that `tain token create` makes (`tokens`), upstream's own, with which upstream is asked who they are and what they see of private repositories (`upstream`), or either (`both`).",
  },
  upstreamCallerTtlMs: {
    name: "UPSTREAM_CALLER_TTL",
    read: span,
    default: "60s",
    about:
      "How long upstream's word about a caller who shows one of its tokens is believed: who it is, what they see of private repositories, and what they may do in public ones. A token that was revoked there is refused here after as long.",
  },
  allowedUsers: {
    name: "ALLOWED_USERS",
    read: logins,
    default: "",
    about:
      "Whom upstream's tokens may belong to: logins, comma separated, an App's as `name[bot]`. Everybody who has a token of upstream's may ask where neither this nor `ALLOWED_ORGANIZATIONS` is set. Tokens of Tain's own are not judged by it.",
  },
  allowedOrganizations: {
    name: "ALLOWED_ORGANIZATIONS",
    read: logins,
    default: "",
    about:
      "Organizations whose members' tokens of upstream's are accepted, beside those of `ALLOWED_USERS`: logins, comma separated. Upstream is asked with the caller's token, which may need the scope `read:org` for that.",
  },
  hidesPaused: {
    name: "PAUSED_REPOSITORIES",
    read: (text) => oneOf("hidden", "shown")(text) === "hidden",
    default: "hidden",
    about:
      "What becomes of a repository that upstream does not show any more (`paused`), perhaps because its owner hid it: `hidden` takes it for private until upstream shows it again, `shown` leaves it as it was.",
  },
  anonymous: {
    name: "ANONYMOUS",
    read: oneOf("public", "off"),
    default: "public",
    about:
      "What callers without a token may read: what is public, or nothing (`off`). Nothing is 401 on every route of the API, as from an enterprise server in private mode.",
  },
  corsOrigins: {
    name: "CORS_ORIGINS",
    read: origins,
    default: "*",
    about:
      "The web pages that may read the API through their visitors' browsers: `*` for all, as at the service, origins such as `https://app.example`, comma separated, or `none`.",
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
      "How many reads of upstream an hour each caller with a token of Tain's may cause at the cost of the mirror's own quota there (`?fresh=true`, an account's own page). Callers without a token have as many together. Upstream's own tokens pay for themselves.",
  },
  upstreamReads: {
    name: "UPSTREAM_READS",
    read: count,
    default: "500",
    about: "The same for all callers together, whatever each may.",
  },
  failedLoginsPerAddress: {
    name: "FAILED_LOGINS_PER_ADDRESS",
    read: count,
    default: "10",
    about:
      "How many tokens that turn out to be none each address may show in a minute. Then tokens that a process does not know yet are 403 from there until the minute is over.",
  },
  failedLogins: {
    name: "FAILED_LOGINS",
    read: count,
    default: "60",
    about: "How many such tokens of all addresses together upstream is asked about in a minute. Then those are 503.",
  },
  streamsPerCaller: {
    name: "STREAMS_PER_CALLER",
    read: count,
    default: "10",
    about:
      "How many streams (GraphQL subscriptions, the feed of events) a caller may have open at once, in each web process.",
  },
  streamLifetimeMs: {
    name: "STREAM_LIFETIME",
    read: timeout,
    default: "1h",
    about: "How long a stream stays open. Then it ends, and its caller asks again.",
  },
  passThrough: {
    name: "PASS_THROUGH",
    read: (text) => {
      const value = oneOf("off", "on", "all")(text);
      return value === "off" ? false : value;
    },
    default: "all",
    about:
      "Who has upstream asked for what Tain does not mirror. `on`: callers who show a token of upstream's, with that token and at the cost of its quota. `all`: also everyone else, for what is below a repository that they may see (contents, commits, checks; docs/reading.md has the list), with the mirror's own credential and within `UPSTREAM_READS_PER_CALLER` and `UPSTREAM_READS`. For whom it is not asked, the answer is a 403 that says so.",
  },
  forwardCacheBytes: {
    name: "FORWARD_CACHE_BYTES",
    read: (text) => (text === "0" ? 0 : size(text)),
    default: "256MB",
    about:
      "How much of the database is spent on upstream's answers to what Tain only forwards (files, commits, checks), so that they cost nobody's quota again while they are unchanged; 0 is off. Nobody is given one that upstream has not shown to their own token. Beyond it those go that were of no use for longest.",
  },
  enterpriseVersion: {
    name: "ENTERPRISE_VERSION",
    read: serverVersion,
    default: "3.20.0",
    about:
      "Which version of an enterprise server Tain says that it is, below `/api/v3` and `/api/graphql`: some clients ask it what they may use. Where the upstream is an enterprise server, set its own.",
  },
  pageCacheBytes: {
    name: "PAGE_CACHE_BYTES",
    read: (text) => (text === "0" ? 0 : size(text)),
    default: "64MB",
    about:
      "How much memory each web process spends on answers of REST that it has given more than once, and as much again on those of GraphQL (half of it on the texts of single issues), to give them again while nothing of what they show has changed; 0 is off.",
  },
  staleAfterMs: {
    name: "STALE_AFTER",
    read: span,
    default: "15m",
    about:
      "When upstream has confirmed nothing of a repository for so long, answers about it say so (`Warning`). Set it well above `CATCH_UP_INTERVAL`.",
  },
} satisfies Record<string, Setting<unknown>>;
