import { objectOf } from "../../src/json.ts";
import type { Difference } from "./differences.ts";
import type { Exchange } from "./exchanges.ts";

/** Why an answer of the mirror may differ from what was recorded. A difference that no rule explains fails. */
export interface DifferenceRule {
  name: string;
  why: string;
  explains(difference: Difference, exchange: Exchange): boolean;
}

/** Whether the recording is older than this day. Marks may stand in place of digits. */
function before(day: string, { headers }: Exchange): boolean {
  const at = Date.parse((headers.date ?? "").replace(/<\w+>/, "00"));
  if (Number.isNaN(at)) throw new Error(`A recording has no date: ${headers.date}`);
  return at < Date.parse(day);
}

/** Only octokit.rb's recordings are files of JSON. */
const isRuby = ({ session }: Exchange) => session.endsWith(".json");

/** Headers that the service sends since a day, as the recordings show. */
const SINCE: Readonly<Record<string, string>> = {
  "x-accepted-oauth-scopes": "2014-02-01",
  "x-ratelimit-reset": "2013-07-16",
  "x-github-request-id": "2013-12-01",
  vary: "2019-12-01",
  "x-ratelimit-used": "2020-10-28",
  "x-ratelimit-resource": "2022-07-19",
  "x-github-api-version-selected": "2022-07-25",
  // GitHub docs: calls that the next version breaks, from its day on.
  deprecation: "2026-03-10",
  sunset: "2026-03-10",
  link: "2026-03-10",
};

/** Headers that the service sent until a day. */
const UNTIL: Readonly<Record<string, string>> = {
  "access-control-allow-credentials": "2016-01-01",
  "x-served-by": "2017-06-01",
  "x-runtime-rack": "2018-10-01",
  "content-type": "2019-01-01",
  status: "2020-11-01",
};

/** Values that the service sent until a day, and those that it sends today. */
const FORMER: readonly { header: string; until: string; was: RegExp; is: RegExp }[] = [
  { header: "x-github-media-type", until: "2014-01-01", was: /^github\.beta;/, is: /^github\.v3; format=json$/ },
  // Previews have become usual.
  { header: "x-github-media-type", until: "2019-01-01", was: /-preview/, is: /^github\.v3; format=json$/ },
  { header: "cache-control", until: "2014-01-01", was: /must-revalidate/, is: /^(private, max-age=60, |no-cache$)/ },
  {
    ...{ header: "vary", until: "2020-01-01" },
    was: /^((Accept, )?(Authorization, Cookie, (X-GitHub-OTP, )?)?Accept-Encoding|Accept(, Authorization, Cookie, X-GitHub-OTP)?)$/,
    is: /^(Accept, (Authorization, Cookie, X-GitHub-OTP, )?)?Accept-Encoding, Accept, X-Requested-With$/,
  },
  // The quota of searches of that time.
  { header: "x-ratelimit-limit", until: "2014-12-31", was: /^20$/, is: /^30$/ },
  { header: "x-ratelimit-limit", until: "2014-12-31", was: /^5$/, is: /^10$/ },
  { header: "x-github-api-version-selected", until: "2022-11-28", was: /^2022-08-09$/, is: /^2022-11-28$/ },
  { header: "x-accepted-oauth-scopes", until: "2019-01-01", was: /./, is: /^(repo)?$/ },
];

/** Headers of this mirror alone. */
const OWN = /^header (x-tain-(confirmed-at|not-confirmed|part|hint)|age|warning)$/;
/** The names of these headers that web pages may read beside the service's. */
const OWN_EXPOSED =
  ", Age, Warning, X-Cache, X-Tain-Confirmed-At, X-Tain-Hint, X-Tain-Missing, X-Tain-Not-Confirmed, X-Tain-Part, X-Tain-Passed-Through";
const EXPOSED =
  "ETag, Link, Location, Retry-After, X-GitHub-OTP, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Used, X-RateLimit-Resource, X-RateLimit-Reset, X-OAuth-Scopes, X-Accepted-OAuth-Scopes, X-Poll-Interval, X-GitHub-Media-Type, X-GitHub-SSO, X-GitHub-Request-Id, Deprecation, Sunset";

