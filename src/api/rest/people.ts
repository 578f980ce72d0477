import { sql } from "../../../db/sql.ts";
import { type Fields, objectOf } from "../../json.ts";
import {
  findHeldPeople,
  findListedPeople,
  findOneListed,
  findTeamBySlug,
  type HeldPeople,
  type ListedOne,
} from "../../mirror/read/people.ts";
import { findUser, findUserByLogin, type UserRow } from "../../mirror/read/users.ts";
import { listOfOrganization, listOfRepository, listOfTeam, type PeopleListKey } from "../../mirror/store/people.ts";
import { type Answer, type Call, ok, type RepositoryCall } from "../call/call.ts";
import { OutdatedFault } from "../call/outdated.ts";
import { showEach } from "../call/view.ts";
import type { PeopleShown } from "../callers/people-rights.ts";
import { accessLevelOf, hasMirrorsRights, readsAll } from "../callers/permissions.ts";
import { ApiFault, notFound, notHeld, unread } from "../dialect/fault.ts";
import { numberedLink } from "../dialect/paging.ts";
import { requireOrganization } from "./accounts.ts";
import { askedPage, numberParam, pageDb } from "./page.ts";

const NOTHING: PeopleShown = { collaborators: false, isAdmin: false, isMember: false, isOwner: false, teams: 0 };

/**
 * What upstream would show the caller of people. It is asked for those with a token of its own. Our own tokens act for the
 * mirror's account, as far as they go: for a whole repository, for all that is mirrored, or to read all that.
 * @throws NotHeldFault if upstream does not say
 */
async function shownTo(
  { caller, ctx }: Call,
  { repository, organization }: { repository?: { id: number; nodeId: string | null }; organization: UserRow | null },
): Promise<PeopleShown> {
  if (caller.kind === "anonymous") return NOTHING;
  if (caller.by.of === "own") {
    const isMirror = repository !== undefined && accessLevelOf(caller, repository.id) === "mirror";
    const isOwner = hasMirrorsRights(caller);
    const { repositories, kinds } = caller.by.token;
    const isMember = isOwner || (repositories === "all" && readsAll(kinds));
    return { collaborators: isMirror, isAdmin: isMirror, isMember, isOwner, teams: 0 };
  }
  // Who reads from a replica alone leaves what upstream has to be asked for to others.
  if (ctx.db.isReadOnly) throw notHeld();
  const nodeId = organization && (objectOf(JSON.parse(organization.document)).node_id ?? null);
  const shown = await caller.by.peopleShown({
    repository: repository?.nodeId ?? null,
    organization: typeof nodeId === "string" ? nodeId : null,
  });
  if (shown === null) throw notHeld();
  const isShownCollaborators = shown.collaborators && (organization === null || shown.isMember);
  // A token without scopes may lack a permission ("members", "administration"), and only a refusal would tell that.
  return { ...(caller.scopes === null ? NOTHING : shown), collaborators: isShownCollaborators };
}

/** Refuses the caller in upstream's words. Those with a token of upstream's are forwarded: it may know better. */
function refuse({ caller }: Call, fault: ApiFault): never {
  if (caller.kind === "anonymous") throw new ApiFault(401, "Requires authentication");
  throw caller.by.of === "upstream" ? notHeld() : fault;
}

const mustPush = (what: string) => new ApiFault(403, `Must have push access to view ${what}.`);

/**
 * The mirror's answer with the time of its list. If something has changed since, upstream is asked.
 * @throws UnreadFault if the list is not here; OutdatedFault
 */
async function answerHeld(call: Call, key: PeopleListKey, answer: () => Promise<Answer>): Promise<Answer> {
  const held = await requireHeld(call, key);
  const shown = async () => ({ ...(await answer()), confirmedAt: held.readAt, isOwnTime: true as const });
  if (held.isCurrent && !call.isFresh) return await shown();
  throw new OutdatedFault(null, async () => ({
    ...(await shown()),
    notFresh: "something has changed since this list was read",
  }));
}

async function requireHeld({ ctx }: Call, key: PeopleListKey): Promise<HeldPeople> {
  const held = await findHeldPeople(ctx.db, key);
  if (!held) throw unread();
  return held;
}

type PeopleRange = Parameters<typeof findListedPeople>[2];

/** A page of people or teams. */
async function page(call: Call, key: PeopleListKey, where?: PeopleRange["where"]): Promise<Answer> {
  const { page: number, limit, offset } = askedPage(call.query);
  const { rows, total } = await findListedPeople(pageDb(call), key, { limit, offset, ...(where && { where }) });
  const link = numberedLink(call.api + call.path, call.query, { page: number, last: Math.ceil(total / limit) });
  return ok(`[${(await showRows(call, key, rows)).join(",")}]`, { link });
}

/** The rows as JSON texts: a team, or an account with what the list says of it. */
async function showRows(call: Call, { repositoryId }: PeopleListKey, rows: readonly ListedOne[]): Promise<string[]> {
  const texts = await showEach(
    call,
    rows.map(({ document }) => ({ repositoryId, document })),
  );
  return texts.flatMap((text, at) => {
    const row = rows[at];
    if (text === null || !row) return [];
    return row.slug === null ? [JSON.stringify(personShown(text, row))] : [text];
  });
}

