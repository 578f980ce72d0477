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
      const [address = "", bits] = name.split("/");
      if (bits === undefined) this.#list.addAddress(address, familyOf(address));
      else this.#list.addSubnet(address, Number(bits), familyOf(address));
    }
  }

  /** An IPv4 address may be written as IPv6, as sockets of both families do. False for what is no address. */
  includes(address: string): boolean {
    return isIP(address) !== 0 && this.#list.check(address, familyOf(address));
  }
}

/** The proxies that say who calls. */
export class TrustedProxies {
  readonly #list: AddressList;

  /** @param names as an `AddressList` takes them */
  constructor(names: readonly string[]) {
    this.#list = new AddressList(names);
  }

  /** @param forwardedFor the addresses that proxies have noted, the nearest last */
  callersAddress(socket: Socket, forwardedFor: string | readonly string[]): string {
    const peer = socket.remoteAddress ?? "";
    if (!this.#list.includes(peer)) return peer;
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
    const said = this.#list.includes(socket.remoteAddress ?? "") ? headerText(header) : "";
    return said === "" ? undefined : said.slice(said.lastIndexOf(",") + 1).trim();
  }
}

/**
 * The network of an address, which is what callers are told apart by: /24 of IPv4, /64 of IPv6. Whoever has one address of
 * such a network mostly has many. What is no address is its own network.
 */
export function networkOf(written: string): string {
  if (isIP(written) === 0) return written;
  const address = ipaddr.process(written.replace(/%.*$/, ""));
  if ("octets" in address) return `${address.octets.slice(0, 3).join(".")}.0/24`;
  const parts = address.parts.slice(0, 4);
  return `${parts.map((part) => part.toString(16)).join(":")}::/64`;
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}
