/** Records statements as parts of the current span; see `Tracing`. */
export interface StatementTracing {
  readonly isOn: boolean;
  within<T>(name: string, about: () => StatementAbout, run: () => Promise<T>): Promise<T>;
}

interface StatementAbout {
  kind: "client";
  attributes: Record<string, string>;
}

/** Matches a table's name, but neither a function nor the column in `extract(epoch from …)`. */
const TABLE = /\b(?:from|into|update|join)\s+"?([a-z_]+)(?![a-z_.(])/;

/** The kind of a statement and the first table that it names, such as `select issues`. Pure. */
export function summaryOf(text: string): string {
  const [, verb = "statement"] = /^\s*(\w+)/.exec(text) ?? [];
  const [, table] = TABLE.exec(text) ?? [];
  return table === undefined ? verb : `${verb} ${table}`;
}

/** A span's description of a statement. It holds neither parameters nor literals. Pure. */
export function aboutStatement(text: string): StatementAbout {
  const shown = text
    .replaceAll(/'(?:[^']|'')*'/g, "?")
    .replaceAll(/\s+/g, " ")
    .trim();
  return { kind: "client", attributes: { "db.system.name": "postgresql", "db.query.text": shown } };
}

export function aboutTransaction(): StatementAbout {
  return { kind: "client", attributes: { "db.system.name": "postgresql" } };
}
