import { type Command, type Given, UsageError } from "../terminal/command.ts";
import { leavingSignal } from "../terminal/leaving.ts";
import { MIRROR_URL, mirrorAddress, requiredToken } from "../terminal/mirror-address.ts";
import { type Output, plain } from "../terminal/output.ts";

export const mcp: Command = {
  name: "mcp",
  flags: { write: "offer tools that write, too: what the token may not write is refused all the same" },
  values: {
    http: { takes: "PORT", about: "serve HTTP at /mcp, not stdin and stdout: a port of this machine, or HOST:PORT" },
    ...MIRROR_URL,
  },
  about: `
Lets an agent search and read issues, pull requests, comments, reviews, releases and changes. It asks
the mirror's API, so that the agent sees what its token may see, and each answer says how fresh it is.

An agent's program starts it and speaks with it over stdin and stdout. It shows the mirror TAIN_TOKEN,
or the token that \`npm start\` has made. With --http it shows the token that each caller sends as
Authorization: Bearer, and none of its own.`,
  run: runMcp,
};

async function runMcp({ values, flags, env, resources }: Given, output: Output): Promise<number> {
  const listenAt = readListenAddress(values);
  const address = await mirrorAddress(values, env);
  const leaving = leavingSignal(resources, undefined);
  const canWrite = flags.has("write");
  const { url } = address;
  const complain = (text: string) => output.note(`tain: ${plain(text)}`);
  // The SDK takes longer to load than most commands to run.
  if (listenAt === null) {
    const mirror = { url, token: requiredToken(address), forwardedFor: null };
    const { serveOverStdio } = await import("./stdio.ts");
    await serveOverStdio({ mirror, canWrite, leaving, complain });
    return 0;
  }
  const [{ McpHttp }, { aborted }] = await Promise.all([import("./http.ts"), import("../../operations/shutdown.ts")]);
  const server = new McpHttp({ url, canWrite, complain });
  resources.defer(() => server.close());
  output.note(`tain: agents are served at ${await server.listen(listenAt)}/mcp`);
  await aborted(leaving);
  return 0;
}

/** Null: stdin and stdout. @throws UsageError */
function readListenAddress(values: Given["values"]): { host: string; port: number } | null {
  const text = values.get("http");
  if (text === undefined) return null;
  const [, host = "127.0.0.1", port = ""] = /^(?:(\[[\da-f:.]+\]|[\w.-]+):)?(\d{1,5})$/i.exec(text) ?? [];
  if (port === "" || Number(port) > 65_535) throw new UsageError(`--http ${text} is neither a port nor HOST:PORT`);
  return { host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) };
}