function personShown(text: string, { own }: ListedOne): Fields {
  return { ...objectOf(objectOf(JSON.parse(text)).user), ...own };
}

/** The person in a list who has this login now; null: the list has no such person. */
async function findNamed({ ctx: { db } }: Call, key: PeopleListKey, login: string): Promise<ListedOne | null> {
  const user = await findUserByLogin(db, login);
  return user && (await findOneListed(db, key, user.id));
}

export async function checkListed(call: Call, key: PeopleListKey, login: string): Promise<Answer> {
  return await answerHeld(call, key, async () => {
    if (!(await findNamed(call, key, login))) throw notFound();
    return { status: 204, body: null };
  });
}

export async function listedPage(call: Call, key: PeopleListKey, where?: PeopleRange["where"]): Promise<Answer> {
  return await answerHeld(call, key, () => page(call, key, where));
}

// Of a repository.

const collaborators = ({ repository }: RepositoryCall) => listOfRepository(repository.id, "collaborators");

/** The organisation that owns the repository; null: a person does. */
async function ownerOf({ ctx, repository }: RepositoryCall): Promise<UserRow | null> {
  const owner = repository.ownerId === null ? null : await findUser(ctx.db, repository.ownerId);
  return owner?.type === "Organization" ? owner : null;
}

/**
 * GitHub docs, "Collaborators": it takes the right to push. In an organisation it takes being a member, too, and for
 * classic tokens the scope `read:org`.
 */
async function requireCollaborators(call: RepositoryCall, what: string): Promise<void> {
  const organization = await ownerOf(call);
  const { collaborators: areShown } = await shownTo(call, { repository: call.repository, organization });
  if (!areShown) refuse(call, mustPush(what));
}

export async function listCollaborators(call: RepositoryCall): Promise<Answer> {
  await requireCollaborators(call, "repository collaborators");
  const { query } = call;
  // Which of them have access of their own is not told of each, and the list's other filter is described in two ways.
  if ((query.get("affiliation") ?? "all") !== "all" || query.has("permission")) throw notHeld();
  const key = collaborators(call);
  return await listedPage(call, key);
}

export async function checkCollaborator(call: RepositoryCall): Promise<Answer> {
  await requireCollaborators(call, "repository collaborators");
  return await checkListed(call, collaborators(call), call.params.username ?? "");
}

/** GitHub docs, "Get repository permissions for a user": the four of old, to which the further roles are mapped. */
function legacyPermission({ admin, push }: Fields): string {
  return admin === true ? "admin" : push === true ? "write" : "read";
}

/** What a collaborator may do. What anybody else may, upstream has to say: its answer shows their account. */
export async function getPermission(call: RepositoryCall): Promise<Answer> {
  await requireCollaborators(call, "collaborator permission");
  const key = collaborators(call);
  return await answerHeld(call, key, async () => {
    const found = await findNamed(call, key, call.params.username ?? "");
    const permissions = objectOf(found?.own?.permissions);
    const [text] = found ? await showEach(call, [{ repositoryId: key.repositoryId, document: found.document }]) : [];
    if (!found || text == null || permissions.pull !== true) throw notHeld();
    const user = personShown(text, found);
    return ok(JSON.stringify({ permission: legacyPermission(permissions), user, role_name: found.role }));
  });
}

/** Upstream shows the teams that the caller sees. Secret ones are seen by their people and by the organisation's owners. */
export async function listRepositoryTeams(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, caller } = call;
  const organization = await ownerOf(call);
  const shown = await shownTo(call, { repository, organization });
  const isOwn = caller.kind === "user" && caller.by.of === "own";
  const key = listOfRepository(repository.id, "teams");
  const { total: secret } = await findListedPeople(ctx.db, key, { where: sql`l.is_secret`, limit: 1, offset: 0 });
  const isShown = isOwn ? shown.isAdmin : shown.isAdmin && shown.isMember && (shown.isOwner || secret === 0);
  if (!isShown) refuse(call, new ApiFault(403, "Must have admin rights to Repository."));
  return await listedPage(call, key);
}

// Of an organisation. Who is a member may be known to members alone.

/** A list that only members see is whole here only if the mirror's own account is a member: then it is shown the teams. */
async function memberList(
  call: Call,
): Promise<{ organization: UserRow; shown: PeopleShown; members: PeopleListKey; owners: PeopleListKey }> {
  const organization = await requireOrganization(call);
  const shown = await shownTo(call, { organization });
  if (shown.isMember) await requireHeld(call, listOfOrganization(organization.id, "organization teams"));
  const { id } = organization;
  return { organization, shown, members: listOfOrganization(id, "members"), owners: listOfOrganization(id, "owners") };
}

