import { fileURLToPath } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { inherited } from "../support/config.ts";
import { Run } from "./tain.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

/** The versions of the protocol that the server speaks: most agents' of today, and the newest. */
export const ERAS = ["2025-11-25", "2026-07-28"] as const;
type Era = (typeof ERAS)[number];

interface Answer {
  isError: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: what tools answer is compared, not trusted
  fields: any;
  text: string;
}

/** An agent that is connected to `tain mcp`, by the protocol's own client. */
export interface Agent extends AsyncDisposable {
  client: Client;
  call(name: string, given?: Record<string, unknown>): Promise<Answer>;
  /** What the server has said on stderr. */
  said(): string;
}

/** What `tain mcp` gets of the environment. */
export function environment(env: NodeJS.ProcessEnv = {}): Record<string, string> {
  const given = { ...inherited, TAIN_HOME: "/nonexistent/tain", ...env };
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** Starts `tain mcp`, or another program, and speaks with it over its standard streams. */
export async function startAgent(
  args: readonly string[],
  {
    era = ERAS[0],
    env = {},
    program = [process.execPath, main, "mcp"],
  }: { era?: Era; env?: NodeJS.ProcessEnv; program?: readonly string[] } = {},
): Promise<Agent> {
  const [command = "", ...first] = program;
  const transport = new StdioClientTransport({
    ...{ command, args: [...first, ...args] },
    ...{ env: environment(env), stderr: "pipe" as const },
  });
  let said = "";
  transport.stderr?.on("data", (text) => {
    said += text;
  });
  return await connected(transport, era, () => said);
}

/** Speaks with a `tain mcp` that serves HTTP. */
export async function agentAt(url: string, token: string, { era = ERAS[0] }: { era?: Era } = {}): Promise<Agent> {
  const headers = { authorization: `Bearer ${token}` };
  return await connected(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }), era, () => "");
}

async function connected(
  transport: StdioClientTransport | StreamableHTTPClientTransport,
  era: Era,
  said: () => string,
): Promise<Agent> {
  const mode = era === "2026-07-28" ? { pin: era } : ("legacy" as const);
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
  await client.connect(transport);
  return {
    client,
    async call(name, given = {}) {
      const { isError = false, structuredContent, content } = await client.callTool({ name, arguments: given });
      const [first] = content;
      return { isError, fields: structuredContent, text: first?.type === "text" ? first.text : "" };
    },
    said,
    [Symbol.asyncDispose]: () => client.close(),
  };
}

/** `tain mcp --http`, as a process. */
export interface HttpAgents extends AsyncDisposable {
  /** Where it serves. */
  url: string;
  run: Run;
}

export async function serveAgents(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<HttpAgents> {
  const run = new Run(["mcp", "--http", "0", ...args], environment(env));
  const [, url = ""] = await run.said(/served at (\S+)/);
  return {
    ...{ url, run },
    async [Symbol.asyncDispose]() {
      run.signal("SIGTERM");
      await run.exited;
    },
  };
}
