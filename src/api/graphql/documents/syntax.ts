import { GraphQLError, Lexer, type Source, type Token, TokenKind } from "graphql";

/** How graphql-ruby, the service's server, names tokens. Names that are no keywords are IDENTIFIER. */
const TOKENS: Readonly<Record<string, string>> = {
  "!": "BANG",
  $: "VAR_SIGN",
  "&": "AMP",
  "(": "LPAREN",
  ")": "RPAREN",
  "...": "ELLIPSIS",
  ":": "COLON",
  "=": "EQUALS",
  "@": "DIR_SIGN",
  "[": "LBRACKET",
  "]": "RBRACKET",
  "{": "LCURLY",
  "|": "PIPE",
  "}": "RCURLY",
  [TokenKind.INT]: "INT",
  [TokenKind.FLOAT]: "FLOAT",
  [TokenKind.STRING]: "STRING",
  [TokenKind.BLOCK_STRING]: "STRING",
};
const KEYWORDS =
  /^(?:on|fragment|true|false|null|query|mutation|subscription|schema|scalar|type|extend|implements|interface|union|enum|input|directive|repeatable)$/;
/** What it expects where a definition begins, beside operations and fragments. */
const DEFINITION = "one of SCHEMA, SCALAR, TYPE, ENUM, INPUT, UNION, INTERFACE";

/**
 * Why a document cannot be parsed, in the service's words: `Expected NAME, actual: LBRACKET ("[") at [1, 135]`. What is
 * wrong inside a number stays in the parser's. Pure.
 */
export function syntaxInServiceWords(error: GraphQLError): GraphQLError {
  const { source, positions: [at] = [], locations: [place] = [] } = error;
  // The service does not say what is wrong inside a text, and names its beginning.
  if (source && IN_TEXT.test(error.message)) {
    const positions = [lastTokenOf(source)];
    return new GraphQLError("Expected string or block string, but it was malformed", { source, positions });
  }
  const actual = source && at !== undefined ? tokenAt(source, at) : null;
  if (!actual || !place) return error;
  const [, wanted] = /Expected (.+), found /.exec(error.message) ?? [];
  const expected = wanted !== undefined ? expectedName(wanted) : actual.isOutside ? DEFINITION : "NAME";
  const message =
    actual.name === null && expected === DEFINITION
      ? "Unexpected end of document"
      : `Expected ${expected}, actual: ${actual.name ?? "(none)"} (${JSON.stringify(actual.text)}) at [${place.line}, ${place.column}]`;
  return new GraphQLError(message, { source: error.source, positions: error.positions });
}

const IN_TEXT = /(?:Unterminated string|within String|escape sequence)/;

/** Where the token begins that cannot be read. */
function lastTokenOf(source: Source): number {
  const lexer = new Lexer(source);
  try {
    while (lexer.advance().kind !== TokenKind.EOF);
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
  }
  const ignored = /(?:[\s,\uFEFF]|#[^\n\r]*)*/y;
  ignored.lastIndex = lexer.token.end;
  ignored.test(source.body);
  return ignored.lastIndex;
}

/** @param wanted as graphql-js words it: `Name`, or a token or keyword in quotes */
function expectedName(wanted: string): string {
  const text = wanted.replaceAll('"', "");
  return TOKENS[text] ?? text.toUpperCase();
}

interface Actual {
  /** Null: the document ends here. */
  name: string | null;
  text: string;
  /** It stands in no bracket, so a definition begins here. */
  isOutside: boolean;
}

/** The token that begins at this place. Null: no token does, and what stands there is no unknown character. Pure. */
function tokenAt(source: Source, at: number): Actual | null {
  const lexer = new Lexer(source);
  let depth = 0;
  try {
    for (let token = lexer.advance(); ; token = lexer.advance()) {
      if (token.start >= at) return { ...shown(token), isOutside: depth === 0 };
      if (/^[{([]$/.test(token.kind)) depth += 1;
      if (/^[})\]]$/.test(token.kind)) depth -= 1;
    }
  } catch (error) {
    if (!(error instanceof GraphQLError) || !/character: /.test(error.message)) return null;
    return {
      name: "UNKNOWN_CHAR",
      text: String.fromCodePoint(source.body.codePointAt(at) ?? 0),
      isOutside: depth === 0,
    };
  }
}

function shown({ kind, value }: Token): Omit<Actual, "isOutside"> {
  if (kind === TokenKind.EOF) return { name: null, text: "" };
  const text = value ?? kind;
  if (kind !== TokenKind.NAME) return { name: TOKENS[kind] ?? kind, text };
  return { name: KEYWORDS.test(text) ? text.toUpperCase() : "IDENTIFIER", text };
}