/** All members to members. Everybody else is shown those whose membership is public. */
export async function listMembers(call: Call): Promise<Answer> {
  const { organization, shown, members, owners } = await memberList(call);
  const { query, caller } = call;
  const role = query.get("role") ?? "all";
  if ((query.get("filter") ?? "all") !== "all" || !["all", "admin", "member"].includes(role)) throw notHeld();
  if (!shown.isMember) {
    if (caller.kind === "user" && caller.by.of === "upstream") throw notHeld();
    if (role !== "all") throw notHeld();
    const key = listOfOrganization(organization.id, "public members");
    return await listedPage(call, key);
  }
  if (role === "admin") return await listedPage(call, owners);
  if (role === "member") await requireHeld(call, owners);
  const isNoOwner = sql`not exists (select from listed_people o
    where o.repository_id = 0 and o.owner_id = l.owner_id and o.list = 'owners' and o.id = l.id)`;
  return await listedPage(call, members, role === "member" ? isNoOwner : undefined);
}

/** 204 or 404 for members. Others are sent on to what is public (GitHub docs, "Check organization membership"). */
export async function checkMember(call: Call): Promise<Answer> {
  const { organization, shown, members } = await memberList(call);
  const { api, caller, params } = call;
  if (shown.isMember) return await checkListed(call, members, params.username ?? "");
  if (caller.kind === "user" && caller.by.of === "upstream") throw notHeld();
  const login = encodeURIComponent(params.username ?? "");
  const location = `${api}/organizations/${organization.id}/public_members/${login}`;
  return { status: 302, body: null, headers: { Location: location } };
}

/** Everybody sees these. */
export async function listPublicMembers(call: Call): Promise<Answer> {
  const key = listOfOrganization((await requireOrganization(call)).id, "public members");
  return await listedPage(call, key);
}

export async function checkPublicMember(call: Call): Promise<Answer> {
  const key = listOfOrganization((await requireOrganization(call)).id, "public members");
  return await checkListed(call, key, call.params.username ?? "");
}

const noTeams = () => new ApiFault(403, "Must be a member of the organization.");

/**
 * Teams as far as the caller sees them. Members see those that are closed, owners all. To whom upstream shows more or fewer
 * teams than are here, they are another list.
 */
export async function listTeams(call: Call): Promise<Answer> {
  const organization = await requireOrganization(call);
  const shown = await shownTo(call, { organization });
  if (!shown.isMember) refuse(call, noTeams());
  if (call.query.has("team_type")) throw notHeld();
  const key = listOfOrganization(organization.id, "organization teams");
  const count = async (where?: PeopleRange["where"]) =>
    (await findListedPeople(call.ctx.db, key, { limit: 1, offset: 0, ...(where && { where }) })).total;
  const isClosed = sql`not l.is_secret`;
  if (call.caller.kind === "user" && call.caller.by.of === "own")
    return await listedPage(call, key, shown.isOwner ? undefined : isClosed);
  const [all, closed] = [await count(), await count(isClosed)];
  if (shown.teams !== all || (!shown.isOwner && closed !== all)) throw notHeld();
  return await listedPage(call, key);
}

/** The team of the path, if the mirror knows that upstream shows it to the caller. */
async function requireTeam(call: Call): Promise<{ team: ListedOne; organization: UserRow }> {
  const organization = await requireOrganization(call);
  const shown = await shownTo(call, { organization });
  if (!shown.isMember) refuse(call, notFound());
  const { ctx, params } = call;
  const key = listOfOrganization(organization.id, "organization teams");
  await requireHeld(call, key);
  const id = params.team === undefined ? null : numberParam(params.team);
  const team =
    params.slug !== undefined
      ? await findTeamBySlug(ctx.db, key, params.slug)
      : id === null
        ? null
        : await findOneListed(ctx.db, key, id);
  // The mirror's account may not see it, or it is too new.
  if (!team || (team.isSecret && !shown.isOwner)) refuse(call, notFound());
  return { team, organization };
}

export async function getTeam(call: Call): Promise<Answer> {
  const { team } = await requireTeam(call);
  const key = listOfTeam(team.id, "team");
  return await answerHeld(call, key, async () => {
    const row = await findOneListed(call.ctx.db, key, team.id);
    const [text] = row ? await showRows(call, key, [row]) : [];
    if (text === undefined) throw notHeld();
    return ok(text);
  });
}

export async function listTeamMembers(call: Call): Promise<Answer> {
  const { team } = await requireTeam(call);
  const role = call.query.get("role") ?? "all";
  if (!["all", "member", "maintainer"].includes(role)) throw notHeld();
  const key = listOfTeam(team.id, "team members");
  return await listedPage(call, key, role === "all" ? undefined : sql`l.role = ${role}`);
}

/** Who was invited and has not answered yet is in no list, so upstream has to say whom this list lacks. */
export async function getTeamMembership(call: Call): Promise<Answer> {
  const { team, organization } = await requireTeam(call);
  const key = listOfTeam(team.id, "team members");
  return await answerHeld(call, key, async () => {
    const found = await findNamed(call, key, call.params.username ?? "");
    const user = found && (await findUser(call.ctx.db, found.id));
    if (!found || !user || (found.role !== "member" && found.role !== "maintainer")) throw notHeld();
    const path = `/organizations/${organization.id}/team/${team.id}/memberships/${encodeURIComponent(user.login)}`;
    return ok(JSON.stringify({ state: "active", role: found.role, url: call.api + path }));
  });
}
