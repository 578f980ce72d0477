import { BlockList, isIP, type Socket } from "node:net";
import ipaddr from "ipaddr.js";
import { headerText } from "./reply.ts";

const NETWORKS: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1/128"],
  linklocal: ["169.254.0.0/16", "fe80::/10"],
  uniquelocal: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
};

/** Some IP addresses. */
export class AddressList {
  readonly #list = new BlockList();

  /** @param names addresses, networks (`10.0.0.0/8`), `loopback`, `linklocal` and `uniquelocal` */
  constructor(names: readonly string[]) {
    for (const name of names.flatMap((one) => NETWORKS[one] ?? one)) {
      const [written = "", bits] = name.split("/");
      const { address, family, isMapped } = readAddress(written);
      if (bits === undefined) this.#list.addAddress(address, family);
      // An IPv4 network may be written as IPv6 (`::ffff:10.0.0.0/104`). Its prefix is then 96 bits longer.
      else this.#list.addSubnet(address, Number(bits) - (isMapped ? 96 : 0), family);
    }
  }

  /** False for what is no address. */
  includes(written: string): boolean {
    const { address, family } = readAddress(written);
    return isIP(address) !== 0 && this.#list.check(address, family);
  }
}

/** The proxies that say who calls. */
export class TrustedProxies {
  readonly #list: AddressList;
  /** Whether a connection comes from a proxy. That cannot change, and judging it takes 0.3 µs for each request. */
  readonly #known = new WeakMap<Socket, boolean>();

  /** @param names as an `AddressList` takes them */
  constructor(names: readonly string[]) {
    this.#list = new AddressList(names);
  }

  /** @param forwardedFor the addresses that proxies have noted, the nearest last */
  callersAddress(socket: Socket, forwardedFor: string | readonly string[]): string {
    const peer = socket.remoteAddress ?? "";
    if (!this.#isAtTheEndOf(socket)) return peer;
    const senders = headerText(forwardedFor)
      .split(",")
      .map((one) => one.trim())
      .filter(Boolean);
    let address = senders.pop() ?? peer;
    while (senders.length > 0 && this.#list.includes(address)) address = senders.pop() ?? address;
    return address;
  }

  /** The last value of a header that each proxy adds to. Undefined: no proxy of ours says it. */
  nearestSays(socket: Socket, header: string | readonly string[]): string | undefined {
    const said = this.#isAtTheEndOf(socket) ? headerText(header) : "";
    return said === "" ? undefined : said.slice(said.lastIndexOf(",") + 1).trim();
  }

  #isAtTheEndOf(socket: Socket): boolean {
    const known = this.#known.get(socket);
    if (known !== undefined) return known;
    const isProxy = this.#list.includes(socket.remoteAddress ?? "");
    this.#known.set(socket, isProxy);
    return isProxy;
  }
}

/**
 * The network of an address, which is what callers are told apart by: /24 of IPv4, /64 of IPv6. Whoever has one address of
 * such a network mostly has many. What is no address is its own network.
 */
export function networkOf(written: string): string {
  const { address, family } = readAddress(written);
  if (isIP(address) === 0) return written;
  if (family === "ipv4") return `${address.slice(0, address.lastIndexOf("."))}.0/24`;
  const parts = ipaddr.IPv6.parse(address.replace(/%.*$/, "")).parts.slice(0, 4);
  return `${parts.map((part) => part.toString(16)).join(":")}::/64`;
}

/** An IPv4 address that is written as IPv6, as sockets of both families do, is the IPv4 address. */
function readAddress(written: string): { address: string; family: "ipv4" | "ipv6"; isMapped: boolean } {
  const address = written.replace(/^::ffff:(?=\d+\.)/i, "");
  return { address, family: isIP(address) === 6 ? "ipv6" : "ipv4", isMapped: address !== written };
}
