import type { Context } from "../../context.ts";
import { type Fields, isObject, objectOf } from "../../json.ts";
import type { ResourceKey } from "../../kinds/contract/kind.ts";
import { isDoubtful } from "../../upstream/protocol/doubts.ts";
import { asSent, list, nullable } from "../../upstream/protocol/field-readers.ts";
import { IDS_A_FIELD, RATE_LIMIT } from "../../upstream/protocol/graphql.ts";
import { Gather } from "../../work/gather.ts";
import { graphqlOrRest } from "../reads/beyond-graphql.ts";
import { HEAD_WITH_IDS } from "../reads/head-sums.ts";
import { MERGEABILITY_FIELDS } from "../reads/pull-observations.ts";
import { selectValues } from "./node-values.ts";
import { type QuestionPace, takeMoment } from "./paced.ts";

/**
 * - existence: whether upstream still shows what a webhook said to be deleted.
 * - mergeability: whether a pull request can be merged.
 * - checks: how many checks the head of a pull request has in each state, and the ids of its statuses.
 * - values: what contradictions are mostly about, and what else of `inDoubt` GraphQL shows.
 */
type QuestionTopic = "existence" | "mergeability" | "checks" | "values";

/** A question about one resource of a repository. */
export type NodeQuestion = ResourceKey & { nodeId: string } & (
    | { about: Exclude<QuestionTopic, "values"> }
    | { about: "values"; inDoubt: readonly string[] }
  );

/**
 * "gone": upstream knows nothing of this id. "unclear": GraphQL does not say, or not all of it. "doubtful": upstream is
 * a mirror, and asks its own upstream about the resource just now.
 */
export type NodeAnswer = { node: Fields; seenAt: Date } | "gone" | "unclear" | "doubtful";

/** Whether the node is of this repository: it may be of another one, to which it was transferred. */
export function isOf(node: Fields, { id }: { id: number }): boolean {
  return objectOf(node.repository).databaseId === id;
}

const SELECTIONS: Readonly<Record<Exclude<QuestionTopic, "values">, string>> = {
  existence: "__typename",
  mergeability: `... on PullRequest { repository { databaseId } ${MERGEABILITY_FIELDS} }`,
  checks: `... on PullRequest { repository { databaseId } ${HEAD_WITH_IDS} }`,
};

function selectionOf(question: NodeQuestion): string {
  return question.about === "values" ? selectValues(question) : SELECTIONS[question.about];
}

type NodeAsking = Pick<Context, "db" | "clock" | "log" | "upstream">;

/** Without pages of connections a query is a point, and so many pull requests at once were never too heavy. */
export const IDS_A_QUERY = 250;
const COMMON_QUESTIONS: QuestionPace = { name: "common questions", everyMs: 180_000 };
/** A query waits for at most this many rounds of new questions. */
const TURNS = 10;

/**
 * Asks upstream about single resources by their global ids. All questions of one moment share a query, which costs a
 * point. Marks become due at common moments, so that their questions meet here.
 */
export class NodeQuestions {
  readonly #ctx: NodeAsking;
  readonly #join: () => Promise<void>;
  readonly #preparing = new Set<Promise<unknown>>();
  readonly #gather: Gather<NodeQuestion, NodeAnswer>;
  /** The moment of the round that gathers its questions; null: it has none yet. */
  #moment: Promise<void> | null = null;

