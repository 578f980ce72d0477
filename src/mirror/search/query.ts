/**
 * What a search asks for, as the service's search boxes write it: `is:open label:"help wanted",bug -author:octocat
 * crash`. Pure: names are not resolved here, and the searched kind decides which qualifiers exist.
 */

/** A condition. Several side by side must all hold. */
export type Clause =
  | { kind: "all" | "any"; of: Clause[] }
  | { kind: "not"; of: Clause }
  /** Words that stand together in this order. */
  | { kind: "text"; text: string }
  /** Any of the values will do. `name` is in lower case. */
  | { kind: "qualifier"; name: string; values: string[] };

export interface SearchQuery {
  clauses: Clause[];
  /** `sort:updated-asc`; null when the query does not say. */
  sort: { key: string; direction: "asc" | "desc" } | null;
  /** Where words are looked for; empty: wherever they can be. */
  within: string[];
}

/** A search that cannot be run; the message tells the caller why. */
export class InvalidSearchError extends Error {
  override name = "InvalidSearchError";
}

/** The search asks about something that is not mirrored. */
export class UnmirroredSearchError extends InvalidSearchError {
  override name = "UnmirroredSearchError";
}

/**
 * The repositories or owners in the search do not exist, or the caller does not see them. The answer does not tell
 * which.
 */
export class UnknownScopeError extends InvalidSearchError {
  override name = "UnknownScopeError";
  constructor() {
    super(
      "The listed users and repositories cannot be searched either because the resources do not exist or you do not have permission to view them.",
    );
  }
}

/** GitHub docs: a search shows this many results at most. */
export const MAX_RESULTS = 1_000;

// GitHub docs, "Limitations on query length": operators and qualifiers do not count.
const MAX_TEXT = 256;
const MAX_OPERATORS = 5;
/** Of the whole query. Upstream names no such bound, nor the next; they keep statements and their planning small. */
const MAX_QUERY = 8_192;
/** Words, and values of qualifiers. */
const MAX_TERMS = 100;
/** GitHub docs, "Filtering and searching issues": parentheses nest up to five levels. */
const MAX_PARENTHESES = 5;

/** @throws InvalidSearchError for a query that is too long or nested too deep */
export function parseSearch(text: string, isQualifier: (name: string) => boolean): SearchQuery {
  if (text.length > MAX_QUERY) requireShort(text.length);
  const tokens = tokensOf(text, isQualifier);
  const query: SearchQuery = { clauses: [], sort: null, within: [] };
  const terms = tokens.filter((token) => !takeSetting(query, token));
  if (countTerms(terms) > MAX_TERMS) throw new InvalidSearchError(`The search has more than ${MAX_TERMS} terms.`);
  requireShort(terms.reduce((sum, token) => sum + (token.kind === "text" ? token.text.length : 0), 0));
  if (terms.filter(({ kind }) => kind === "operator").length > MAX_OPERATORS) {
    throw new InvalidSearchError("More than five AND / OR / NOT operators were used.");
  }
  query.clauses = new Grammar(terms).clauses();
  return query;
}

/** @param characters how many the words have together. @throws InvalidSearchError for more than the service takes */
export function requireShort(characters: number): void {
  if (characters > MAX_TEXT) throw new InvalidSearchError(`The search is longer than ${MAX_TEXT} characters.`);
}

function countTerms(tokens: readonly Token[]): number {
  return tokens.reduce(
    (sum, token) => sum + (token.kind === "text" ? 1 : token.kind === "qualifier" ? token.values.length : 0),
    0,
  );
}

/** How many terms are searched at the price of one search. Most searches of people and programs have fewer. */
const TERMS_A_SEARCH = 5;

/** The price of a search, as a number of ordinary ones: each word and each value of a qualifier is looked for. Pure. */
export function searchesOf(text: string): number {
  // A longer one is refused before anything is looked for.
  if (text.length > MAX_QUERY) return 1;
  return Math.max(1, Math.ceil(countTerms(tokensOf(text, () => true)) / TERMS_A_SEARCH));
}

/** Every qualifier, and whether it is negated. */
export function* qualifiersIn(
  clauses: readonly Clause[],
  isNegated = false,
): Generator<{ name: string; values: string[]; isNegated: boolean }> {
  for (const clause of clauses) {
    if (clause.kind === "qualifier") yield { name: clause.name, values: clause.values, isNegated };
    else if (clause.kind === "not") yield* qualifiersIn([clause.of], !isNegated);
    else if (clause.kind !== "text") yield* qualifiersIn(clause.of, isNegated);
  }
}

type Token =
  | { kind: "open" | "close"; isNegated: boolean }
  | { kind: "operator"; name: "AND" | "OR" | "NOT" }
  | { kind: "text"; text: string; isNegated: boolean }
  | { kind: "qualifier"; name: string; values: string[]; isNegated: boolean };