const headerRules: readonly DifferenceRule[] = [
  {
    name: "headers of this mirror",
    why: "They say how fresh an answer is and what it covers, and are exposed to web pages.",
    explains: ({ at, in: how, recorded, answered }) =>
      (how === "added" && OWN.test(at)) ||
      (at === "header access-control-expose-headers" &&
        answered === EXPOSED + OWN_EXPOSED &&
        // The service has added names to the list over the years, and removed none.
        String(recorded)
          .split(", ")
          .every((name) => EXPOSED.split(", ").includes(name))),
  },
  {
    name: "headers of the connection",
    why: "They are about the transport, where another server answers; HSTS is left to the proxy that ends TLS.",
    explains: ({ at, in: how }) =>
      how === "added"
        ? /^header (connection|keep-alive|content-length|content-encoding)$/.test(at)
        : /^header (connection|server|strict-transport-security)$/.test(at) ||
          (how === "missing" && /^header (content-length|transfer-encoding)$/.test(at)),
  },
  {
    name: "headers that a recording leaves out",
    why: "Security headers were taken out of octokit.rb's recordings, as their README says.",
    explains: ({ at, in: how }, exchange) =>
      isRuby(exchange) &&
      how === "added" &&
      /^header (x-frame-options|x-xss-protection|referrer-policy|content-security-policy)$/.test(at),
  },
  {
    name: "headers that the service sends since then",
    why: "The recording is older than the header.",
    explains: ({ at, in: how, answered }, exchange) => {
      const day = SINCE[at.replace("header ", "")];
      const isOld = day !== undefined && how === "added" && before(day, exchange);
      return isOld && (at !== "header link" || /rel="deprecation"/.test(String(answered)));
    },
  },
  {
    name: "headers that the service sends no longer",
    why: "Only older recordings have them.",
    explains: ({ at, in: how }, exchange) => {
      const day = UNTIL[at.replace("header ", "")];
      return day !== undefined && how === "missing" && before(day, exchange);
    },
  },
  {
    name: "headers with a former value",
    why: "The service wrote another value then, and the mirror writes today's.",
    explains: ({ at, in: how, recorded, answered }, exchange) =>
      how === "value" &&
      FORMER.some(
        ({ header, until, was, is }) =>
          at === `header ${header}` &&
          before(until, exchange) &&
          was.test(String(recorded)) &&
          is.test(String(answered)),
      ),
  },
  {
    name: "scopes of a redirect",
    why: "The service named the scopes of all that one may do with a repository, and the mirror those of what was asked.",
    explains: ({ at, in: how, answered }, { status }) =>
      at === "header x-accepted-oauth-scopes" && how === "value" && status === 301 && answered === "repo",
  },
  {
    name: "headers of the recorded token",
    why: "When a token of upstream's ends is told by upstream alone.",
    explains: ({ at, in: how }) => how === "missing" && at === "header github-authentication-token-expiration",
  },
  {
    name: "tags of compressed answers",
    why: "A weak tag says that the body was compressed. Before 2015 the service sent strong ones all the same; it also compresses short bodies, which travel here as they are.",
    explains: ({ at, in: how, recorded }, exchange) =>
      at === "header etag" &&
      how === "value" &&
      (recorded === "strong" ? before("2015-01-01", exchange) : JSON.stringify(exchange.body).length < 1_024),
  },
  {
    name: "dates of lists",
    why: "Until 2014 lists had a date; today they have none.",
    explains: ({ at, in: how }, exchange) =>
      at === "header last-modified" &&
      how === "missing" &&
      Array.isArray(exchange.body) &&
      before("2014-01-01", exchange),
  },
  {
    name: "dates of what is embedded",
    why: "The service's date was later than `updated_at`, since something embedded had changed before the mirror saw it.",
    explains: ({ at, recorded }, { body }) =>
      at === "header last-modified" && Date.parse(String(recorded)) > Date.parse(String(objectOf(body).updated_at)),
  },
  {
    name: "dates of labels",
    why: "The service shows no date of a label but in this header. The mirror's is when it saw the label change.",
    explains: ({ at, recorded, answered }, { path }) =>
      at === "header last-modified" &&
      /\/labels(\/|$)/.test(path) &&
      (answered === undefined || Date.parse(String(answered)) > Date.parse(String(recorded))),
  },
  {
    name: "links of lists that were not recorded whole",
    why: "The recording shows one page, and the mirror holds no row of the others.",
    explains: ({ at, in: how, recorded }, { path }) =>
      at === "header link" && how === "missing" && !path.includes("page=") && /rel="next"/.test(String(recorded)),
  },
  {
    name: "links by cursor",
    why: "Lists of issues have cursors since 2025, and name neither a first nor a last page.",
    explains: ({ at, recorded, answered }, { path }) =>
      at === "header link" && /\/issues\?/.test(path) && byCursor(String(recorded)) === withoutCursor(String(answered)),
  },
];

