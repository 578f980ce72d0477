import { type LookupAddress, type LookupOptions, lookup as systemLookup } from "node:dns";
import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { AllowedTargets } from "../config/values.ts";

/** Nothing may be sent to this address of a target. The message gives the target's owner the reason. */
export class TargetRefusedError extends Error {
  override name = "TargetRefusedError";
}

/** Usual ports of public HTTP servers. Behind any other port may be a database, a mail server or a printer. */
const PUBLIC_PORTS: ReadonlySet<string> = new Set(["", "80", "443", "8080", "8443"]);

/** The public part of IPv6. All other addresses are local, reserved, or stand for an IPv4 address. */
const GLOBAL_V6 = ipaddr.IPv6.parseCIDR("2000::/3");

/** Whether an address belongs to a host of the public Internet. Pure. */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  // The library names every special range, also those that wrap an IPv4 address.
  if (parsed.range() !== "unicast") return false;
  return parsed.kind() === "ipv4" || parsed.match(GLOBAL_V6);
}

/** Whether the operator allows an address although it is not public. Pure. */
function isAllowed({ networks }: AllowedTargets, address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  return networks.some(([network, bits]) => {
    const range = ipaddr.parse(network);
    return range.kind() === parsed.kind() && parsed.match(range, bits);
  });
}

/** The host of a URL, without the brackets of IPv6 and a dot at its end. Pure. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

/** Whether an address may be registered, judged without looking up its name. Null: it may. Pure. */
export function addressFault(allowed: AllowedTargets, text: string): "malformed" | "unreachable" | null {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") return "malformed";
  const host = hostOf(url);
  if (allowed.names.has(host)) return null;
  if (isIP(host) !== 0) {
    if (isAllowed(allowed, host)) return null;
    if (!isPublic(host)) return "unreachable";
  } else if (!host.includes(".") || /(^|\.)(localhost|local|internal)$/.test(host)) return "unreachable";
  return PUBLIC_PORTS.has(url.port) ? null : "unreachable";
}

/** Asks for the addresses of a name. */
export type Resolve = (name: string) => Promise<LookupAddress[]>;

/** Not the system's lookup: it uses one of four threads, and a dead name server would hold them all. */
const RESOLVER = { timeout: 2_000, tries: 2 };

async function resolvePublicly(name: string): Promise<LookupAddress[]> {
  const resolver = new Resolver(RESOLVER);
  const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  const found = [
    ...(four.status === "fulfilled" ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === "fulfilled" ? six.value.map((address) => ({ address, family: 6 })) : []),
  ];
  if (found.length === 0 && four.status === "rejected") throw four.reason;
  return found;
}

type LookupCallback = (error: Error | null, addresses: LookupAddress[] | string, family?: number) => void;

/**
 * Checks the address at each connect, since a name may lead to another address than before. A name that the operator
 * allowed is looked up by the system, which also knows the machine's own list of hosts.
 */
export function guardedLookup(allowed: AllowedTargets, resolve: Resolve = resolvePublicly) {
  return (name: string, options: LookupOptions, found: LookupCallback): void => {
    if (allowed.names.has(name.replace(/\.$/, ""))) {
      systemLookup(name, options, found);
      return;
    }
    resolve(name).then(
      (addresses) => {
        const fit = addresses.filter(({ address }) => isPublic(address) || isAllowed(allowed, address));
        const [first] = fit;
        if (!first) found(notReachable(name), []);
        else if (options.all) found(null, fit);
        else found(null, first.address, first.family);
      },
      (error: Error) => found(error, []),
    );
  };
}

/** Checks an address that is a bare IP: no connect looks it up. @throws TargetRefusedError when it is refused */
export function requireAdmitted(allowed: AllowedTargets, url: string): void {
  if (addressFault(allowed, url) !== null) throw notReachable(URL.parse(url)?.host ?? "");
}

function notReachable(host: string): TargetRefusedError {
  return new TargetRefusedError(
    `${host} is not reachable over the public Internet, and TARGETS_ALLOWED does not name it`,
  );
}
