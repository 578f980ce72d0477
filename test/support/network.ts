/**
 * A network of the test's own. Each site is a network namespace with a cable to a router, which is another namespace.
 * As in a real network, packets that the router does not let through are lost without a message. Linux only, as root.
 */
import { randomInt } from "node:crypto";
import { existsSync } from "node:fs";
import { run } from "../../scripts/processes.mjs";

/** The direction from one site to another, whose packets can be lost. The way back is another `Way`. */
export interface Way {
  from: string;
  to: string;
}

export interface Network extends AsyncDisposable {
  /** The program and the arguments that run a command in a site. */
  within(site: string, command: string, ...args: string[]): [string, ...string[]];
  /** The address of a site. This process is a site as well, with an address for each of `guests`. */
  addressOf(site: string): string;
  /** From now on these ways are cut, and no others. */
  cut(ways: readonly Way[]): Promise<void>;
}

/** Why there can be no network on this machine; null: there can be one. */
export async function whyNoNetwork(): Promise<string | null> {
  if (process.platform !== "linux") return "network namespaces are Linux's";
  if (process.getuid?.() !== 0) return "only root may make network namespaces";
  for (const command of ["ip", "iptables", "iptables-restore"]) {
    const found = await run(command, ["-V"]).catch(() => null);
    if (found?.code !== 0) return `${command} is missing (Debian: iproute2, iptables)`;
  }
  const name = `tain-probe-${process.pid}`;
  const made = await run("ip", ["netns", "add", name]);
  if (made.code !== 0) return `ip netns add: ${made.stderr.trim()}`;
  await run("ip", ["netns", "delete", name]);
  return null;
}

export async function openNetwork(sites: readonly string[], guests: readonly string[]): Promise<Network> {
  await using opening = new AsyncDisposableStack();
  await removeLeft();
  // Names and addresses that no other test's network uses.
  const { stdout: routes } = await run("ip", ["route"]);
  const taken = new Set([...routes.matchAll(/^10\.77\.(\d+)\.0/gm)].map(([, at]) => Number(at)));
  const free = Array.from({ length: 250 }, (_, at) => at + 1).filter((at) => !taken.has(at));
  const net = free[randomInt(free.length)] ?? 0;
  const nameOf = (site: string) => `tain-${process.pid}-${site}`;
  const all = [...guests, ...sites];
  const addressOf = (site: string) => {
    if (!all.includes(site)) throw new Error(`There is no site ${site}`);
    return `10.77.${net}.${all.indexOf(site) + 1}`;
  };
  const gateway = `10.77.${net}.254`;
  const make = async (site: string) => {
    await succeed("ip", "netns", "add", nameOf(site));
    opening.defer(() => succeed("ip", "netns", "delete", nameOf(site)));
    await succeed("ip", "-n", nameOf(site), "link", "set", "lo", "up");
  };
  const router = nameOf("router");
  await make("router");
  await succeed("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1");
  await succeed("ip", "netns", "exec", router, "iptables", "-N", "cuts");
  await succeed("ip", "netns", "exec", router, "iptables", "-A", "FORWARD", "-j", "cuts");
  for (const [index, site] of sites.entries()) {
    await make(site);
    const place = ["-n", nameOf(site)];
    await succeed("ip", "-n", router, "link", "add", `to${index}`, "type", "veth", "peer", "name", `from${index}`);
    await succeed("ip", "-n", router, "link", "set", `from${index}`, "netns", nameOf(site), "name", "eth0");
    await succeed("ip", ...place, "address", "add", `${addressOf(site)}/32`, "dev", "eth0");
    await succeed("ip", ...place, "link", "set", "eth0", "up");
    await succeed("ip", ...place, "route", "add", gateway, "dev", "eth0");
    await succeed("ip", ...place, "route", "add", "default", "via", gateway);
    await succeed("ip", "-n", router, "address", "add", `${gateway}/32`, "dev", `to${index}`);
    await succeed("ip", "-n", router, "link", "set", `to${index}`, "up");
    await succeed("ip", "-n", router, "route", "add", addressOf(site), "dev", `to${index}`);
  }
  // This process's own cable, which is deleted together with the router.
  const cable = `tain${process.pid}`;
  await succeed("ip", "link", "add", cable, "type", "veth", "peer", "name", "guests");
  opening.defer(() => succeed("ip", "link", "delete", cable));
  await succeed("ip", "link", "set", "guests", "netns", router);
  for (const guest of guests) await succeed("ip", "address", "add", `${addressOf(guest)}/32`, "dev", cable);
  await succeed("ip", "link", "set", cable, "up");
  await succeed("ip", "-n", router, "address", "add", `${gateway}/32`, "dev", "guests");
  await succeed("ip", "-n", router, "link", "set", "guests", "up");
  for (const guest of guests) await succeed("ip", "-n", router, "route", "add", addressOf(guest), "dev", "guests");
  await succeed("ip", "route", "add", gateway, "dev", cable);
  // Where this process binds no other address, it sends from that of its last guest.
  const last = guests.at(-1);
  const source = last === undefined ? [] : ["src", addressOf(last)];
  await succeed("ip", "route", "add", `10.77.${net}.0/24`, "via", gateway, "dev", cable, ...source);
  const opened = opening.move();
  return {
    addressOf,
    within: (site, command, ...args) => ["ip", "netns", "exec", nameOf(site), command, ...args],
    async cut(ways) {
      const rules = ways.map(({ from, to }) => `-A cuts -s ${addressOf(from)} -d ${addressOf(to)} -j DROP\n`);
      // All rules change at once. So at no moment the former ways are healed and the new ones not yet cut.
      const input = `*filter\n:cuts - [0:0]\n${rules.join("")}COMMIT\n`;
      const { code, stderr } = await run("ip", ["netns", "exec", router, "iptables-restore", "--noflush"], { input });
      if (code !== 0) throw new Error(`iptables-restore ended with ${code}: ${stderr}`);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Removes what killed processes have left. */
async function removeLeft(): Promise<void> {
  const { stdout } = await run("ip", ["netns", "list"]);
  for (const [name, pid = ""] of stdout.matchAll(/^tain-(\d+)-\w+/gm))
    if (!existsSync(`/proc/${pid}`)) await run("ip", ["netns", "delete", name]);
}

async function succeed(command: string, ...args: string[]): Promise<void> {
  const { code, stderr } = await run(command, args);
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${code}: ${stderr}`);
}
