/** Dashboards whose panels ask a database in SQL, as Grafana runs them. */
import { readPage } from "./markdown.ts";

export interface PanelQuery {
  /** The panel's title, and which of its queries it is. */
  name: string;
  isTimeSeries: boolean;
  /** With `$__timeFilter(…)` and `${repository:sqlstring}`. */
  rawSql: string;
}

interface Dashboard {
  templating: { list: { name: string; type: string; query: string }[] };
  panels: {
    title: string;
    gridPos: { x: number; y: number; w: number; h: number };
    targets: { refId: string; format: string; rawSql: string }[];
  }[];
}

export const dashboard = JSON.parse(readPage("deploy/grafana/issues.json")) as Dashboard;

export const panelQueries: PanelQuery[] = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ refId, format, rawSql }) => ({
    name: `${title}, ${refId}`,
    isTimeSeries: format === "time_series",
    rawSql,
  })),
);

/**
 * A query with macros and variables replaced as Grafana replaces them. Pure.
 * https://grafana.com/docs/grafana/latest/datasources/postgres/query-editor/#macros,
 * https://grafana.com/docs/grafana/latest/dashboards/variables/variable-syntax/#sqlstring
 */
export function asGrafanaSends(rawSql: string, repositories: readonly string[], from: Date, to: Date): string {
  const names = repositories.map((name) => `'${name.replaceAll("'", "''")}'`).join(",");
  return rawSql
    .replaceAll(/\$__timeFilter\((\w+)\)/g, `$1 BETWEEN '${from.toISOString()}' AND '${to.toISOString()}'`)
    .replaceAll(/\$\{repository:sqlstring\}/g, names);
}
