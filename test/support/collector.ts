import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A span, as a collector receives it. */
export interface ToldSpan {
  traceId: string;
  spanId: string;
  /** Empty: the span begins its trace. */
  parentId: string;
  name: string;
  /** The protocol's numbers: 1 internal, 2 server, 3 client, 5 consumer. */
  kind: number;
  attributes: Record<string, string | number>;
  /** The traces to which its links lead. */
  links: string[];
  hasFailed: boolean;
  /** The attributes of the process that sent the span. */
  resource: Record<string, string | number>;
}

/** An OpenTelemetry collector that speaks OTLP over HTTP, in protocol buffers. */
export interface Collector extends AsyncDisposable {
  url: string;
  spans: ToldSpan[];
  /** All bytes that were received, as text. */
  bytes: () => string;
  requests: { path: string; headers: NodeJS.Dict<string | string[]> }[];
}

export async function openCollector(): Promise<Collector> {
  const bodies: Buffer[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts);
      bodies.push(body);
      collector.requests.push({ path: request.url ?? "", headers: request.headers });
      collector.spans.push(...spansOf(body));
      response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A TCP server's address is an object.
  const { port } = server.address() as AddressInfo;
  const collector: Collector = {
    url: `http://127.0.0.1:${port}`,
    spans: [],
    bytes: () => Buffer.concat(bodies).toString("latin1"),
    requests: [],
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return collector;
}

// The numbers of the fields are in opentelemetry/proto/trace/v1/trace.proto.

function spansOf(request: Buffer): ToldSpan[] {
  return messages(request, 1).flatMap((ofResource) => {
    const resource = Object.assign({}, ...messages(ofResource, 1).map((one) => attributesOf(one, 1)));
    return messages(ofResource, 2).flatMap((scope) => messages(scope, 2).map((span) => spanOf(span, resource)));
  });
}

function spanOf(span: Buffer, resource: ToldSpan["resource"]): ToldSpan {
  const hex = (field: number) => messages(span, field)[0]?.toString("hex") ?? "";
  return {
    traceId: hex(1),
    spanId: hex(2),
    parentId: hex(4),
    name: messages(span, 5)[0]?.toString("utf8") ?? "",
    kind: numberIn(span, 6) ?? 0,
    attributes: attributesOf(span, 9),
    links: messages(span, 13).map((link) => messages(link, 1)[0]?.toString("hex") ?? ""),
    hasFailed: messages(span, 15).some((status) => numberIn(status, 3) === 2),
    resource,
  };
}

function attributesOf(message: Buffer, field: number): Record<string, string | number> {
  return Object.fromEntries(
    messages(message, field).map((pair) => {
      const [value = Buffer.alloc(0)] = messages(pair, 2);
      const text = messages(value, 1)[0]?.toString("utf8");
      return [messages(pair, 1)[0]?.toString("utf8") ?? "", text ?? numberIn(value, 3) ?? 0];
    }),
  );
}

/** The values of a field with a length: texts, bytes, messages. */
function messages(message: Buffer, field: number): Buffer[] {
  return fieldsOf(message).flatMap((one) => (one.field === field && Buffer.isBuffer(one.value) ? [one.value] : []));
}

function numberIn(message: Buffer, field: number): number | undefined {
  for (const one of fieldsOf(message)) if (one.field === field && typeof one.value === "number") return one.value;
  return undefined;
}

function fieldsOf(message: Buffer): { field: number; value: Buffer | number }[] {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = message.readUInt8(at++);
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  const bytes = (length: number) => {
    at += length;
    return message.subarray(at - length, at);
  };
  const found: { field: number; value: Buffer | number }[] = [];
  while (at < message.length) {
    const key = varint();
    const field = Math.floor(key / 8);
    switch (key % 8) {
      case 0:
        found.push({ field, value: varint() });
        break;
      case 1:
        bytes(8);
        break;
      case 2:
        found.push({ field, value: bytes(varint()) });
        break;
      case 5:
        bytes(4);
        break;
      default:
        throw new Error(`No protocol buffer: ${message.toString("hex").slice(0, 200)}`);
    }
  }
  return found;
}
