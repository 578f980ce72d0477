import { type Fields, type Json, parseStored } from "../../json.ts";
import { PLACEHOLDER, reference } from "../../kinds/contract/placeholders.ts";
import { joinedBytes, type Pace } from "../../work/pace.ts";
import { withLogin } from "../documents/bots.ts";
import {
  type AccessLevel,
  type Cut,
  type Mentioned,
  ONES_OWN,
  type Piece,
  type Referred,
  referredBy,
  sharedKey,
  sharedName,
  shownDocument,
  takeApart,
  wholeRepository,
  withShown,
} from "../documents/documents.ts";
import type { Reading } from "../unchanged/unchanged.ts";
import { rowNamed } from "./left-out.ts";
import { joinObjects, type SharedRows, ShownRows } from "./shared-rows.ts";

/** A stored document, as the reads of the mirror answer it. */
export interface StoredDocument {
  /** 0 for a user. For a repository its own id. */
  repositoryId: number;
  document: string;
  body?: string | null;
  /** The keys that upstream shows only for a single resource. Set it when a single resource is served. */
  detail?: string | null;
}

/** For whom documents are rendered. */
export interface Audience {
  /** The API's address as the caller wrote it, without a trailing slash. */
  api: string;
  /**
   * The caller's access level to a repository. Absent: the mirror's own. Documents outside repositories are shown as to a
   * stranger.
   */
  accessLevel?: ((repositoryId: number) => AccessLevel) | undefined;
  /** Notes the repositories that are shown, or would be shown if they were known. */
  met?: Set<number> | undefined;
  /** Takes when what is embedded last changed, in ms. */
  embedded?: { changedAt: number } | undefined;
  /** The versions that the request has learnt: unchanged rows need not be read. */
  reading?: Reading | undefined;
  /** Lets other requests go on during a long rendering. Absent: they wait until all is rendered. */
  pace?: Pace | undefined;
}

/** A reference in documents of one repository. */
interface Mention {
  of: Referred;
  /** The rendered text. Undefined before it is rendered. */
  text: string | undefined;
}

/** The references in one repository's documents, by their placeholders. */
type Mentions = Map<string, Mention>;

/**
 * Renders stored documents as upstream's REST JSON: one text for each document, in order. Null: the document cannot be
 * shown (see `SharedRows.leftOut`).
 */
export async function renderDocuments(
  shared: SharedRows,
  documents: readonly StoredDocument[],
  audience: Audience,
): Promise<(string | null)[]> {
  const answer = await openRendering(shared, await takenApart(shared, documents, "text", audience), audience);
  const texts: (string | null)[] = [];
  for (const document of answer.documents) {
    if (audience.pace?.isOver()) await audience.pace.turn();
    texts.push(document && (rendered(document, answer)?.join("") ?? null));
  }
  return texts;
}

/**
 * The same as one JSON list, in UTF-8. The parts are joined as bytes, because one letter beyond Latin-1 doubles the
 * length of a long text. A text would also be encoded twice: for its ETag and for sending. Null if a document embeds a
 * repository, because callers see different parts of a repository.
 */
export async function renderList(
  shared: SharedRows,
  documents: readonly StoredDocument[],
  audience: Audience,
): Promise<Buffer | null> {
  const apart = await takenApart(shared, documents, "bytes", audience);
  for (const mentions of apart.mentions.values())
    for (const { of } of mentions.values()) if (of.key.kind === "r") return null;
  const answer = await openRendering(shared, apart, audience);
  // A few documents at a time, so that large texts do not hold the event loop.
  const lists: Buffer[] = [];
  let parts: string[] = ["["];
  let bodies = 0;
  let isFirst = true;
  for (const document of answer.documents) {
    const own = document && rendered(document, answer);
    if (!own) continue;
    if (!isFirst) parts.push(",");
    isFirst = false;
    for (const part of own) parts.push(part);
    bodies += document.stored.body?.length ?? 0;
    if (bodies < RENDERED_AT_ONCE) continue;
    lists.push(Buffer.from(parts.join(""), "latin1"));
    [parts, bodies] = [[], 0];
    if (audience.pace?.isOver()) await audience.pace.turn();
  }
  parts.push("]");
  const rest = Buffer.from(parts.join(""), "latin1");
  if (lists.length === 0) return rest;
  return audience.pace ? joinedBytes([...lists, rest], audience.pace) : Buffer.concat([...lists, rest]);
}

/** A millisecond's work, roughly. */
const RENDERED_AT_ONCE = 256 * 1024;

interface DocumentApart {
  stored: StoredDocument;
  /** The stored text, with the detail's keys. */
  whole: string;
  pieces: readonly Piece<Mention>[];
}

