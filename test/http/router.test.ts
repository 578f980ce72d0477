import { expect, test } from "vitest";
import { json } from "../../src/http/reply.ts";
import { Router } from "../../src/http/router.ts";

const routes = [
  ...["GET /", "GET /a", "POST /a", "GET /a/:id", "GET /a/b", "GET /a/:id/c/:name", "GET /a/"],
  ...["GET /r/:id/at", "GET /r/:id/at/:rest", "GET /r/:id/at/b/c"],
].map((route) => {
  const [method = "", path = ""] = route.split(" ");
  return { method, path, takesRest: path.endsWith(":rest"), handle: () => json(200, route) };
});
const router = new Router(routes);

test.each([
  ["GET", "/", "GET /", {}],
  ["HEAD", "/a", "GET /a", {}],
  ["POST", "/a", "POST /a", {}],
  ["GET", "/a/1", "GET /a/:id", { id: "1" }],
  ["GET", "/a/b", "GET /a/b", {}],
  ["GET", "/a/x%2Fy/c/%C3%A9", "GET /a/:id/c/:name", { id: "x/y", name: "é" }],
  ["GET", "/a/", "GET /a/", {}],
  ["GET", "/r/1/at", "GET /r/:id/at", { id: "1" }],
  ["GET", "/r/1/at/x", "GET /r/:id/at/:rest", { id: "1", rest: "x" }],
  ["HEAD", "/r/1/at/x/%C3%A9/z/", "GET /r/:id/at/:rest", { id: "1", rest: "x/é/z/" }],
  ["GET", "/r/1/at/b/c", "GET /r/:id/at/b/c", { id: "1" }],
  ["GET", "/r/1/at/b/d", "GET /r/:id/at/:rest", { id: "1", rest: "b/d" }],
])("%s %s goes to %s", (method, path, route, params) => {
  const [at = -1] = routes.flatMap((one, index) => (`${one.method} ${one.path}` === route ? [index] : []));
  const found = router.find(method, path);
  expect([found?.handle, found?.template, found?.params]).toEqual([routes[at]?.handle, routes[at]?.path, params]);
});

test.each([
  ["PUT", "/a"],
  ["GET", "/b"],
  ["GET", "/a/1/"],
  ["GET", "/a/1/c"],
  ["GET", "/a//c/x"],
  ["GET", "/a/%E0"],
  ["GET", "/r/1/at/"],
  ["GET", "/r/1/at/x/%E0"],
  ["POST", "/r/1/at/x"],
  ["OPTIONS", "*"],
])("%s %s leads nowhere", (method, path) => {
  expect(router.find(method, path)).toBeNull();
});

test("two routes for the same are a mistake", () => {
  const route = { method: "GET", path: "/a", handle: () => json(200, {}) };
  expect(() => new Router([route, route])).toThrow("two routes");
});
