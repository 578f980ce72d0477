import type { CallToolResult, McpServer, StandardSchemaWithJSON } from "@modelcontextprotocol/server";
import { reasonOf } from "../../../failure.ts";
import type { Fields } from "../../../json.ts";
import { type CallersLine, LineFullError } from "../../../work/callers-line.ts";
import { type AskedMirror, MirrorCall } from "../api/call.ts";
import { ToolFault } from "../api/faults.ts";

/** What a tool answers, before its freshness is added. */
interface ToolAnswer {
  fields: Fields;
  /** How to ask for what was left out. */
  more?: readonly string[];
}

interface Declared<Given> {
  name: string;
  title: string;
  /** For an agent that chooses among tools. */
  description: string;
  input: StandardSchemaWithJSON<unknown, Given>;
  isWrite?: true;
  /** It waits for something to happen, so it takes no place of those that work. The mirror bounds its streams. */
  isWaiting?: true;
  run(call: MirrorCall, given: Given): Promise<ToolAnswer>;
}

/** Where a tool does its work. */
export interface Workplace {
  mirror: AskedMirror;
  /** Bounds how many calls work at once. */
  turns: CallersLine;
  /** Tells the operator of a mistake of ours. */
  complain(text: string): void;
}

/** A tool, fit to be offered by a server. */
export interface Tool {
  isWrite: boolean;
  offer(server: McpServer, at: Workplace): void;
}

export function tool<Given>(declared: Declared<Given>): Tool {
  const { name, title, description, input, isWrite = false, isWaiting = false, run } = declared;
  // A write may remove what people wrote, and done twice it may do more than once.
  const annotations = isWrite ? { destructiveHint: true, openWorldHint: true } : { readOnlyHint: true };
  return {
    isWrite,
    offer(server, at) {
      server.registerTool(name, { title, description, inputSchema: input, annotations }, async (given, ctx) => {
        const call = new MirrorCall(at.mirror, ctx.mcpReq.signal);
        try {
          using _turn = isWaiting ? null : await at.turns.enter(at.mirror.token, ctx.mcpReq.signal);
          const { fields, more = [] } = await run(call, given);
          return result({ ...fields, ...(more.length > 0 && { more: [...more] }), freshness: call.freshness });
        } catch (error) {
          return failed(error, name, at);
        }
      });
    },
  };
}

function result(fields: Fields): CallToolResult {
  // Programs read the structure, and older ones the same as text.
  return { content: [{ type: "text", text: JSON.stringify(fields) }], structuredContent: fields };
}

function failed(error: unknown, name: string, { mirror: { token }, complain }: Workplace): CallToolResult {
  const { kind, message, status, retryAfterSeconds } = faultOf(error, (reason) => {
    complain(`${name} failed: ${reason.replaceAll(token, "[redacted]")}`);
  });
  const fields = {
    error: {
      kind,
      message: message.replaceAll(token, "[redacted]"),
      status,
      retry_after_seconds: retryAfterSeconds,
    },
  };
  return { ...result(fields), isError: true };
}

function faultOf(error: unknown, complain: (reason: string) => void): ToolFault {
  if (error instanceof ToolFault) return error;
  if (error instanceof LineFullError)
    return new ToolFault("busy", "Too many calls are under way at once: wait for their answers, then ask again", {
      cause: error,
      retryAfterSeconds: 5,
    });
  complain(reasonOf(error));
  return new ToolFault("failed", "This tool has failed, and its server's stderr says why", { cause: error });
}