/** Documents taken apart, in the form (text or bytes) in which they are answered. */
interface Apart {
  form: TextForm;
  /** Null for one that cannot be shown. */
  documents: readonly (DocumentApart | null)[];
  /** By repository. */
  mentions: ReadonlyMap<number, Mentions>;
}

async function takenApart(
  { leftOut }: SharedRows,
  some: readonly StoredDocument[],
  form: TextForm,
  audience: Audience,
): Promise<Apart> {
  const mentions = new Map<number, Mentions>();
  const closenesses = new Map<number, AccessLevel>();
  const documents: (DocumentApart | null)[] = [];
  for (const stored of some) {
    if (audience.pace?.isOver()) await audience.pace.turn();
    const { repositoryId, document, detail } = stored;
    const ofRepository = mentions.get(repositoryId) ?? new Map();
    mentions.set(repositoryId, ofRepository);
    const accessLevel = closenesses.getOrInsertComputed(repositoryId, () => closenessIn(audience, repositoryId));
    const take = (): DocumentApart => {
      const whole = shownDocument(detail ? joinObjects(document, detail) : document, accessLevel);
      const pieces = documentPieces(textInForm(whole, form), repositoryId, ofRepository);
      return { stored, whole, pieces };
    };
    documents.push(leftOut ? leftOut.unless(() => rowNamed(stored), take) : take());
  }
  return { form, documents, mentions };
}

function closenessIn({ accessLevel }: Audience, repositoryId: number): AccessLevel {
  return accessLevel ? accessLevel(repositoryId) : "mirror";
}

async function openRendering(shared: SharedRows, apart: Apart, audience: Audience): Promise<Rendering> {
  const rows = new ShownRows(shared, audience);
  await rows.load(mentionedIn(apart));
  const { embedded } = audience;
  if (embedded) {
    // Of the documents' repository itself only the addresses are shown.
    const mentioned = [...apart.mentions.values()].flatMap((each) => [...each.values()].map(({ of }) => of));
    embedded.changedAt = Math.max(embedded.changedAt, rows.changedAt(mentioned));
  }
  return { ...apart, shared, rows, audience, places: new Map(), userVariants: new Map() };
}

function* mentionedIn({ mentions }: Apart): Iterable<Mentioned> {
  for (const [repositoryId, ofRepository] of mentions) {
    if (repositoryId !== 0) yield wholeRepository(repositoryId);
    for (const { of } of ofRepository.values()) yield of;
  }
}

function documentPieces(document: string, repositoryId: number, mentions: Mentions): Piece<Mention>[] {
  return takeApart(document, (placeholder) => {
    let mention = mentions.get(placeholder);
    if (!mention) {
      mention = { of: referredBy(placeholder, repositoryId), text: undefined };
      mentions.set(placeholder, mention);
    }
    return mention;
  });
}

/** The parts of a document's text. Null: it cannot be shown. */
function rendered(document: DocumentApart, answer: Rendering): string[] | null {
  const { leftOut } = answer.shared;
  const render = () => {
    const parts: string[] = [];
    append(parts, document, answer);
    return parts;
  };
  return leftOut ? leftOut.unless(() => rowNamed(document.stored), render) : render();
}

function append(
  parts: string[],
  { stored: { repositoryId, body }, whole, pieces }: DocumentApart,
  answer: Rendering,
): void {
  const { form } = answer;
  const place = repositoryRendering(repositoryId, answer);
  const left = withoutDeleted(whole, place);
  const shown = left === whole ? pieces : documentPieces(textInForm(left, form), repositoryId, place.mentions);
  appendPieces(parts, shown, place, body == null ? null : textInForm(body, form));
}

function appendPieces(
  parts: string[],
  pieces: readonly Piece<Mention>[],
  place: RepositoryRendering,
  body: string | null,
): void {
  for (const piece of pieces) {
    if (typeof piece === "string") parts.push(piece);
    else if (typeof piece === "object") {
      piece.text ??= renderShared(piece, place);
      parts.push(piece.text);
    } else parts.push(piece === PLACEHOLDER.body ? JSON.stringify(body) : place.cuts[piece]);
  }
}

/** "bytes": each character of a string stands for one byte of it in UTF-8. */
type TextForm = "text" | "bytes";

function textInForm(text: string, form: TextForm): string {
  // For ASCII both forms are the same.
  return form === "text" || Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString("latin1");
}

interface Rendering extends Apart {
  shared: SharedRows;
  rows: ShownRows;
  audience: Audience;
  /** By repository. */
  places: Map<number, RepositoryRendering>;
  /** By shape alone, since the text of a user does not depend on a repository. */
  userVariants: Map<string, string>;
}

