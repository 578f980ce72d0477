import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ownBytes } from "../../src/api/call/kept-bodies.ts";
import { decodeId, nextId } from "../../src/api/dialect/node-id.ts";
import { cursorLink, numberedLink, readCursor, writeCursor } from "../../src/api/dialect/paging.ts";
import { compressed } from "../../src/http/reply.ts";

describe("cursors", () => {
  test("what is written is read again, in both alphabets", () => {
    const key = fc.oneof(fc.nat({ max: Number.MAX_SAFE_INTEGER }), fc.string({ maxLength: 200 }), fc.constant(null));
    fc.assert(
      fc.property(key, fc.nat({ max: Number.MAX_SAFE_INTEGER }), (value, rowId) => {
        for (const alphabet of ["base64", "url-safe"] as const)
          expect(readCursor(writeCursor([value, rowId], alphabet))).toEqual([value, rowId]);
      }),
    );
  });

  test("what was not written by us is none, and never throws", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(readCursor(text)).toBeNull();
      }),
    );
    const bytes = fc.uint8Array({ maxLength: 40 });
    fc.assert(
      fc.property(bytes, (rest) => {
        const read = readCursor(Buffer.concat([Buffer.from("cursor:tain:"), rest]).toString("base64"));
        if (read) expect(typeof read[1]).toBe("number");
      }),
    );
  });

  test("they have the service's form, and say whose they are", () => {
    const text = Buffer.from(writeCursor([1_735_689_600_000, 77]), "base64").toString("latin1");
    expect(text.slice(0, 14)).toBe("cursor:tain:\x92\xcf");
  });
});

describe("global ids", () => {
  test.each([
    ["MDQ6VXNlcjM0MDczMDM=", { type: "User", id: 3_407_303 }],
    ["MDEwOlJlcG9zaXRvcnkxMjk2MjY5", { type: "Repository", id: 1_296_269 }],
    ["U_kgDOADP9xw", { type: "User", id: 3_407_303 }],
    ["I_kwDOHrjtpM5OBUf6", { type: "Issue", id: 1_308_968_954 }],
  ])("%s", (text, decoded) => {
    expect(decodeId(text)).toEqual(decoded);
  });

  test.each([
    "",
    "x",
    "XX_kgDOADP9xw", // an unknown prefix
    "U_", // nothing behind it
    "U_kgDOADP9", // cut off
    "U_kwDOADP9xw", // says three numbers, has two
    Buffer.from("05:User1").toString("base64"), // a length that is not the name's
    Buffer.from("04:User").toString("base64"), // no id
    Buffer.from("04:Team1").toString("base64"), // a type that is not mirrored
  ])("%j is none", (text) => {
    expect(decodeId(text)).toBeNull();
  });

  test.each([
    ["MDQ6VXNlcjM0MDczMDM=", 0, "U_kgDOADP9xw"],
    ["MDEwOlJlcG9zaXRvcnkzNTg2NjQ1Mjk=", 0, "R_kgDOFWDJUQ"],
    ["MDQ6VXNlcjE=", 0, "U_kgAB"],
    [Buffer.from("05:Issue1308968954").toString("base64"), 515_435_940, "I_kwDOHrjtpM5OBUf6"],
    [Buffer.from("03:Ref1296269:refs/heads/main").toString("base64"), 7, "REF_kwDOABPHja9yZWZzL2hlYWRzL21haW4"],
    [
      Buffer.from(`06:Commit1296269:${"7".repeat(40)}`).toString("base64"),
      7,
      `C_kwDOABPHjdoAKDc3${"Nzc3".repeat(12)}Nzc`,
    ],
    // Nothing shows whose the App is, which its newer id names.
    ["MDM6QXBwMTUzNjg=", 0, null],
    ["U_kgDOADP9xw", 0, null],
    ["x", 0, null],
    ["", 0, null],
  ])("the newer form of %s", (text, repositoryId, next) => {
    expect(nextId(text, repositoryId)).toBe(next);
  });

  test("no text makes it throw", () => {
    fc.assert(
      fc.property(
        fc.base64String(),
        fc.constantFrom("", "I_", "PR_", "R_"),
        (text, prefix) => void [decodeId(prefix + text), nextId(prefix + text, 1)],
      ),
    );
  });
});

describe("Link", () => {
  const query = new URLSearchParams("per_page=5&page=2&state=all");
  test("names the neighbours that there are, in the service's order, with the parameters in theirs", () => {
    const at = (page: number, last: number) => numberedLink("https://h/repositories/1/pulls", query, { page, last });
    const link = (rel: string, page: number) =>
      `<https://h/repositories/1/pulls?per_page=5&page=${page}&state=all>; rel="${rel}"`;
    expect(at(1, 1)).toBeNull();
    expect(at(1, 0)).toBeNull();
    expect(at(1, 3)).toBe([link("next", 2), link("last", 3)].join(", "));
    expect(at(2, 3)).toBe([link("prev", 1), link("next", 3), link("last", 3), link("first", 1)].join(", "));
    expect(at(3, 3)).toBe([link("prev", 2), link("first", 1)].join(", "));
    expect(at(9, 3)).toBe([link("prev", 3), link("last", 3), link("first", 1)].join(", "));
    // One page has no links, however far beyond it was asked.
    for (const last of [0, 1]) expect(at(2, last)).toBeNull();
    const first = numberedLink("https://h", new URLSearchParams("per_page=5&state=all"), { page: 1, last: 2 });
    expect(first).toContain('<https://h?per_page=5&state=all&page=2>; rel="next"');
  });

  test("by cursor names neither first nor last", () => {
    const link = cursorLink("https://h/repositories/1/issues", query, {
      page: 2,
      size: 5,
      next: "abc==",
      previous: "xyz",
    });
    expect(link).toBe(
      '<https://h/repositories/1/issues?per_page=5&state=all&after=abc%3D%3D&page=3>; rel="next", <https://h/repositories/1/issues?per_page=5&state=all&before=xyz&page=1>; rel="prev"',
    );
    expect(cursorLink("https://h", query, { page: 1, size: 5, next: null, previous: null })).toBeNull();
    // The size that was applied, and no page that nobody asked for.
    const walked = new URLSearchParams("per_page=abc&after=here");
    expect(cursorLink("https://h", walked, { page: 1, size: 30, next: "there", previous: null })).toBe(
      '<https://h?per_page=30&after=there>; rel="next"',
    );
  });
});

describe("bytes that are kept", () => {
  test("lie in memory of their own, however short the text or the body was", async () => {
    const kept = [
      ownBytes("a"),
      ownBytes("…€𐍈"),
      ownBytes(Buffer.from("short")),
      ownBytes(await compressed("x".repeat(2_000), "gzip", "often")),
      ownBytes(await compressed("x".repeat(2_000), "br", "often")),
    ];
    for (const bytes of kept) expect(bytes.buffer.byteLength).toBe(bytes.length);
    expect(kept.slice(0, 3).map(String)).toEqual(["a", "…€𐍈", "short"]);
    expect(gunzipSync(kept[3] as Buffer).toString()).toBe("x".repeat(2_000));
  });

  test("are not copied when they lie so already", () => {
    const whole = Buffer.allocUnsafeSlow(10);
    expect(ownBytes(whole)).toBe(whole);
  });
});
