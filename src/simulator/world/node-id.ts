/**
 * Global node ids in both generations (GitHub: both coexist in one payload and both are accepted as input).
 * Old: base64 of `0<length of type name>:<Type><id>`. New: `PREFIX_` + base64url of a MessagePack array.
 */
export type NodeKind =
  | "User"
  | "Organization"
  | "Bot"
  | "Mannequin"
  | "Repository"
  | "Issue"
  | "PullRequest"
  | "Label"
  | "Milestone"
  | "IssueComment"
  | "PullRequestReview"
  | "PullRequestReviewComment"
  | "CheckSuite"
  | "CheckRun"
  | "StatusContext"
  | "Release"
  | "ReleaseAsset"
  | "Deployment"
  | "DeploymentStatus"
  | "Workflow"
  | "WorkflowRun"
  | "IssueType"
  | "Team";

const PREFIXES: Readonly<Record<NodeKind, string>> = {
  User: "U",
  Organization: "O",
  Bot: "BOT",
  Mannequin: "M",
  Repository: "R",
  Issue: "I",
  PullRequest: "PR",
  Label: "LA",
  Milestone: "MI",
  IssueComment: "IC",
  PullRequestReview: "PRR",
  PullRequestReviewComment: "PRRC",
  CheckSuite: "CS",
  CheckRun: "CR",
  StatusContext: "SC",
  Release: "RE",
  ReleaseAsset: "RA",
  // Both as recorded in 2024: cli/cli#5541.
  Deployment: "DE",
  DeploymentStatus: "DES",
  // Both as in the webhooks-examples.
  Workflow: "W",
  WorkflowRun: "WFR",
  IssueType: "IT",
  Team: "T",
};

function isKind(text: string): text is NodeKind {
  return Object.hasOwn(PREFIXES, text);
}

const KINDS = new Map(
  Object.keys(PREFIXES)
    .filter(isKind)
    .map((kind) => [PREFIXES[kind], kind]),
);

/** `repositoryId` is given for what lives in a repository; only new ids carry it. */
export function nodeId(kind: NodeKind, id: number, legacy: boolean, repositoryId?: number): string {
  if (legacy) return legacyNodeId(kind, id);
  const parts = repositoryId === undefined ? [0, id] : [0, repositoryId, id];
  const bytes: number[] = [0x90 | parts.length];
  for (const part of parts) pack(part, bytes);
  return `${PREFIXES[kind]}_${Buffer.from(bytes).toString("base64url")}`;
}

/** Of what happened to an issue, as GitHub's OpenAPI shows one: `LOE_lADODwFebM5HwC0kzwAAAAF_RoSA`. */
export function eventNodeId(prefix: string, parts: readonly number[]): string {
  const bytes: number[] = [0x90 | (parts.length + 1), 0];
  for (const part of parts) pack(part, bytes);
  return `${prefix}_${Buffer.from(bytes).toString("base64url")}`;
}

/** Apps and installations have this form only. */
export function legacyNodeId(type: string, id: number): string {
  return Buffer.from(`0${type.length}:${type}${id}`, "latin1").toString("base64");
}

/** What a node id of either generation means; undefined when it is not one. */
export function parseNodeId(text: string): { kind: NodeKind; id: number } | undefined {
  const [isNew, prefix = "", packed = ""] = /^([A-Z]+)_([A-Za-z0-9_-]+)$/.exec(text) ?? [];
  if (isNew !== undefined) {
    const kind = KINDS.get(prefix);
    const numbers = unpack(Buffer.from(packed, "base64url"));
    const id = numbers?.at(-1);
    return kind && id !== undefined ? { kind, id } : undefined;
  }
  const old = Buffer.from(text, "base64").toString("latin1");
  const [, length, kind = "", id] = /^0(\d+):([A-Za-z]+)(\d+)$/.exec(old) ?? [];
  return isKind(kind) && kind.length === Number(length) ? { kind, id: Number(id) } : undefined;
}

/** MessagePack's shortest form, as `U_kgDOADP9xw` is. */
function pack(value: number, bytes: number[]): void {
  if (value < 0x80) bytes.push(value);
  else if (value <= 0xff) bytes.push(0xcc, value);
  else if (value <= 0xffff) bytes.push(0xcd, value >>> 8, value & 255);
  else if (value <= 0xffff_ffff) bytes.push(0xce, value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255);
  else {
    const buffer = Buffer.alloc(8);
    buffer.writeBigUInt64BE(BigInt(value));
    bytes.push(0xcf, ...buffer);
  }
}

function unpack(bytes: Buffer): number[] | undefined {
  const head = bytes[0];
  if (head === undefined || (head & 0xf0) !== 0x90) return undefined;
  const numbers: number[] = [];
  let at = 1;
  while (at < bytes.length) {
    const tag = bytes.readUInt8(at++);
    const width = tag < 0x80 ? 0 : tag === 0xcc ? 1 : tag === 0xcd ? 2 : tag === 0xce ? 4 : tag === 0xcf ? 8 : -1;
    if (width < 0 || at + width > bytes.length) return undefined;
    if (width === 0) numbers.push(tag);
    else numbers.push(width === 8 ? Number(bytes.readBigUInt64BE(at)) : bytes.readUIntBE(at, width));
    at += width;
  }
  return numbers.length === (head & 0x0f) ? numbers : undefined;
}