  /** @param join prepares further questions that this process may answer, once it has a moment */
  constructor(ctx: NodeAsking, join: () => Promise<void> = async () => {}) {
    this.#ctx = ctx;
    this.#join = join;
    this.#gather = new Gather((asked) => this.#answerAll(asked), {
      most: 4 * IDS_A_QUERY,
      patienceMs: null,
      waitFor: () => this.#gathered(),
    });
  }

  /** Runs work that may end in questions. The next query waits for it, so that its questions join that query. */
  async prepare<Value>(work: () => Promise<Value>): Promise<Value> {
    const working = work();
    this.#preparing.add(working);
    try {
      return await working;
    } finally {
      this.#preparing.delete(working);
    }
  }

  /** @throws QuestionsPacedError */
  ask(question: NodeQuestion): Promise<NodeAnswer> {
    return this.#gather.ask(question);
  }

  /** Once all work that may end in questions has ended. */
  async prepared(): Promise<void> {
    for (let turn = 0; turn < TURNS && this.#preparing.size > 0; turn++) await Promise.allSettled(this.#preparing);
  }

  /** Once a moment was taken, or refused, and all questions are there that share it. Never fails. */
  async #gathered(): Promise<void> {
    this.#moment = this.#takeMoment();
    await Promise.allSettled([this.#moment]);
    await this.prepared();
  }

  async #takeMoment(): Promise<void> {
    await takeMoment(this.#ctx, COMMON_QUESTIONS);
    await this.#join();
  }

  async #answerAll(asked: readonly NodeQuestion[]): Promise<NodeAnswer[]> {
    const moment = this.#moment ?? takeMoment(this.#ctx, COMMON_QUESTIONS);
    this.#moment = null;
    await moment;
    return await answerAll(this.#ctx, asked);
  }
}

async function answerAll(ctx: NodeAsking, asked: readonly NodeQuestion[]): Promise<NodeAnswer[]> {
  const answers = new Map<NodeQuestion, NodeAnswer>();
  for (const ids of await ctx.upstream.groups([...new Set(asked.map(({ repositoryId }) => repositoryId))])) {
    const own = asked.filter(({ repositoryId }) => ids.includes(repositoryId));
    for (let start = 0; start < own.length; start += IDS_A_QUERY) {
      const some = own.slice(start, start + IDS_A_QUERY);
      const told = await graphqlOrRest(
        ctx,
        () => query(ctx, some),
        async () => some.map((): NodeAnswer => "unclear"),
        { evenIfOdd: false },
      );
      for (const [at, question] of some.entries()) answers.set(question, told[at] ?? "unclear");
    }
  }
  return asked.map((question) => answers.get(question) ?? "unclear");
}

/** A list of ids in a query, under its alias. */
interface Field {
  alias: string;
  selection: string;
  questions: readonly NodeQuestion[];
}

async function query({ upstream }: Pick<Context, "upstream">, asked: readonly NodeQuestion[]): Promise<NodeAnswer[]> {
  const fields = fieldsOf(asked);
  const declared = fields.map(({ alias }) => `$${alias}: [ID!]!`).join(", ");
  const document = `query(${declared}) { ${RATE_LIMIT}
    ${fields.map(({ alias, selection }) => `${alias}: nodes(ids: $${alias}) { ${selection} }`).join("\n")} }`;
  const variables = Object.fromEntries(
    fields.map(({ alias, questions }) => [alias, questions.map(({ nodeId }) => nodeId)]),
  );
  const { data, errors, seenAt, doubts } = await upstream.graphql(document, variables, {
    priority: "refresh",
    ...(asked[0] ? { repository: asked[0].repositoryId } : {}),
  });
  const shown = new Map(fields.map(({ alias }) => [alias, nullable(list(asSent))(data[alias], alias)]));
  const answers = new Map<NodeQuestion, NodeAnswer>();
  for (const { alias, questions } of fields)
    for (const [at, question] of questions.entries()) {
      const { about } = question;
      // Doubts concern stored values, not mergeability or the checks of a head.
      if (about !== "mergeability" && about !== "checks" && isDoubtful(doubts, question)) {
        answers.set(question, "doubtful");
        continue;
      }
      const node = shown.get(alias)?.[at];
      const faults = errors.filter(({ path }) => path[0] === alias && (path[1] === at || path[1] === undefined));
      // A null without this error may mean that we may not see it.
      const isGone = node === null && faults.length > 0 && faults.every(({ type }) => type === "NOT_FOUND");
      const isShown =
        isObject(node) && faults.length === 0 && (about === "existence" || isOf(node, { id: question.repositoryId }));
      answers.set(question, isGone ? "gone" : isShown ? { node, seenAt } : "unclear");
    }
  return asked.map((question) => answers.get(question) ?? "unclear");
}

function fieldsOf(asked: readonly NodeQuestion[]): Field[] {
  return [...Map.groupBy(asked, ({ about }) => about)].flatMap(([about, some]) =>
    [...Map.groupBy(some, selectionOf)]
      .flatMap(([selection, questions]) =>
        Array.from({ length: Math.ceil(questions.length / IDS_A_FIELD) }, (_, at) => ({
          selection,
          questions: questions.slice(at * IDS_A_FIELD, (at + 1) * IDS_A_FIELD),
        })),
      )
      .map((field, at) => ({ ...field, alias: `${about}${at}` })),
  );
}
