import { expect, test } from "vitest";
import { verdict } from "../../scripts/advisories.mjs";

test("known faults fail, by name and severity", () => {
  const vulnerabilities = { undici: { severity: "high", range: "<8.0.1" } };
  const answer = JSON.stringify({ metadata: { vulnerabilities: { total: 1 } }, vulnerabilities });
  expect(verdict(answer)).toEqual({ code: 1, lines: ["undici <8.0.1: high; see npm audit"] });
});

test("nothing is said where the registry knows of none", () => {
  const answer = JSON.stringify({ metadata: { vulnerabilities: { total: 0 } }, vulnerabilities: {} });
  expect(verdict(answer)).toEqual({ code: 0, lines: [] });
});

test("a registry that answers no such question does not pass for one that knows of none", () => {
  const answer = JSON.stringify({ message: "405 Method Not Allowed", statusCode: 405 });
  expect(verdict(answer)).toEqual({ code: 0, lines: ["advisories were not asked for: 405 Method Not Allowed"] });
  expect(verdict("").lines).toEqual(["advisories were not asked for: npm audit gave no JSON"]);
});
