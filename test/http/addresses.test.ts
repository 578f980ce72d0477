import { expect, test } from "vitest";
import { AddressList, networkOf } from "../../src/http/addresses.ts";

test.each([
  [["loopback"], ["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"], ["128.0.0.1", "::2", "10.0.0.1"]],
  [["uniquelocal"], ["10.1.2.3", "172.31.0.1", "192.168.0.1", "fd00::1"], ["172.32.0.1", "fe80::1"]],
  [["linklocal"], ["169.254.1.1", "fe80::1"], ["169.253.1.1", "fd00::1"]],
  [
    ["10.0.0.0/8", "2001:db8::/32"],
    ["10.9.9.9", "::ffff:10.9.9.9", "2001:db8::1"],
    ["11.0.0.1", "2001:db9::1"],
  ],
  [["192.0.2.1"], ["192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201"], ["192.0.2.2", "::192.0.2.1"]],
  [["::ffff:192.0.2.0/120"], ["192.0.2.9", "::ffff:192.0.2.9"], ["192.0.3.9"]],
  [[], [], ["127.0.0.1", "::1"]],
])("%j", (names, included, others) => {
  const list = new AddressList(names);
  for (const address of included) expect(list.includes(address), address).toBe(true);
  for (const text of [...others, "", "localhost", "unknown", "10.0.0.1:80", "10.1"])
    expect(list.includes(text), text).toBe(false);
});

test.each([
  ["192.0.2.1", "192.0.2.0/24"],
  ["::ffff:192.0.2.200", "192.0.2.0/24"],
  ["::ffff:c000:2c8", "192.0.2.0/24"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::", "2001:db8:1:2::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["unknown", "unknown"],
])("the network of %s is %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