/** Sorting and `in:` say how to search, not what for. */
function takeSetting(query: SearchQuery, token: Token): boolean {
  if (token.kind !== "qualifier") return false;
  if (token.name === "in") {
    query.within.push(...token.values.map((value) => value.toLowerCase()));
    return true;
  }
  if (token.name !== "sort") return false;
  const match = /^(.*?)(?:-(asc|desc))?$/.exec((token.values[0] ?? "").toLowerCase());
  query.sort = { key: match?.[1] ?? "", direction: match?.[2] === "asc" ? "asc" : "desc" };
  return true;
}

/** One part of a query: a parenthesis, a quoted phrase, or what stands between blanks with its own quotes. */
const QUERY_PART = /\s+|-?\(|\)|-?(?:[^\s"()]*"[^"]*(?:"|$))+[^\s"()]*|[^\s()]+(?:\([^\s()]*\)?)*/gy;

function tokensOf(text: string, isQualifier: (name: string) => boolean): Token[] {
  const tokens: Token[] = [];
  for (const [part] of text.matchAll(QUERY_PART)) {
    if (part.trim() === "") continue;
    if (part === "(" || part === "-(") tokens.push({ kind: "open", isNegated: part !== "(" });
    else if (part === ")") tokens.push({ kind: "close", isNegated: false });
    else if (part === "AND" || part === "OR" || part === "NOT") tokens.push({ kind: "operator", name: part });
    else tokens.push(termOf(part, isQualifier));
  }
  return tokens;
}

function termOf(part: string, isQualifier: (name: string) => boolean): Token {
  const isNegated = part.startsWith("-") && part.length > 1;
  const term = isNegated ? part.slice(1) : part;
  const [, written = "", values = ""] = /^([A-Za-z][\w+-]*):(.+)$/s.exec(term) ?? [];
  const name = written.toLowerCase();
  // A word with a colon in it is a word.
  if (name === "" || !(isQualifier(name) || name === "sort" || name === "in")) {
    return { kind: "text", text: term.replaceAll('"', " ").trim(), isNegated };
  }
  return { kind: "qualifier", name, values: splitValues(values), isNegated };
}

/** Values are separated by commas; one in quotes may hold blanks and commas. */
function splitValues(text: string): string[] {
  const values = [...text.matchAll(/(?:"[^"]*(?:"|$)|[^",])+/g)].map(([value]) => value.replaceAll('"', "").trim());
  return values.filter(Boolean).length > 0 ? values.filter(Boolean) : [""];
}

/** `OR` binds weaker than `AND`, which two clauses side by side mean, too. */
class Grammar {
  readonly #tokens: Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: Token[]) {
    this.#tokens = tokens;
  }

  clauses(): Clause[] {
    const clauses: Clause[] = [];
    while (this.#at < this.#tokens.length) {
      clauses.push(...this.#anyOf());
      // A parenthesis that closes nothing means nothing.
      if (this.#peek()?.kind === "close") this.#at++;
    }
    return clauses;
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#at];
  }

  #anyOf(): Clause[] {
    const alternatives = [this.#allOf()];
    while (this.#isOperator("OR")) {
      this.#at++;
      alternatives.push(this.#allOf());
    }
    // An OR with nothing on one side joins nothing.
    const some = alternatives.filter((clauses) => clauses.length > 0);
    return some.length > 1 ? [{ kind: "any", of: some.map(allClauses) }] : (some[0] ?? []);
  }

  #allOf(): Clause[] {
    const clauses: Clause[] = [];
    for (let token = this.#peek(); token && token.kind !== "close" && !this.#isOperator("OR"); token = this.#peek()) {
      const clause = this.#one(token);
      if (clause) clauses.push(clause);
    }
    return clauses;
  }

  #one(token: Token): Clause | null {
    this.#at++;
    switch (token.kind) {
      case "operator": {
        const next = this.#peek();
        if (token.name !== "NOT" || !next || next.kind === "close") return null;
        const clause = this.#one(next);
        return clause && { kind: "not", of: clause };
      }
      case "open": {
        if (++this.#depth > MAX_PARENTHESES) {
          throw new InvalidSearchError(`The search nests parentheses more than ${MAX_PARENTHESES} levels deep.`);
        }
        const inner = this.#anyOf();
        if (this.#peek()?.kind === "close") this.#at++;
        this.#depth--;
        return inner.length === 0 ? null : negated(allClauses(inner), token.isNegated);
      }
      case "close":
        return null;
      case "text":
        // A text without letters and digits is no word.
        return /[\p{L}\p{N}]/u.test(token.text) ? negated({ kind: "text", text: token.text }, token.isNegated) : null;
      case "qualifier":
        return negated({ kind: "qualifier", name: token.name, values: token.values }, token.isNegated);
    }
  }

  #isOperator(name: "OR"): boolean {
    const token = this.#peek();
    return token?.kind === "operator" && token.name === name;
  }
}

function allClauses(clauses: Clause[]): Clause {
  const [only, ...others] = clauses;
  return only && others.length === 0 ? only : { kind: "all", of: clauses };
}

function negated(clause: Clause, isNegated: boolean): Clause {
  return isNegated ? { kind: "not", of: clause } : clause;
}
