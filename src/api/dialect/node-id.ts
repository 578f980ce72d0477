import type { IncomingHttpHeaders } from "node:http";

/**
 * Global ids. The service has two generations, and both are accepted. The older is base64 of `0<length>:<Type><id>`.
 * The newer is a prefix for the type and base64url of a MessagePack array `[0, …, id]`. Pure.
 */
export interface DecodedId {
  type: NodeType;
  id: number;
}

const PREFIXES = {
  U: "User",
  O: "Organization",
  BOT: "Bot",
  R: "Repository",
  I: "Issue",
  PR: "PullRequest",
  LA: "Label",
  MI: "Milestone",
  IC: "IssueComment",
  PRR: "PullRequestReview",
  PRRC: "PullRequestReviewComment",
} as const;
type NodeType = (typeof PREFIXES)[keyof typeof PREFIXES];

const NODE_TYPES: readonly NodeType[] = Object.values(PREFIXES);

/** What has an id and is not looked up by it here. */
const OTHER_PREFIXES = {
  Mannequin: "M",
  Commit: "C",
  Ref: "REF",
  CheckRun: "CR",
  CheckSuite: "CS",
  StatusContext: "SC",
  Deployment: "DE",
  DeploymentStatus: "DES",
  Workflow: "W",
  WorkflowRun: "WFR",
  Release: "RE",
  ReleaseAsset: "RA",
} as const;
export type OtherNodeType = keyof typeof OTHER_PREFIXES;
/** The newer id of each type begins with this. */
const PREFIX_OF: ReadonlyMap<string, string> = new Map([
  ...Object.entries(PREFIXES).map(([prefix, type]): [string, string] => [type, prefix]),
  ...Object.entries(OTHER_PREFIXES),
]);
/** These lie in no repository, or are one: their newer ids name none beside. */
const ALONE: ReadonlySet<string> = new Set(["User", "Organization", "Bot", "Mannequin", "Repository"]);

/** GitHub docs: with 1 each id has the newer form. Without it, or with 0, an id is shown as upstream showed it. */
export function hasNextIds({ "x-github-next-global-id": form }: IncomingHttpHeaders): boolean {
  return form === "1";
}

/**
 * A document of REST with its ids in the newer form, as the service was seen to answer under this header. What people
 * wrote holds no such key: its quotes are escaped.
 */
export function withNextIds(text: string, repositoryId: number): string {
  return text.replace(/"node_id":"([^"\\]+)"/g, (whole, id: string) => {
    const next = nextId(id, repositoryId);
    return next === null ? whole : `"node_id":"${next}"`;
  });
}

/** The newer form of an id. Null: it has that form already, or nothing shows what it would be. */
export function nextId(text: string, repositoryId: number): string | null {
  if (/^[A-Z]+[A-Za-z]*_/.test(text)) return null;
  const match = /^0(\d+):(.+)$/s.exec(Buffer.from(text, "base64").toString());
  const [, length, rest = ""] = match ?? [];
  const [type, own] = [rest.slice(0, Number(length)), rest.slice(Number(length))];
  const prefix = PREFIX_OF.get(type);
  if (prefix === undefined) return null;
  // The older ids of commits and refs name their repository: `06:Commit1296269:6dcb09b…`.
  const [, home, name] = /^(\d+):(.+)$/s.exec(own) ?? [];
  const id = /^\d{1,15}$/.test(own) ? Number(own) : name;
  if (id === undefined) return null;
  const parts = ALONE.has(type) ? [0, id] : [0, home === undefined ? repositoryId : Number(home), id];
  const packed = Buffer.concat([Buffer.from([0x90 | parts.length]), ...parts.map(pack)]);
  return `${prefix}_${packed.toString("base64url")}`;
}

/** MessagePack as the service writes it: numbers as short as can be, texts without the one-byte length. */
function pack(value: number | string): Buffer {
  if (typeof value === "string") {
    const text = Buffer.from(value);
    const head = text.length < 32 ? [0xa0 | text.length] : [0xda, text.length >> 8, text.length & 0xff];
    return Buffer.concat([Buffer.from(head), text]);
  }
  if (value < 0x80) return Buffer.from([value]);
  const [code, size] =
    value < 0x100 ? [204, 1] : value < 0x1_0000 ? [205, 2] : value < 0x1_0000_0000 ? [206, 4] : [207, 8];
  const bytes = Buffer.alloc(9, code);
  bytes.writeBigUInt64BE(BigInt(value), 1);
  return Buffer.concat([bytes.subarray(0, 1), bytes.subarray(9 - size)]);
}

/** The id's type and number. Null: it is no id of a kind that is mirrored. */
export function decodeId(text: string): DecodedId | null {
  return decodeNewId(text) ?? decodeLegacyId(text);
}

function decodeNewId(text: string): DecodedId | null {
  const match = /^([A-Z]+)_([\w-]+)$/.exec(text);
  const [, prefix, numbersText = ""] = match ?? [];
  const type = Object.entries(PREFIXES).find(([name]) => name === prefix)?.[1];
  if (!type) return null;
  const numbers = unpackNumbers(Buffer.from(numbersText, "base64url"));
  const id = numbers?.at(-1);
  return numbers && numbers.length >= 2 && numbers[0] === 0 && id !== undefined ? { type, id } : null;
}

function decodeLegacyId(text: string): DecodedId | null {
  const match = /^0(\d+):([A-Za-z]+)(\d+)$/.exec(Buffer.from(text, "base64").toString("latin1"));
  if (!match) return null;
  const [, length, name, digits] = match;
  const type = NODE_TYPES.find((candidate) => candidate === name);
  const id = Number(digits);
  return type && Number(length) === type.length && Number.isSafeInteger(id) ? { type, id } : null;
}

/** The numbers of a MessagePack array of whole numbers. Null: the bytes are anything else. */
function unpackNumbers(bytes: Buffer): number[] | null {
  const head = bytes[0];
  if (head === undefined || head < 0x90 || head > 0x9f) return null;
  const numbers: number[] = [];
  let at = 1;
  for (let first = bytes[at]; first !== undefined; first = bytes[at]) {
    const size = first < 0x80 ? 0 : { 204: 1, 205: 2, 206: 4, 207: 8 }[first];
    if (size === undefined || at + 1 + size > bytes.length) return null;
    if (size === 0) numbers.push(first);
    else if (size === 8) numbers.push(Number(bytes.readBigUInt64BE(at + 1)));
    else numbers.push(bytes.readUIntBE(at + 1, size));
    at += 1 + size;
  }
  return numbers.length === head - 0x90 && numbers.every(Number.isSafeInteger) ? numbers : null;
}
