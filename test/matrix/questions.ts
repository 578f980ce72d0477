/**
 * The questions: every operation that the router and the schema list, so that a new operation is asked without a change
 * here.
 */
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  isUnionType,
} from "graphql";
import { MIRROR_OPERATIONS, PART_OPERATIONS } from "../../src/api/operations.ts";
import { HELD_IN_PART } from "../api/rest-readings.ts";
import { pathOf } from "../api/targets.ts";
import { markOf, type Place } from "./places.ts";

export interface Question {
  name: string;
  method: string;
  path: string;
  body?: string;
  /**
   * What the answer is compared with, beside the bounds of the access rule.
   * - upstream: with what upstream answers.
   * - rule: with what our token for all is shown, as far as the rule allows it. This is for operations that upstream's
   * stand-in does not have.
   * - bounds: with nothing more, because the answer tells of the caller.
   * - unknown: with upstream's answer, for callers who see the repository. For others, with the answer about a
   * repository that does not exist, which may say that the operation is not served.
   * - theirs: with upstream's answer, but for our own tokens: `test/scenario/people.test.ts` has their rule.
   */
  truth: "upstream" | "unknown" | "rule" | "bounds" | "theirs";
}

/** Arguments of the fields about branches. */
const NAMED_REFS = { refPrefix: "refs/heads/", qualifiedName: "refs/heads/seen" };

/** Upstream's stand-in does not have these operations. */
const NOT_SIMULATED = new Set(["/milestones/:number/labels"]);

/** The mirror makes them of what it has for those to whom upstream may show others. */
const OF_ASSIGNEES = new Set(["/assignees", "/assignees/:assignee"]);

/** The stand-in does not have these fields. The mirror refuses the last five in part, because it does not hold them. */
const FIELDS_NOT_SIMULATED = new Set([
  ...["nickname", "projectCards", "templateRepository", "forkingAllowed", "stargazers", "autoMergeRequest"],
  ...[
    "isInMergeQueue",
    "isMergeQueueEnabled",
    "mergeQueue",
    "checksResourcePath",
    "checksUrl",
    "revertResourcePath",
    "revertUrl",
    "viewerDidAuthor",
  ],
  ...["commits", "files", "watchers", "timelineItems", "object"],
]);

/** All operations, also those on what is mirrored only where `MIRROR` says so. */
const MIRRORED = [...MIRROR_OPERATIONS, ...PART_OPERATIONS];

/** Paths whose number or comment may be an issue's or a pull request's. */
const OF_EITHER = /^\/issues\/(:number|comments\/:id)/;

/** Ways to name a repository in a path. */
export function addressesOf({ targets, formerName }: Place): string[] {
  const { fullName, id } = targets.issue;
  return [...new Set([`/repos/${fullName}`, `/repos/${formerName}`, `/repositories/${id}`])];
}

/** Every read below the repository that `address` names. */
export function readsOf(place: Place, address: string): Question[] {
  return MIRRORED.filter(({ route }) => route.run.of === "repository" && route.method === "GET").flatMap(
    ({ path, route }) =>
      Object.entries(place.targets)
        .filter(([of]) => of === "issue" || OF_EITHER.test(path))
        .map(
          ([of, target]): Question => ({
            name: `GET ${path} of ${of}`,
            method: "GET",
            path: address + pathOf(path, target),
            truth:
              NOT_SIMULATED.has(path) || OF_ASSIGNEES.has(path)
                ? "rule"
                : route.part === undefined
                  ? "upstream"
                  : "unknown",
          }),
        ),
  );
}

/** Every read above repositories, with values that might lead into this repository. */
export function readsAbove({ name, targets, repository }: Place, owner: { login: string; id: number }): Question[] {
  const { fullName } = targets.issue;
  const searches: Record<string, string[]> = {
    "/search/issues": [
      markOf(name, "case"),
      markOf(name, "patch"),
      `${markOf(name, "case")} OR ${markOf(name, "patch")} is:open`,
      `repo:${fullName}`,
      `repo:${fullName} label:named-${name}`,
    ],
    "/search/repositories": [markOf(name, "home"), `repo:${fullName}`],
    "/search/labels": [`named-${name}`, markOf(name, "tag")],
  };
  return MIRRORED.filter(({ route }) => route.run.of === "service" && route.method === "GET").flatMap(({ path }) => {
    const values: Record<string, string> = {
      ...{ ":id": String(owner.id), ":login": owner.login },
      ...{ ":username": "octo", ":slug": "team-secret", ":team": "1" },
    };
    const isOfPeople = PART_OPERATIONS.some((one) => one.path === path);
    const at = path.replace(/:\w+/g, (one) => values[one] ?? one);
    return (searches[path] ?? [""]).map((q): Question => {
      const asked = new URLSearchParams({
        per_page: "100",
        ...(q === "" ? {} : { q }),
        ...(path === "/search/labels" ? { repository_id: String(repository.id) } : {}),
        ...(path.endsWith("/issues") && q === "" ? { filter: "all", state: "all" } : {}),
      });
      return {
        name: `GET ${path} ${q}`,
        method: "GET",
        path: `${at}?${asked}`,
        truth: isOfPeople ? "theirs" : q === "" ? "bounds" : "rule",
      };
    });
  });
}

