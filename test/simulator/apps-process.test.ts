import { type ChildProcess, spawn } from "node:child_process";
import { createPrivateKey } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { jwtOf } from "./app-world.ts";

function start(apps: string): ChildProcess {
  return spawn(process.execPath, ["src/simulator/main.ts", "--repositories", "1", "--issues", "1"], {
    env: { ...process.env, SIMULATOR_APPS: apps },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
}

test("a simulator in another process is given an App by its environment, and says what it needs to be called", async () => {
  const child = start(JSON.stringify({ slug: "mirror", installations: [{ account: "acme" }] }));
  try {
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    const [line] = await once(lines, "line");
    const { url, apps } = JSON.parse(line);
    const [app] = apps;
    const now = Math.floor(Date.now() / 1_000);
    const jwt = jwtOf({ iss: app.clientId, iat: now - 60, exp: now + 540 }, createPrivateKey(app.privateKey));
    const headers = { authorization: `Bearer ${jwt}`, "user-agent": "tests" };
    const path = `${url}/app/installations/${app.installations[0]}/access_tokens`;
    const reply = await fetch(path, { method: "POST", headers });
    expect([reply.status, Object.keys((await reply.json()) as object)]).toEqual([
      201,
      expect.arrayContaining(["token"]),
    ]);
  } finally {
    child.disconnect();
    await once(child, "exit");
  }
});

test.each([
  ["{", "--apps should be JSON"],
  ['{"slug":"s","installations":[{"account":"a","repositories":["a/none"]}]}', "There is no repository a/none"],
])("it does not start with Apps that make no sense: %s", async (apps, message) => {
  const child = start(apps);
  let said = "";
  child.stderr?.on("data", (chunk) => {
    said += chunk;
  });
  const [code] = await once(child, "close");
  expect([code, said]).toEqual([1, expect.stringContaining(message)]);
});
