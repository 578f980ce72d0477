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
