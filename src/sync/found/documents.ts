import type { Transaction } from "../../../db/database.ts";
import { type Fields, isObject, type Json, numberOf, objectOf, textOf } from "../../json.ts";
import { type Kind, numberInAddress, type Resource, type ResourceKey } from "../../kinds/contract/kind.ts";
import { resourceOf } from "../../kinds/registry.ts";
import { withShown } from "../../mirror/documents/documents.ts";
import { SharedRows } from "../../mirror/render/shared-rows.ts";
import { Unfolding } from "../../mirror/render/unfolding.ts";
import { findAllStored } from "../../mirror/store/merge.ts";
import type { Stored } from "../../mirror/store/merge-rule.ts";
import { Pace } from "../../work/pace.ts";
import { simpleUser } from "../reads/simple-user.ts";
import type { Making } from "./makings.ts";

/** A resource as it is stored, by kind and key. */
type StoredByName = ReadonlyMap<string, Stored>;

const subjectName = ({ kind, key }: Pick<ResourceKey, "kind" | "key">) => `${kind} ${key}`;

/** What is stored of these resources of one repository; an account lies in none. */
export async function storedByName(
  tx: Transaction,
  repositoryId: number,
  some: readonly Pick<ResourceKey, "kind" | "key">[],
): Promise<StoredByName> {
  const keys = some.map(({ kind, key }) => {
    return { kind, key, repositoryId: resourceOf(kind).isGlobal ? 0 : repositoryId };
  });
  const storedOf = await findAllStored(tx, keys);
  return new Map(
    keys.flatMap((one): [string, Stored][] => {
      const stored = storedOf(one);
      return stored ? [[subjectName(one), stored]] : [];
    }),
  );
}

/** An event that is to be made of one resource. */
export interface MakingOf {
  subject: Pick<ResourceKey, "kind" | "key">;
  stored: Stored;
  making: Making;
}

/** An event with its payload. */
export interface MadeOf extends MakingOf {
  event: string;
  payload: Fields;
}

/** Payloads in upstream's form, with the mirror's values of now. An event that cannot be shown whole is left out. */
export async function withPayloads(
  tx: Transaction,
  { repositoryId, api }: { repositoryId: number; api: string },
  makings: readonly MakingOf[],
): Promise<MadeOf[]> {
  const parentOf = ({ subject, stored }: MakingOf) => {
    const parent = parentBeside(subject.kind);
    const number = parent && numberInAddress(stored.fields[parent.address]);
    return parent && number != null ? { kind: parent.kind, key: number, as: parent.kind } : null;
  };
  const embeddedIn = ({ subject, stored }: MakingOf) => {
    const embedded = resourceOf(subject.kind).events?.embedded;
    const id = embedded?.id(stored.fields) ?? null;
    return embedded && id !== null ? [{ ...embedded, as: embedded.key, key: id }] : [];
  };
  const beside = makings.flatMap((one) => [parentOf(one) ?? [], one.making.beside ?? [], embeddedIn(one)].flat());
  const others = await storedByName(tx, repositoryId, beside);
  const known = new Map([
    ...others,
    ...makings.map(({ subject, stored }): [string, Stored] => [subjectName(subject), stored]),
  ]);
  const unfolding = new Unfolding(new SharedRows(tx), { api }, new Pace());
  const globals = new Set(
    [...beside, ...makings.map(({ subject }) => subject)]
      .filter(({ kind }) => resourceOf(kind).isGlobal)
      .map(subjectName),
  );
  const names = [...known.keys()];
  const documents = [...known].map(([name, { fields }]) => ({
    repositoryId: globals.has(name) ? 0 : repositoryId,
    document: JSON.stringify(fields),
  }));
  const unfolded = await unfolding.unfold(documents);
  const shown = new Map(unfolded.map((fields, at) => [names[at] ?? "", withShown(fields, "reader")]));
  const repository = await unfolding.repository(repositoryId);
  if (!repository) return [];
  const shownRepository = withoutDetail("repository", withShown(repository, "reader"));
  return makings.flatMap((one): MadeOf[] => {
    const { subject, making } = one;
    const { events, inPayload } = resourceOf(subject.kind);
    const document = shown.get(subjectName(subject));
    const parent = parentOf(one);
    const parts = [parent ?? [], making.beside ?? []].flat();
    const isWhole = [...parts, ...embeddedIn(one)].every((part) => isShown(others.get(subjectName(part)), part.kind));
    if (!events || !document || (parentBeside(subject.kind) && !parent) || !isWhole) return [];
    const payload: Fields = {
      action: making.action,
      ...events.extra?.(subject.key),
      [events.in]: {
        ...inPayload(document),
        ...Object.fromEntries(embeddedIn(one).map((part) => [part.as, part.shown(shown.get(subjectName(part)) ?? {})])),
      },
      ...Object.fromEntries(
        parts.map(({ kind, key, as }) => [as, besideIn(kind, shown.get(subjectName({ kind, key })) ?? {})]),
      ),
      ...making.more,
      repository: shownRepository,
      ...organizationOf(shownRepository),
      sender: senderOf(one, document, { api, page: pagesOrigin(repository) }),
    };
    return [{ ...one, event: events.event, payload }];
  });
}

