import { isIP } from "node:net";
import { resolve } from "node:path";
import { ALL_PARTS, MIRROR_PARTS, type MirrorPart } from "./parts.ts";

// Each function reads one form of setting. It throws an Error whose message continues a sentence that begins with the
// setting's name.

export function word(text: string): string {
  return text;
}

/** As an absolute path. */
export function path(text: string): string {
  return resolve(text);
}

function separated(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
}

/** One part or several, separated by commas. */
export function commaList(text: string): string[] {
  const parts = separated(text);
  if (parts.length === 0) throw new Error("names nothing: give one value, or several separated by commas");
  return parts;
}

/** Logins of accounts, in lower case, because upstream ignores case. An unset list is empty. */
export function logins(text: string): string[] {
  return separated(text).map((part) => {
    if (!/^[a-z\d](?:[a-z\d_-]*[a-z\d])?(?:\[bot\])?$/i.test(part))
      throw new Error(`holds what is no login: ${part} (write e.g. octocat, or renovate[bot])`);
    return part.toLowerCase();
  });
}

/** `*` for every origin, a list of origins, or `none` for an empty list. */
export function origins(text: string): "*" | string[] {
  if (text === "*") return text;
  if (text === "none") return [];
  return commaList(text).map((part) => {
    const url = URL.parse(part);
    if (!url || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
      throw new Error(`holds what is no origin: ${part} (write *, none, or e.g. https://app.example)`);
    return url.origin;
  });
}

/** What to mirror beside issues and pull requests. If no part is named, the list is empty. */
export function parts(text: string): MirrorPart[] {
  const named = separated(text).flatMap((part) => {
    const known = part === ALL_PARTS ? MIRROR_PARTS : MIRROR_PARTS.filter((one) => one === part);
    if (known.length > 0) return known;
    throw new Error(`names what cannot be mirrored: ${part} (there is ${[...MIRROR_PARTS, ALL_PARTS].join(", ")})`);
  });
  return [...new Set(named)];
}

const NETWORK_NAMES: readonly string[] = ["loopback", "linklocal", "uniquelocal"];

export function proxies(text: string): string[] {
  const parts = separated(text);
  for (const part of parts) {
    const [address = "", bits, ...more] = part.split("/");
    const family = isIP(address);
    const isNetwork = bits === undefined || (more.length === 0 && fromDigits(bits) <= (family === 6 ? 128 : 32));
    if (NETWORK_NAMES.includes(part) || (family !== 0 && isNetwork)) continue;
    throw new Error(`holds what is neither an address, a network nor one of ${NETWORK_NAMES.join(", ")}: ${part}`);
  }
  return parts;
}

/** Places that are not public and yet may receive events: host names, and networks with the length of their prefix. */
export interface AllowedTargets {
  names: ReadonlySet<string>;
  networks: readonly (readonly [string, number])[];
}

export function allowedTargets(text: string): AllowedTargets {
  const names = new Set<string>();
  const networks: (readonly [string, number])[] = [];
  for (const part of separated(text)) {
    const [address = "", bits, ...more] = part.split("/");
    const family = isIP(address);
    const most = family === 6 ? 128 : 32;
    if (family !== 0 && more.length === 0 && (bits === undefined || fromDigits(bits) <= most))
      networks.push([address, bits === undefined ? most : fromDigits(bits)]);
    else if (bits === undefined && /^[a-z0-9_]([a-z0-9._-]*[a-z0-9])?$/i.test(part) && !/^[\d.]+$/.test(part))
      names.add(part.toLowerCase());
    else throw new Error(`holds what is neither a host's name, an address nor a network: ${part}`);
  }
  return { names, networks };
}

/** Digits only: `Number` would also take 0x50, 1e3 and 8080.0. */
function fromDigits(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

export function port(text: string): number {
  const value = fromDigits(text);
  if (!(value <= 65_535)) throw new Error(`is not a port: ${text} (write a number up to 65535)`);
  return value;
}

export function count(text: string): number {
  const value = fromDigits(text);
  if (!(value >= 1)) throw new Error(`is not a whole number above zero: ${text}`);
  return value;
}

export function allowance(text: string): number {
  const value = fromDigits(text);
  if (!(value >= 0)) throw new Error(`is not a number of requests an hour (0 is off): ${text}`);
  return value;
}

export function share(text: string): number {
  const value = /^\d+(\.\d+)?$|^\.\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value > 0 && value <= 1)) throw new Error(`is not a share above 0 and up to 1: ${text} (write e.g. 0.5)`);
  return value;
}