/** Every write below the repository, with an empty body. */
export function writesOf(place: Place, address: string): Question[] {
  return MIRROR_OPERATIONS.filter(({ route }) => route.run.of === "repository" && route.method !== "GET").flatMap(
    ({ path, route }) =>
      Object.entries(place.targets)
        .filter(([of]) => of === "issue" || OF_EITHER.test(path))
        .map(
          ([of, target]): Question => ({
            name: `${route.method} ${path} of ${of}`,
            method: route.method,
            path: address + pathOf(path, target),
            body: "{}",
            truth: "upstream",
          }),
        ),
  );
}

const asGraphql = (name: string, query: string, variables: object): Question => ({
  name: `GraphQL ${name}`,
  method: "POST",
  path: "/graphql",
  body: JSON.stringify({ query, variables }),
  truth: "upstream",
});

type Field = GraphQLField<unknown, unknown>;

/** Every field of the schema that leads to a repository, and every field that a repository has. */
export function queriesOf(schema: GraphQLSchema, place: Place): Question[] {
  const { name: placeName, targets } = place;
  const questions: Question[] = [];
  const addresses = new Set([targets.issue.fullName, place.formerName]);
  for (const fullName of addresses) {
    const [owner = "", name = ""] = fullName.split("/");
    const former = fullName === targets.issue.fullName ? "" : ", by its former name";
    const by = (inner: string) => `query($owner: String!, $name: String!) { ${inner} }`;
    const at = (inner: string) => by(`repository(owner: $owner, name: $name) { id ${inner} }`);
    const named = { owner, name };
    for (const [fieldName, inner] of fieldsOf(schema, "Repository", targets))
      questions.push(asGraphql(`Repository.${fieldName}${former}`, at(inner), named));
    for (const account of ["repositoryOwner", "organization", "user"]) {
      const inner = "repositories(first: 100) { totalCount nodes { description } }";
      const one = "repository(name: $name) { description issues { totalCount } }";
      questions.push(asGraphql(`${account}.repository${former}`, by(`${account}(login: $owner) { ${one} }`), named));
      const list = `query($owner: String!) { ${account}(login: $owner) { ${inner} } }`;
      questions.push({ ...asGraphql(`${account}.repositories`, list, { owner }), truth: "bounds" });
    }
  }
  questions.push({
    ...asGraphql("viewer", "{ viewer { repositories(first: 100) { totalCount nodes { description } } } }", {}),
    truth: "bounds",
  });
  const checked = `... on CheckRun { name } ... on StatusContext { context }`;
  const rollup = `statusCheckRollup { contexts(first: 5) { totalCount nodes { ${checked} } } }`;
  const [owner = "", name = ""] = targets.pull.fullName.split("/");
  questions.push(
    asGraphql(
      "PullRequest.statusCheckRollup",
      `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) { pullRequest(number: $number) { ${rollup} } } }`,
      { owner, name, number: Number(targets.pull.params.number) },
    ),
  );
  const nodes = { ...targets.pull.nodes, ...targets.issue.nodes };
  for (const [kind, id] of Object.entries(nodes)) {
    const shown = eachOf(schema, "Node");
    questions.push(asGraphql(`node of ${kind}`, `query($id: ID!) { node(id: $id) { ${shown} } }`, { id }));
    questions.push(
      asGraphql(`nodes of ${kind}`, `query($ids: [ID!]!) { nodes(ids: $ids) { ${shown} } }`, { ids: [id] }),
    );
  }
  for (const url of targets.issue.pages) {
    const query = `query($url: URI!) { resource(url: $url) { url ${eachOf(schema, "UniformResourceLocatable")} } }`;
    questions.push({ ...asGraphql(`resource ${url}`, query, { url }), truth: "rule" });
  }
  const found = `issueCount repositoryCount nodes { ${eachOf(schema, "SearchResultItem")} }`;
  for (const [type, q] of [
    ["ISSUE", markOf(placeName, "case")],
    ["ISSUE", markOf(placeName, "patch")],
    ["ISSUE", `repo:${targets.issue.fullName}`],
    ["REPOSITORY", markOf(placeName, "home")],
    ["REPOSITORY", `repo:${targets.issue.fullName}`],
  ])
    questions.push(
      asGraphql(
        `search ${type} ${q}`,
        `query($q: String!) { search(type: ${type}, query: $q, first: 50) { ${found} } }`,
        {
          q,
        },
      ),
    );
  return questions;
}

