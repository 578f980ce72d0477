/**
 * Every way in which a payload may lie about what it concerns. A payload tells the truth first: it is of its signer's
 * own repository and account. Then one identity lies at a time.
 */
import { type Fields, isObject, type Json, objectOf } from "../../src/json.ts";

/** What payloads name of a repository: its own representations, as upstream shows them. */
export interface Shown {
  repository: Fields;
  owner: Fields;
  /** Null: the owner is a person. */
  organization: Fields | null;
  issue: Fields;
  pull: Fields;
  comment: Fields;
  reviewComment: Fields;
  review: Fields;
  label: Fields;
  milestone: Fields;
}

/** What a signer's payloads are of. */
export interface Signing extends Shown {
  /** Null: the payload names no installation. */
  installation: Fields | null;
}

export interface Lie {
  name: string;
  /** Makes the body that is sent. */
  body: () => string;
  /** An event's name in the place of the payload's own. */
  event?: string;
}

const EXAMPLE_NAME = /Codertocat\/Hello-World|octocat\/Hello-World/g;

/** The same payload, of the signer's own repository and account. */
export function asOwn(payload: Fields, { repository, owner, organization, installation }: Signing): Fields {
  const fullName = String(repository.full_name);
  const own = mapped(payload, (value, key) => {
    if (isRepository(value, key)) return { ...value, ...repository };
    if (key === "sender" || key === "organization") return key === "sender" ? owner : organization;
    return value;
  });
  const named: Fields = JSON.parse(JSON.stringify(own).replace(EXAMPLE_NAME, fullName));
  const told: Fields = { ...named, sender: owner };
  delete told.organization;
  delete told.installation;
  if (organization) told.organization = organization;
  if (installation)
    told.installation = { ...(isObject(named.installation) ? named.installation : {}), ...installation };
  else if (isObject(named.installation)) told.installation = named.installation;
  return told;
}

const REPOSITORY_KEYS = /^(repository|repo|forkee|new_repository|old_repository|source|parent|template_repository)$/;

function isRepository(value: Json, key: string): value is Fields {
  return isObject(value) && REPOSITORY_KEYS.test(key);
}

function mapped(fields: Fields, told: (value: Json, key: string) => Json): Fields {
  const below = (value: Json, key: string): Json => {
    const now = told(value, key);
    if (now !== value) return now;
    if (Array.isArray(value)) return value.map((one) => below(one, key));
    return isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, below(one, name)]))
      : value;
  };
  return below(fields, "") as Fields;
}

/** A place in a payload, from its root. */
type Path = readonly string[];

interface At {
  path: Path;
  value: Json;
}

/** Deeper identities are those of people and repositories that these places have already. */
const DEEPEST = 3;
/** What identifies an account. The rest of it is told of nobody else. */
const OF_ACCOUNTS = /^(id|login|node_id|type)$/;

function* placesIn(fields: Fields, path: Path = []): Generator<At> {
  for (const [key, raw] of Object.entries(fields)) {
    // The first of a list stands for all.
    const value = Array.isArray(raw) && isObject(raw[0]) ? raw[0] : raw;
    const at = [...path, key];
    if (typeof fields.login === "string" && !OF_ACCOUNTS.test(key)) continue;
    yield { path: at, value };
    if (isObject(value) && at.length < DEEPEST) yield* placesIn(value, at);
  }
}

const ABSENT = Symbol("absent");

/** The same payload with another value at this place. */
function told(payload: Fields, path: Path, value: Json | typeof ABSENT): Fields {
  const [key = "", ...rest] = path;
  const copy: Fields = { ...payload };
  if (rest.length === 0) {
    if (value === ABSENT) delete copy[key];
    else copy[key] = value;
    return copy;
  }
  const within = payload[key];
  if (Array.isArray(within)) copy[key] = [told(objectOf(within[0]), rest, value), ...within.slice(1)];
  else copy[key] = told(objectOf(within), rest, value);
  return copy;
}