/** Recorded links as today's would be: neither first nor last, and next before prev. */
function byCursor(link: string): string {
  const kept = link.split(", ").filter((one) => /rel="(next|prev)"/.test(one));
  return kept.sort((one, other) => Number(/prev/.test(one)) - Number(/prev/.test(other))).join(", ");
}

function withoutCursor(link: string): string {
  return link.replace(/(after|before)=[\w%-]+&/g, "");
}

const isError = ({ status }: Exchange) => status >= 300;

/** What upstream shows of an organisation to its owners. */
const OWNERS_OWN =
  /^\.(billing_email|collaborators|default_repository_permission|disk_usage|members_\w+|owned_private_repos|plan|private_gists|total_private_repos|two_factor_requirement_enabled|web_commit_signoff_required)$/;

const bodyRules: readonly DifferenceRule[] = [
  {
    name: "words of errors",
    why: "Bodies of errors have a `status` since 2024, and the documentation has moved.",
    explains: ({ at, in: how, answered }, exchange) =>
      isError(exchange) &&
      ((at === ".status" && how === "added" && answered === String(exchange.status)) ||
        (at === ".documentation_url" &&
          how !== "missing" &&
          String(answered).startsWith("https://docs.github.com/rest/"))),
  },
  {
    name: "keys of lists of that time",
    why: "`master_branch` was in lists until 2014, and is today among the keys of a single repository.",
    explains: ({ at, in: how }, exchange) =>
      how === "missing" && at.endsWith("[].master_branch") && before("2015-01-01", exchange),
  },
  {
    name: "order of that time",
    why: "In 2013 the counts of a single repository stood before its `permissions`; today they stand last.",
    explains: ({ at, in: how }, exchange) =>
      at === "" && how === "order" && "network_count" in objectOf(exchange.body) && before("2014-01-01", exchange),
  },
  {
    name: "rows of that time",
    why: "In 2013 this list had no order; today it goes by id, as GitHub's documentation says.",
    explains: ({ at, in: how, answered }, exchange) =>
      at === "[]" &&
      how === "order" &&
      exchange.path.endsWith("/pulls/comments") &&
      before("2014-01-01", exchange) &&
      isAscending(answered as string[]),
  },
  {
    name: "who closed an issue",
    why: "The mirror shows `closed_by` in lists too, where a single issue has told it. GitHub's OpenAPI has it there; lists of 2022 had not.",
    explains: ({ at, in: how, answered }) => how === "added" && /^(\[\])?\.closed_by$/.test(at) && answered === null,
  },
  {
    name: "an organisation as its owner sees it",
    why: "The mirror shows accounts as everybody sees them.",
    explains: ({ at, in: how }, { path }) => how === "missing" && path.startsWith("/orgs/") && OWNERS_OWN.test(at),
  },
  {
    name: "pages of the service",
    why: "Here upstream has no pages beside its API, so this address is made of upstream's.",
    explains: ({ at }) => at === ".current_user_authorizations_html_url",
  },
  {
    name: "quota of that time",
    why: "The answer had a tag, and only `rate`, without `used`. The figures are the caller's own.",
    explains: ({ at, in: how }, { path }) =>
      path === "/rate_limit" &&
      (/^\.(resources|rate\.used)$/.test(at) ? how === "added" : /^(\.rate\.reset|header etag)$/.test(at)),
  },
  {
    name: "searches of that time",
    why: "The search engine of 2014 and 2015 told no `incomplete_results`, weighed its finds, looked into other texts, such as comments and names' beginnings, and broke ties by weight.",
    explains: ({ at, in: how, answered }, exchange) =>
      exchange.path.startsWith("/search/") &&
      before("2016-01-01", exchange) &&
      ((at === ".items[]" && (how === "order" || (how === "rows" && (answered as string[]).length === 0))) ||
        (at === ".items[].score" && answered === 1) ||
        at === ".total_count" ||
        // Nothing confined these searches to what is mirrored.
        (at === ".incomplete_results" && answered === true) ||
        (at === "header link" && /rel="(next|prev|first)"/.test(String(exchange.headers.link)))),
  },
  {
    name: "repositories of two people",
    why: "The session was recorded with the tokens of two people, and the mirror has read both lists.",
    explains: ({ at, in: how, recorded }, { session, path }) =>
      path === "/user/repos" &&
      at === "[]" &&
      how === "rows" &&
      (recorded as string[]).length === 0 &&
      /per_user/.test(session),
  },
];

function isAscending(names: readonly string[]): boolean {
  return names.every((name, index) => index === 0 || Number(names[index - 1]) < Number(name));
}

export const DIFFERENCE_RULES: readonly DifferenceRule[] = [...headerRules, ...bodyRules];
