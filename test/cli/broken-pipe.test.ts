import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { inherited } from "../support/config.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

test("a reader that has seen enough, as in `tain … | head`, makes no command fail", async () => {
  const child = spawn(process.execPath, [main, "--help"], { env: inherited, stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect([code, said]).toEqual([0, ""]);
});

test("nor does one of what a command says of itself, as in `tain … 2>&1 | head`", async () => {
  const child = spawn(process.execPath, [main, "frob"], { env: inherited, stdio: ["ignore", "pipe", "pipe"] });
  child.stderr.destroy();
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  expect([code, said]).toEqual([2, ""]);
});