/** The victim's counterpart of the object in which a key stands. */
function counterpart(path: Path, victim: Shown): Fields {
  const parent = path.at(-2) ?? "";
  if (REPOSITORY_KEYS.test(parent)) return victim.repository;
  if (/pull_request/.test(parent)) return victim.pull;
  if (/issue/.test(parent)) return victim.issue;
  if (/comment/.test(parent)) return path.includes("pull_request") ? victim.reviewComment : victim.comment;
  if (parent === "review") return victim.review;
  if (/label/.test(parent)) return victim.label;
  if (/milestone/.test(parent)) return victim.milestone;
  if (parent === "organization") return victim.organization ?? victim.owner;
  if (/user|owner|sender|assignee|author|creator|member|reviewer|closed_by|actor|login|invitee/.test(parent))
    return victim.owner;
  return victim.repository;
}

const NUL_NAME = "a\u0000b";
const NO_TEXTS: Json[] = [null, 7, "", NUL_NAME, "constructor", "x".repeat(3_000), [], {}];
const NO_IDS: Json[] = [null, 1.5, -1, 0, 2_147_483_648, 2 ** 53, 1e300, "seven", [], {}];
const NO_DATES: Json[] = [null, "999999-01-01T00:00:00Z", "2999-01-01T00:00:00Z", 1e300, "no date", []];
const NO_OBJECTS: Json[] = [null, [], "text", 7];

/** The values that lie at one place. */
function valuesAt({ path, value }: { path: Path; value: Json }, victim: Shown): (Json | typeof ABSENT)[] {
  const key = path.at(-1) ?? "";
  const theirs = counterpart(path, victim)[key];
  const foreign = theirs === undefined || theirs === null ? [] : [theirs];
  if (key === "id") return [ABSENT, String(value), ...foreign, ...foreign.map(String), ...NO_IDS];
  if (key === "number" || /_id$|^database_id$/.test(key)) return [...foreign, ...NO_IDS];
  if (key === "node_id") return [ABSENT, null, ...foreign];
  if (/^(name|full_name|login|title|slug|ref|sha|head_sha|tag_name|action|visibility|state)$/.test(key))
    return [ABSENT, ...foreign, ...NO_TEXTS];
  if (/^(url|html_url|repository_url|issue_url|pull_request_url|parent_issue_url)$/.test(key)) return foreign;
  if (/_at$/.test(key)) return NO_DATES;
  if (key === "private") return [!value, "no", null];
  if (isObject(value)) {
    const whole = REPOSITORY_KEYS.test(key)
      ? victim.repository
      : key === "organization"
        ? (victim.organization ?? victim.owner)
        : counterpart([...path, "id"], victim);
    return [ABSENT, whole, { id: whole.id ?? null }, [whole], ...NO_OBJECTS];
  }
  return typeof value === "number" ? [2_147_483_648, 1e300, -1] : [];
}

const nestedList = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const nestedObjects = (levels: number): string => `${'{"base":'.repeat(levels)}1${"}".repeat(levels)}`;

/** Members that no payload has, as text: no value in memory can be so. */
const STRANGE_MEMBERS: Readonly<Record<string, string>> = {
  "a key with NUL": '"a\\u0000b":1',
  "the key __proto__": '"__proto__":{"id":7}',
  "the key constructor": '"constructor":{"prototype":{"id":7}}',
  "the key toString": '"toString":null',
  "lists 100 deep": `"odd":${nestedList(100)}`,
  "lists 8,000 deep": `"odd":${nestedList(8_000)}`,
  "objects 2,000 deep": `"odd":${nestedObjects(2_000)}`,
  "a number of 400 digits": `"odd":${"9".repeat(400)}`,
  "a lone surrogate": '"odd":"\\ud800"',
};

/** The names that every object of JavaScript has, in lower case as an event's name must be. */
const INHERITED_NAMES = ["constructor", "valueof", "tostring"];

/** The payload, as text, with a further member at the end of one of its objects. */
function withMember(payload: Fields, path: Path, member: string): string {
  const hole = "the member stands here";
  const text = JSON.stringify(told(payload, [...path, hole], 0));
  return text.replace(`"${hole}":0`, () => member);
}

