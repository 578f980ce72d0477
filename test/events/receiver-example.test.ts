import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { sign } from "@octokit/webhooks-methods";
import { expect, test } from "vitest";
import { blocksOf, projectRoot, readPage } from "../docs/markdown.ts";
import { inherited } from "../support/config.ts";

const SECRET = "of the example";

test("the receiver of the page takes what is signed once, and refuses what is not", async () => {
  const example = blocksOf(readPage("docs/events.md")).find(({ text }) => text.includes("createServer"));
  const free = createServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const address = free.address();
  const port = typeof address === "object" ? String(address?.port) : "";
  free.close();
  await once(free, "close");
  const child = spawn(process.execPath, ["--input-type=module", "-e", example?.text ?? ""], {
    ...{ cwd: projectRoot, env: { ...inherited, SECRET, PORT: port }, stdio: ["ignore", "pipe", "inherit"] as const },
  });
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe("Listening");
    const body = JSON.stringify({ action: "opened" });
    const send = async (guid: string, signature: string) => {
      const headers = { "x-github-event": "issues", "x-github-delivery": guid, "x-hub-signature-256": signature };
      return (await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body })).status;
    };
    const signature = await sign(SECRET, body);
    expect([await send("a", "sha256=00"), await send("a", signature), await send("a", signature)]).toEqual([
      403, 202, 202,
    ]);
    expect((await lines.next()).value).toBe("issues opened");
    expect(await send("b", signature)).toBe(202);
    // The second "a" printed nothing.
    expect((await lines.next()).value).toBe("issues opened");
  } finally {
    child.kill();
  }
});
