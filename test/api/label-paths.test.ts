import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let repo: string;
beforeAll(async () => {
  world = await openApiWorld({ issues: 4, repositories: 1 });
  repo = `/repos/${world.repositories[0]?.fullName}`;
});
afterAll(() => world?.[Symbol.asyncDispose]());

const send = (method: string, path: string, body?: object) =>
  world.send(method, `${repo}${path}`, body ? { body: JSON.stringify(body) } : {});
/** As clients that encode each part of a path by itself write it. */
const bare = (name: string) => name.split("/").map(encodeURIComponent).join("/");

test.each(["zone/core", "x/labels/ü y"])(
  "the label %s is found by the rest of the path, bare and encoded",
  async (name) => {
    expect((await send("POST", "/labels", { name, color: "ededed" })).status).toBe(201);
    expect((await send("POST", "/issues/1/labels", { labels: [name] })).status).toBe(200);
    for (const path of [bare(name), encodeURIComponent(name)]) {
      const { status, body } = await send("GET", `/labels/${path}`);
      expect([status, body.name]).toEqual([200, name]);
    }
    const { status, body } = await send("PATCH", `/labels/${bare(name)}`, { color: "00ff00" });
    expect([status, body.name, body.color]).toEqual([200, name, "00ff00"]);
    const left = await send("DELETE", `/issues/1/labels/${bare(name)}`);
    expect([left.status, left.body.some((label: { name: string }) => label.name === name)]).toEqual([200, false]);
    expect((await send("DELETE", `/labels/${bare(name)}`)).status).toBe(204);
    expect(await send("GET", `/labels/${bare(name)}`)).toMatchObject({ status: 404, body: { message: "Not Found" } });
  },
);

test("a label that an issue does not carry is told as such, whatever its name", async () => {
  for (const name of ["no/such label", "none", "a/../b"])
    expect(await send("DELETE", `/issues/1/labels/${bare(name)}`)).toMatchObject({
      status: 404,
      body: { message: "Label does not exist" },
    });
});