/** What a resource of the kind stands under, if its payloads show that beside it. */
export function parentBeside(kind: Kind): Resource["parent"] {
  const { parent, events } = resourceOf(kind);
  return parent && Object.values(events?.beside ?? {}).includes(parent.kind) ? parent : undefined;
}

/** Deleted accounts are still shown; a deleted label is not. */
function isShown(stored: Stored | undefined, kind: Kind): boolean {
  return stored !== undefined && (kind !== "label" || stored.deletedAt === null);
}

/** The document as it stands beside another subject, such as the pull request of a review. */
function besideIn(kind: Kind, document: Fields): Fields {
  const { detailKeys, inPayload } = resourceOf(kind);
  return detailKeys.size > 0 ? withoutDetail(kind, document) : inPayload(document);
}

/** The document without the keys that only a read of one resource shows. */
function withoutDetail(kind: Kind, document: Fields): Fields {
  const { detailKeys } = resourceOf(kind);
  return Object.fromEntries(Object.entries(document).filter(([key]) => !detailKeys.has(key)));
}

/**
 * A payload as it is sent, without the rights that the mirror's own token has in a repository, wherever one is
 * embedded.
 */
export function payloadText(payload: Fields): string {
  return JSON.stringify(payload, (_key, value: Json) => {
    if (!isObject(value) || typeof value.full_name !== "string" || value.permissions === undefined) return value;
    const { permissions: _, ...rest } = value;
    return rest;
  });
}

/**
 * The account that made the change, where the resource names it. Otherwise upstream's `ghost`, an account that gives
 * nobody a right.
 */
function senderOf({ subject, making }: MakingOf, document: Fields, at: { api: string; page: string }): Json {
  const isBorn = making.tells.some(({ aspect, value }) => aspect === "exists" && value === true);
  const did = isBorn
    ? resourceOf(subject.kind).events?.maker(document)
    : making.action === "closed"
      ? (document.merged_by ?? document.closed_by)
      : null;
  return isObject(did) ? did : ghost(at);
}

/** Where upstream's pages are, by the address of one. */
function pagesOrigin({ html_url: address }: Fields): string {
  return URL.parse(textOf(address) ?? "")?.origin ?? "https://github.com";
}

function ghost({ api, page }: { api: string; page: string }): Fields {
  return simpleUser(
    {
      ...{
        login: "ghost",
        id: 10_137,
        nodeId: "MDQ6VXNlcjEwMTM3",
        avatarUrl: `${page}/ghost.png`,
        htmlUrl: `${page}/ghost`,
      },
      ...{ type: "User", isSiteAdmin: false },
    },
    api,
  );
}

function organizationOf({ owner }: Fields): Fields {
  const { type, login, id, node_id: nodeId, avatar_url: avatarUrl, url } = objectOf(owner);
  if (type !== "Organization" || typeof login !== "string" || numberOf(id) === null) return {};
  const below = String(url ?? "").replace(/\/users\/[^/]+$/, `/orgs/${login}`);
  return {
    organization: {
      login,
      id: id ?? null,
      node_id: nodeId ?? "",
      url: below,
      repos_url: `${below}/repos`,
      events_url: `${below}/events`,
      hooks_url: `${below}/hooks`,
      issues_url: `${below}/issues`,
      members_url: `${below}/members{/member}`,
      public_members_url: `${below}/public_members{/member}`,
      avatar_url: avatarUrl ?? "",
      description: null,
    },
  };
}
