import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Instance, readInstance, writeInstance } from "../../src/cli/terminal/instance.ts";
import { inherited } from "../support/config.ts";
import { Run } from "./tain.ts";

const instance: Instance = {
  apiUrl: "http://127.0.0.1:8080",
  token: "t",
  webhookUrl: "http://127.0.0.1:8080/webhooks",
  webhookSecret: "s",
  encryptionKey: "e",
  operatorToken: "o",
  upstreamUrl: "https://api.github.com",
  upstreamToken: "u",
  repositories: [
    { owner: "octo", name: "demo" },
    { owner: "octo", name: "other" },
  ],
};

test("what one start has written of its instance, a command reads again; before the first start there is none", async () => {
  await using home = await openHome();
  expect(await readInstance(home)).toBe(null);
  await writeInstance(home, instance);
  expect(await readInstance(home)).toEqual(instance);
});

test("the file of an older version, without an operator's token, is read too", async () => {
  await using home = await openHome();
  await writeFile(join(home.home, "instance.json"), JSON.stringify({ ...instance, operatorToken: undefined }));
  expect(await readInstance(home)).toEqual({ ...instance, operatorToken: null });
});

test.each([
  ["an empty file", "", "it is no JSON"],
  ["half a file", JSON.stringify(instance).slice(0, 100), "it is no JSON"],
  ["nothing", "null", "it is no object"],
  ["a missing token", JSON.stringify({ ...instance, token: undefined }), "token is no text"],
  ["no list of repositories", JSON.stringify({ ...instance, repositories: {} }), "repositories is no list"],
  [
    "a repository without a name",
    JSON.stringify({ ...instance, repositories: [{ owner: "octo", name: "demo" }, { owner: "octo" }] }),
    "repositories[1].name is no text",
  ],
  ["a name for a repository", JSON.stringify({ ...instance, repositories: ["octo"] }), "repositories[0] is no object"],
])(
  "a broken instance file, here %s, is named by a command, with what is wrong and what to do",
  async (_, text, fault) => {
    await using home = await openHome();
    const file = join(home.home, "instance.json");
    await writeFile(file, text);
    const { code, stdout, stderr } = await new Run(["status"], { ...inherited, TAIN_HOME: home.home }).exited;
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: "",
      stderr: `tain: ${file} is not what Tain writes there (${fault}): remove it, and the next start writes it anew\n`,
    });
  },
);

async function openHome(): Promise<{ home: string } & AsyncDisposable> {
  const home = await mkdtemp(join(tmpdir(), "tain-instance-"));
  return { home, [Symbol.asyncDispose]: () => rm(home, { recursive: true }) };
}