/** The addresses under which one repository's documents are served, and the rows embedded in them. */
interface RepositoryRendering {
  repositoryId: number;
  answer: Rendering;
  mentions: Mentions;
  /** The addresses, escaped for JSON strings, by their `PLACEHOLDER`. */
  cuts: Readonly<Record<Exclude<Cut, typeof PLACEHOLDER.body>, string>>;
  /** A name for these addresses, for the keys of kept texts. */
  variant: string;
  /** The variants' names, by shape. They are looked up often, so each name is made only once. */
  variants: Map<string, string>;
  accessLevel: AccessLevel;
  /** Whether any label that the documents refer to was deleted. */
  hasDeletedLabels: boolean;
}

function repositoryRendering(repositoryId: number, answer: Rendering): RepositoryRendering {
  const known = answer.places.get(repositoryId);
  if (known) return known;
  const { rows, audience, form } = answer;
  const { api } = audience;
  const row = rows.repository(repositoryId);
  const [fullName, htmlUrl] = [row?.fullName ?? "", row?.htmlUrl ?? ""];
  const prefix = `l${repositoryId}/`;
  const place: RepositoryRendering = {
    repositoryId,
    answer,
    mentions: answer.mentions.get(repositoryId) ?? new Map(),
    cuts: {
      [PLACEHOLDER.repository]: escapedJson(`${api}/repos/${fullName}`, form),
      [PLACEHOLDER.api]: escapedJson(api, form),
      [PLACEHOLDER.page]: escapedJson(htmlUrl, form),
    },
    variant: `${form}\n${api}\n${fullName}\n${htmlUrl}`,
    variants: new Map(),
    accessLevel: closenessIn(audience, repositoryId),
    hasDeletedLabels: [...rows.gone].some((name) => name.startsWith(prefix)),
  };
  answer.places.set(repositoryId, place);
  return place;
}

function renderShared({ of }: Mention, place: RepositoryRendering): string {
  const { key, name, shape, login } = of;
  const { shared, rows } = place.answer;
  const row = rows.row(name);
  // The row is deleted, or was never stored.
  if (!row || row.isGone) return "null";
  const at = key.kind === "r" ? repositoryRendering(key.id, place.answer) : place;
  const { accessLevel } = at;
  const variant = variantOf(of, place) + (row.isPublic ? "" : accessLevel);
  const known = row.texts.get(variant);
  if (known !== undefined) return known;
  const fields = parseStored<Fields>(row.document);
  const picked: Fields = {};
  for (const name of rows.keys(shape) ?? Object.keys(fields)) {
    const value = fields[name];
    if (value !== undefined) picked[name] = value;
  }
  if (key.kind === "u") withoutOnesOwn(picked, fields);
  const named = login === null ? picked : withLogin(picked, login);
  const shown = row.isPublic ? named : withShown(named, accessLevel);
  const parts: string[] = [];
  const json = textInForm(JSON.stringify(shown), at.answer.form);
  const pieces = documentPieces(json, at.repositoryId, at.mentions);
  appendPieces(parts, pieces, at, null);
  const text = parts.join("");
  shared.keepText(name, row, variant, text);
  return text;
}

/** Deletes the keys that upstream shows only to the account itself, and empties the email, which it may hide. */
function withoutOnesOwn(picked: Fields, fields: Fields): void {
  const own = Object.keys(fields).filter((key) => ONES_OWN.test(key));
  for (const key of own) delete picked[key];
  if (own.length > 0 && "email" in picked) picked.email = null;
}

/** The name of the form in which a row is rendered, for the keys of kept texts. */
function variantOf(
  { key: { kind }, shape, login }: Referred,
  { variant, variants, answer: { form, audience, userVariants } }: RepositoryRendering,
): string {
  const known = kind === "u" ? userVariants : variants;
  const place = login === null ? shape : `${shape}:${login}`;
  return known.getOrInsertComputed(place, () =>
    kind === "u" ? `${place}\n${form}\n${audience.api}` : `${place}\n${variant}`,
  );
}

/**
 * Deleting a label takes it off its issues, and no event says so of each issue. So deleted labels are left out here.
 */
function withoutDeleted(document: string, { hasDeletedLabels, repositoryId, answer }: RepositoryRendering): string {
  if (!hasDeletedLabels) return document;
  const isDeleted = (value: Json) => {
    const found = reference(value);
    return found?.kind === "l" && (answer.rows.row(sharedName(sharedKey(found, repositoryId)))?.isGone ?? false);
  };
  const fields = parseStored<Fields>(document);
  if (!Array.isArray(fields.labels) || !fields.labels.some(isDeleted)) return document;
  return JSON.stringify({ ...fields, labels: fields.labels.filter((value) => !isDeleted(value)) });
}

function escapedJson(text: string, form: TextForm): string {
  return textInForm(JSON.stringify(text).slice(1, -1), form);
}
