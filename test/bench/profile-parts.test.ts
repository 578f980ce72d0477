import { expect, test } from "vitest";
import { type CpuProfile, partsOf, programOf } from "../../bench/profile-parts.ts";

/** Each path is sampled once, for so many microseconds, after as much again that does not count. */
function profileOf(paths: [frames: [functionName: string, url: string][], micros: number][]): CpuProfile {
  const nodes: CpuProfile["nodes"] = [{ id: 1, callFrame: { functionName: "(root)", url: "" }, children: [] }];
  const samples: number[] = [];
  const timeDeltas: number[] = [];
  for (const [frames, micros] of paths) {
    let at = nodes[0] as CpuProfile["nodes"][number];
    for (const [functionName, url] of frames) {
      const node = { id: nodes.length + 1, callFrame: { functionName, url }, children: [] };
      at.children?.push(node.id);
      nodes.push(node);
      at = node;
    }
    samples.push(at.id);
    timeDeltas.push(micros);
  }
  const skipped = timeDeltas.reduce((sum, micros) => sum + micros, 0) - 1;
  return { nodes, samples: [1, ...samples], timeDeltas: [skipped, ...timeDeltas] };
}

const project = "file:///somewhere/tain";

test("each part has the time of its own code and of the native code that it called", () => {
  const profile = profileOf([
    [[["answer", `${project}/src/api/rest/endpoint.ts`]], 10],
    [
      [
        ["answer", `${project}/src/api/rest/endpoint.ts`],
        ["writev", ""],
      ],
      5,
    ],
    [[["merge", `${project}/src/mirror/store.ts`]], 4],
    [[["open", `${project}/db/database.ts`]], 3],
    [[["serve", `${project}/bench/web-server.ts`]], 1],
    [[["query", `${project}/node_modules/pg/lib/client.js`]], 7],
    [[["gzip", `${project}/node_modules/@fastify/compress/index.js`]], 6],
    [[["update", "node:internal/crypto/hash"]], 8],
    [[["writeHead", "node:_http_server"]], 9],
    [[["onStreamRead", "node:internal/stream_base_commons"]], 2],
    [[["emit", "node:events"]], 11],
    [[["(garbage collector)", ""]], 12],
    [[["(program)", ""]], 13],
    [[["(idle)", ""]], 1_000],
  ]);
  expect(Object.fromEntries(partsOf(profile))).toEqual({
    "src/api": 15,
    "src/mirror": 4,
    db: 3,
    bench: 1,
    pg: 7,
    "@fastify/compress": 6,
    "node:crypto": 8,
    "node:http": 9,
    "sockets and streams of Node.js": 2,
    "the rest of Node.js": 11,
    "collecting garbage": 12,
    "other native code": 13,
  });
});

test("a process is named by the file of the benchmarks that it runs", () => {
  const named = (...urls: string[]) => programOf(profileOf(urls.map((url) => [[["f", url]], 1])));
  expect(named(`${project}/bench/web-server.ts`, `${project}/src/web.ts`)).toBe("bench/web-server.ts");
  expect(named(`${project}/bench/processes.ts`, `${project}/bench/reference/one.ts`)).toBe("bench/reference/one.ts");
  expect(named(`${project}/bench/main.ts`)).toBe("bench/main.ts");
  expect(named("node:events")).toBeNull();
});
