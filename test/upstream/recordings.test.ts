import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { WriteRequest } from "../../src/upstream/protocol/upstream.ts";
import { findRecording } from "../support/recording.ts";
import { openUpstreamWorld } from "./world.ts";

/** One exchange with the real service. */
interface Recorded {
  method: string;
  path: string;
  status: number;
  headers: Record<string, string>;
  body: unknown;
}

const fixtures = new URL("../../node_modules/@octokit/fixtures/scenarios/api.github.com/", import.meta.url);
const cassettes = findRecording("rest-recordings-octokit-rb.json.gz");

function readFixtures(): Recorded[] {
  return readdirSync(fixtures).flatMap((scenario) => {
    const file = new URL(`${scenario}/normalized-fixture.json`, fixtures);
    const exchanges = JSON.parse(readFileSync(file, "utf8")) as (Recorded & { scope: string; response: unknown })[];
    return exchanges
      .filter(({ scope }) => scope === "https://api.github.com:443")
      .map(({ response, ...exchange }) => ({ ...exchange, body: response }));
  });
}

function readCassettes(): Recorded[] {
  return JSON.parse(gunzipSync(readFileSync(cassettes.path)).toString("utf8"));
}

/** On purpose the client turns addresses into paths below this base. */
const base = "https://api.github.com";
const bare = (url: string) => url.replace(base, "");

async function replay(recordings: Recorded[]): Promise<number> {
  const isJson = ({ headers, body }: Recorded) => /json/.test(headers["content-type"] ?? "") || !body;
  const played = recordings.filter(isJson);
  let current: Recorded;
  await using world = await openUpstreamWorld((_, response) => {
    const { status, headers, body } = current;
    const text = status === 204 || status === 205 || !body ? "" : JSON.stringify(body);
    for (const [name, value] of Object.entries(headers)) {
      // These headers belong to the recorded connection, or tell of quotas that were reset long ago.
      if (/^(connection|content-length|content-encoding|transfer-encoding|status|x-ratelimit-.*)$/.test(name)) continue;
      response.setHeader(name, String(value).replaceAll(base, world.base));
    }
    response.writeHead(status);
    response.end(text);
  });

  for (current of played) {
    const { method, path, status, headers, body } = current;
    // The requests are so far apart that no limit matters.
    world.wait(62_000);
    if (method.toUpperCase() !== "GET") {
      const request: WriteRequest = { method: method.toUpperCase() as WriteRequest["method"], path, body: null };
      const answer = await world.upstream.write(request);
      // The client now believes that its only token is rejected, which is not so. After five minutes it tries the token
      // again.
      if (status === 401) world.wait(5 * 60_000);
      expect(answer.status, path).toBe(status);
      expect(answer.body ? JSON.parse(answer.body) : answer.body, path).toEqual(
        status === 204 || status === 205 ? "" : (body ?? ""),
      );
      expect(bare(String(answer.headers.location ?? "").replace(world.base, base)), path).toBe(
        bare(headers.location ?? ""),
      );
      continue;
    }
    const answer = await world.upstream.get(path, { priority: "caller" });
    switch (answer.kind) {
      case "ok":
        expect(status, path).toBeLessThan(300);
        expect(answer.body, path).toEqual(status === 204 ? null : body);
        expect(answer.validator?.etag ?? undefined, path).toBe(headers.etag);
        expect(answer.lastModified ?? undefined, path).toBe(headers["last-modified"]);
        // The header is compared without the client's own parser.
        for (const [relation, link] of Object.entries(answer.links)) {
          expect(headers.link, path).toContain(`<${base}${link}>; rel="${relation}"`);
        }
        expect(Object.keys(answer.links), path).toHaveLength(
          headers.link?.match(/rel="(next|prev|first|last)"/g)?.length ?? 0,
        );
        break;
      case "moved":
        expect([301, 302, 307], path).toContain(status);
        expect(answer.location, path).toBe(bare(headers.location ?? ""));
        break;
      case "missing":
        expect(answer, path).toEqual({ kind: "missing", status, message: (body as { message: string }).message });
        break;
      case "unchanged":
        expect.fail(`${path} was not asked conditionally`);
    }
  }
  return played.length;
}

test("every recorded exchange of the fixtures is read without loss", async () => {
  expect(await replay(readFixtures())).toBeGreaterThan(60);
});

test.skipIf(!cassettes.exists)(
  `every recorded exchange of the cassettes is read without loss ${cassettes.reason}`,
  async () => {
    // The recordings have marks such as <GITHUB_LOGIN> in the place of names.
    const recordings = readCassettes().map((each) => ({
      ...each,
      path: each.path.replace(/[<>\s]/g, encodeURIComponent),
    }));
    expect(await replay(recordings)).toBe(529);
  },
);