/** What is wrong about several identities together, as an attacker would write it. */
function* together(payload: Fields, { repository }: Signing, victim: Shown): Generator<Omit<Lie, "event">> {
  const { owner } = victim;
  const organization = victim.organization ?? owner;
  const of = (more: Fields) => () => JSON.stringify({ ...payload, ...more });
  const noId: Fields = { ...repository };
  delete noId.id;
  for (const [kind, id] of Object.entries({ absent: undefined, null: null, text: "seven", fraction: 1.5, list: [] })) {
    const stolen: Fields = { ...noId, owner, ...(id === undefined ? {} : { id }) };
    yield { name: `repository.id ${kind}, and the owner the victim's`, body: of({ repository: stolen }) };
    const whole: Fields = { ...victim.repository, id: id ?? null };
    yield { name: `repository the victim's with its id ${kind}`, body: of({ repository: whole, organization }) };
  }
  for (const [kind, none] of Object.entries({ null: null, list: [], text: "x" })) {
    yield {
      name: `repository ${kind}, and the organization the victim's`,
      body: of({ repository: none, organization }),
    };
    yield {
      name: `repository ${kind}, and the organization a list of the victim's`,
      body: of({ repository: none, organization: [organization] }),
    };
  }
  yield {
    name: "the victim's repository under the signer's id",
    body: of({ repository: { ...victim.repository, id: repository.id ?? null } }),
  };
  yield {
    name: "the victim's names under the signer's id",
    body: of({
      repository: {
        ...repository,
        name: victim.repository.name ?? null,
        full_name: victim.repository.full_name ?? null,
        owner,
      },
    }),
  };
  yield { name: "the victim's organization beside the signer's repository", body: of({ organization, sender: owner }) };
  const renamed: Fields = { ...owner, login: "renamed-by-another" };
  yield { name: "the victim's account renamed, as sender", body: of({ sender: renamed }) };
  yield {
    name: "a new account with the victim's login",
    body: of({ sender: { ...owner, id: 987_654_321, node_id: "new" } }),
  };
  for (const [key, issueKey] of [
    ["new_repository", "new_issue"],
    ["old_repository", "old_issue"],
  ] as const)
    yield {
      name: `changes.${key} the victim's`,
      body: of({ changes: { [key]: victim.repository, [issueKey]: victim.issue } }),
    };
  yield {
    name: "changes of name and owner that the victim had",
    body: of({
      changes: {
        repository: { name: { from: victim.repository.name ?? null } },
        owner: { from: { user: owner, organization } },
      },
    }),
  };
  for (const key of ["repository", "organization", "installation"]) {
    const theirs = JSON.stringify(key === "repository" ? victim.repository : organization);
    const text = () => JSON.stringify(payload);
    yield { name: `two ${key}, the victim's last`, body: () => `${text().slice(0, -1)},"${key}":${theirs}}` };
    yield { name: `two ${key}, the victim's first`, body: () => `{"${key}":${theirs},${text().slice(1)}` };
  }
}

/**
 * Every lie about this payload, which is the signer's own. The payload as it is comes first.
 * @param isNew whether no payload of the same event had this place
 */
export function* liesAbout(
  payload: Fields,
  signing: Signing,
  { victims, isNew }: { victims: readonly Shown[]; isNew: (place: string) => boolean },
): Generator<Lie> {
  yield { name: "the truth", body: () => JSON.stringify(payload) };
  const [first] = victims;
  if (!first) throw new Error("There is no victim");
  for (const [at, place] of [...placesIn(payload)].entries()) {
    const where = place.path.join(".");
    if (!isNew(where)) continue;
    const victim = victims[at % victims.length] ?? first;
    for (const value of valuesAt(place, victim)) {
      const what = value === ABSENT ? "absent" : JSON.stringify(value).slice(0, 40);
      yield { name: `${where}: ${what}`, body: () => JSON.stringify(told(payload, place.path, value)) };
    }
    if (place.path.length === 1 && isObject(place.value))
      for (const [member, text] of Object.entries(STRANGE_MEMBERS))
        yield { name: `${member} in ${where}`, body: () => withMember(payload, place.path, text) };
  }
  if (!isNew("the whole")) return;
  for (const [member, text] of Object.entries(STRANGE_MEMBERS))
    yield { name: `${member} at the top`, body: () => withMember(payload, [], text) };
  for (const victim of victims)
    for (const lie of together(payload, signing, victim))
      yield { ...lie, name: `${lie.name}, ${String(victim.repository.full_name)}` };
  for (const event of INHERITED_NAMES) yield { name: `sent as ${event}`, event, body: () => JSON.stringify(payload) };
}