/** Every mutation, with the ids of this place. */
export function mutationsOf(schema: GraphQLSchema, { targets }: Place): Question[] {
  const { nodes } = targets.issue;
  const ids: Record<string, string | undefined> = {
    repositoryId: nodes.repository,
    pullRequestId: nodes.pull,
    labelIds: nodes.label,
    id: nodes.onIssue,
  };
  return Object.values(schema.getMutationType()?.getFields() ?? {}).map(({ name, args }) => {
    const type = getNamedType(args[0]?.type);
    if (!isInputObjectType(type)) throw new Error(`The mutation ${name} takes no input`);
    const given = Object.values(type.getFields()).flatMap((field): [string, unknown][] => {
      if (!isNonNullType(field.type)) return [];
      const text = getNamedType(field.type).name === "ID" ? (ids[field.name] ?? nodes.issue) : "x";
      return [[field.name, isListType(getNullableType(field.type)) ? [text] : text]];
    });
    const query = `mutation($input: ${type.name}!) { ${name}(input: $input) { clientMutationId } }`;
    return asGraphql(name, query, { input: Object.fromEntries(given) });
  });
}

/** Each field of a type that has a selection, with its query. The fields without a selection are asked together. */
function fieldsOf(schema: GraphQLSchema, typeName: string, targets: Place["targets"]): [name: string, inner: string][] {
  const type = schema.getType(typeName);
  if (!isObjectType(type)) throw new Error(`The schema has no ${typeName}`);
  const fields = Object.values(type.getFields());
  const composite = fields.filter(
    (field) => isCompositeType(getNamedType(field.type)) && !FIELDS_NOT_SIMULATED.has(field.name),
  );
  const numbered = (field: Field) => field.args.some(({ name }) => name === "number");
  return [
    ["itself", leavesOf(type)],
    ...composite.flatMap((field): [string, string][] =>
      (numbered(field) ? (["issue", "pull"] as const) : (["issue"] as const)).map((of) => {
        const { params } = targets[of];
        const number = field.name === "milestone" ? params["milestones/number"] : params.number;
        const values = { number: Number(number), name: params.name, tagName: params.tag, ...NAMED_REFS };
        return [`${field.name} of ${of}`, selected(field, 3, values)];
      }),
    ),
  ];
}

/** A field with everything that can be asked of it, down to `depth` levels. */
function selected(field: Field, depth: number, values: Record<string, unknown> = {}): string {
  const given = field.args.flatMap((argument) => valueFor(argument, values));
  const inner = selectionOf(getNamedType(field.type), depth - 1);
  return inner === null ? "" : `${field.name}${given.length > 0 ? `(${given.join(", ")})` : ""}${inner}`;
}

function valueFor({ name, type }: GraphQLArgument, values: Record<string, unknown>): string[] {
  if (name === "first") return ["first: 5"];
  if (name === "expression") return [`expression: "${NAMED_REFS.qualifiedName}"`];
  return isNonNullType(type) && name in values ? [`${name}: ${JSON.stringify(values[name])}`] : [];
}

function selectionOf(type: GraphQLNamedType, depth: number): string | null {
  if (!isCompositeType(type)) return "";
  if (isUnionType(type) || isInterfaceType(type)) return " { __typename }";
  const deeper = depth <= 0 ? [] : Object.values(type.getFields()).filter((field) => isFollowed(field));
  return ` { ${leavesOf(type)} ${deeper.map((field) => selected(field, depth)).join(" ")} }`;
}

/** A connection leads on to other resources of the repository. A single resource leads back. */
function isFollowed(field: Field): boolean {
  const { name } = getNamedType(field.type);
  const needs = field.args.some(({ type }) => isNonNullType(type));
  if (needs || FIELDS_NOT_SIMULATED.has(field.name)) return false;
  // This connection of a user tells of the caller.
  if (name === "RepositoryConnection") return false;
  return name.endsWith("Connection") || field.name === "nodes" || field.name === "milestone";
}

function leavesOf(type: GraphQLNamedType): string {
  if (!isObjectType(type)) return "__typename";
  const leaves = Object.values(type.getFields()).filter(
    (field) =>
      !isCompositeType(getNamedType(field.type)) &&
      field.args.length === 0 &&
      !FIELDS_NOT_SIMULATED.has(field.name) &&
      !HELD_IN_PART[type.name]?.includes(field.name),
  );
  return ["__typename", ...leaves.map(({ name }) => name)].join(" ");
}

/** A fragment for each type that this one may be, with that type's own texts. */
function eachOf(schema: GraphQLSchema, typeName: string): string {
  const type = schema.getType(typeName);
  if (!isAbstractType(type)) throw new Error(`The schema has no ${typeName}`);
  return schema
    .getPossibleTypes(type)
    .map((one) => {
      const texts = ["title", "body", "description", "name"].filter((text) => one.getFields()[text]);
      return `... on ${one.name} { __typename ${texts.map((text) => `${one.name}_${text}: ${text}`).join(" ")} }`;
    })
    .join(" ");
}