/** `30s`, `24h` or plain seconds, as milliseconds. */
export function duration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text);
  if (!match) throw new Error(`is not a duration: ${text} (write 30s, 5m, 24h, 7d or plain seconds)`);
  const unit = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] ?? "s"] ?? 1_000;
  return Number(match[1]) * unit;
}

/** `500MB` or `4GB`, as bytes. */
function size(text: string): number {
  const [, count, unit] = /^(\d+(?:\.\d+)?)(MB|GB)$/i.exec(text) ?? [];
  if (!count || !unit) throw new Error(`is not a size: ${text} (write 500MB or 4GB)`);
  return Number(count) * (unit.toUpperCase() === "GB" ? 1e9 : 1e6);
}

/** The same, or 0 for nothing. */
export function sizeOrNone(text: string): number {
  return text === "0" ? 0 : size(text);
}

/** A budget for request bodies. It must hold at least one of the largest bodies that upstream sends. */
export function bodiesSize(text: string): number {
  const bytes = size(text);
  if (bytes < 32e6) throw new Error(`has no room for one of the largest events: ${text} (write at least 32MB)`);
  return bytes;
}

/** An interval or a retention time: zero is refused. */
export function span(text: string): number {
  const ms = duration(text);
  if (ms <= 0) throw new Error(`is not above zero: ${text}`);
  return ms;
}

/** A duration for a timer, at most an hour. (A timer of Node.js that is longer than 24 days would fire at once.) */
export function timeout(text: string): number {
  const ms = duration(text);
  if (ms > 3_600_000) throw new Error(`is longer than an hour: ${text}`);
  return ms;
}

/** The version of an enterprise server: three numbers, as in `3.14.2`. */
export function serverVersion(text: string): string {
  if (!/^\d{1,3}(\.\d{1,3}){2}$/.test(text)) throw new Error(`is not a version: ${text} (write e.g. 3.20.0)`);
  return text;
}

export function httpUrl(text: string): string {
  const address = urlOf("http:", "https:")(text);
  const { username, password, search, hash } = new URL(address);
  // Answers and logs show this address, so it must not hold a password.
  if (username || password) throw new Error("holds a user name or password: give the address alone");
  if (search || hash) throw new Error(`has a query or fragment: ${text} (give the address alone)`);
  return address.replace(/\/+$/, "");
}

export function apiUrl(text: string): string {
  const address = httpUrl(text);
  if (/^(www\.)?github\.com$/.test(new URL(address).hostname)) {
    throw new Error(`is the website, not the API: ${text} (write https://api.github.com)`);
  }
  return address;
}

export function urlOf(...protocols: string[]): (text: string) => string {
  return (text) => {
    const url = URL.parse(text);
    // The value may hold a password, so the message does not repeat it.
    if (!url || !protocols.includes(url.protocol))
      throw new Error(
        `is not an address that begins with ${protocols.map((protocol) => `${protocol}//`).join(" or ")}`,
      );
    percentDecoded(url.username);
    percentDecoded(url.password);
    return text;
  };
}

/** A user name or password of an address. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new Error("has a user name or password that is not percent-encoded", { cause });
  }
}

/** Addresses, comma separated. */
export function urlsOf(...protocols: string[]): (text: string) => string[] {
  return (text) => separated(text).map(urlOf(...protocols));
}

export function prefix(text: string): string {
  if (!/^[\w.-]*\{[\w.-]+\}[\w.-]*$/.test(text))
    throw new Error(`is not a prefix with a hash tag: ${text} (write e.g. {tain})`);
  return text;
}

/** What to mirror, in lower case, because upstream ignores case: patterns, and exceptions from them. */
export function trackedPatterns(text: string): string[] {
  const parts = separated(text).map((part) => part.toLowerCase());
  for (const part of parts)
    if (!isPattern(part) && exceptionIn(part) === null)
      throw new Error(`holds what is neither owner/name nor owner/* nor !owner/name: ${part}`);
  const both = parts.find((part) => parts.includes(`!${part}`));
  if (both !== undefined) throw new Error(`names ${both} and excepts it: leave one of the two`);
  return [...new Set(parts)];
}

/** The name that `!owner/name` excepts from `owner/*`. Null: it is no exception. Pure. */
export function exceptionIn(pattern: string): string | null {
  const [, name = ""] = /^!(.+)$/.exec(pattern) ?? [];
  return isPattern(name) && !name.endsWith("/*") ? name : null;
}

export function isPattern(text: string): boolean {
  return /^[\w.-]+\/(\*|[\w.-]+)$/.test(text);
}

export function oneOf<T extends string>(...values: T[]): (text: string) => T {
  return (text) => {
    const value = values.find((candidate) => candidate === text);
    if (!value) throw new Error(`is ${text}, not one of ${values.join(", ")}`);
    return value;
  };
}
