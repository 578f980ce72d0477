import { type Fields, isObject, numberOf, objectOf, rowsOf, textOf } from "../../json.ts";

/** What a person is told of an event, without markup: the texts of strangers are in it as they wrote them. */
export interface Notice {
  /** What happened, where and by whom: `octo/demo: issue opened by octocat`. */
  headline: string;
  /** What it is about: `#7 A title`. Null: nothing that has a name. */
  subject: string | null;
  /** Its page at upstream; null: none is known. */
  url: string | null;
  /** What somebody wrote; null: nothing. */
  text: string | null;
}

/** What an event may be about, by its key in the payload: the first that is there. */
const SUBJECTS: readonly string[] = [
  ...["pull_request", "issue", "discussion", "release", "workflow_run", "workflow_job", "check_run", "check_suite"],
  ...["deployment", "commit", "milestone", "label", "forkee", "alert", "package", "team", "member"],
];
/** What says the name of it: the first that is there. */
const NAMES: readonly string[] = [
  ...["title", "display_title", "name", "tag_name", "full_name", "head_branch", "environment", "sha", "login"],
];
/** What somebody wrote with the event. */
const REMARKS: readonly string[] = ["comment", "review"];
/** With these actions, what the subject says is new. */
const NEW: ReadonlySet<string> = new Set(["opened", "created", "published"]);
/** What an action is about besides the subject, by the actions, and how it is called. */
const DETAILS: readonly [RegExp, key: string, name: string][] = [
  [/^(un)?labeled$/, "label", "name"],
  [/^(un)?assigned$/, "assignee", "login"],
  [/^review_request/, "requested_reviewer", "login"],
  [/^review_request/, "requested_team", "name"],
  [/^(de)?milestoned$/, "milestone", "title"],
];
/** What has an outcome, and how it is called. */
const OUTCOMES: readonly [key: string, name: string][] = [
  ["check_run", "conclusion"],
  ["check_suite", "conclusion"],
  ["workflow_run", "conclusion"],
  ["workflow_job", "conclusion"],
  ["deployment_status", "state"],
  ["review", "state"],
];

/** Pure. @param payload null: it is too long to be read */
export function noticeOf({ event, action }: { event: string; action: string | null }, payload: Fields | null): Notice {
  const of = payload ?? {};
  const key = SUBJECTS.find((each) => isObject(of[each]));
  const about = objectOf(key === undefined ? undefined : of[key]);
  const remark = objectOf(of[REMARKS.find((each) => isObject(of[each])) ?? ""]);
  const home = textOf(objectOf(of.repository).html_url) ?? textOf(objectOf(of.organization).html_url);
  const pages = [remark.html_url, about.html_url, of.compare, home ?? undefined];
  return {
    headline: oneLine(headlineOf({ event, action }, of)),
    subject: orNull(oneLine(subjectOf(of, about))),
    url: pages.map((page) => pageAt(home, textOf(page))).find((page) => page !== null) ?? null,
    text: orNull(manyLines(textIn(action, { of, about, remark }) ?? "")),
  };
}

function headlineOf({ event, action }: { event: string; action: string | null }, of: Fields): string {
  const place = textOf(objectOf(of.repository).full_name) ?? textOf(objectOf(of.organization).login);
  const thing = event === "issues" ? "issue" : event.replaceAll("_", " ");
  const isMerged = action === "closed" && objectOf(of.pull_request).merged === true;
  const what = [thing, isMerged ? "merged" : action?.replaceAll("_", " ")].filter(Boolean).join(" ");
  const sender = textOf(objectOf(of.sender).login);
  const detail = detailOf(action, of);
  return `${place === null ? "" : `${place}: `}${what}${sender === null ? "" : ` by ${sender}`}${detail === null ? "" : `: ${detail}`}`;
}

function detailOf(action: string | null, of: Fields): string | null {
  const named = DETAILS.filter(([actions]) => actions.test(action ?? "")).map(([, key, name]) => [key, name] as const);
  const outcomes = action === "completed" || action === "created" || action === "submitted" ? OUTCOMES : [];
  const found = [...named, ...outcomes].map(([key, name]) => textOf(objectOf(of[key])[name]));
  return found.find((each) => each !== null) ?? textOf(of.state);
}

function subjectOf(of: Fields, about: Fields): string {
  const number = numberOf(about.number);
  const name = NAMES.map((each) => textOf(about[each])).find((each) => each !== null && each !== "");
  const named = name ?? textOf(of.ref)?.replace(/^refs\/(heads|tags)\//, "") ?? "";
  return number === null ? named : `#${number} ${named}`;
}

function textIn(
  action: string | null,
  { of, about, remark }: { of: Fields; about: Fields; remark: Fields },
): string | null {
  const commits = rowsOf(of.commits).map(({ message }) => `• ${(textOf(message) ?? "").split("\n", 1)[0]}`);
  if (commits.length > 0) return commits.join("\n");
  const check = textOf(of.context);
  if (check !== null) return [check, textOf(of.description)].filter(Boolean).join(": ");
  return textOf(remark.body) ?? (NEW.has(action ?? "") ? textOf(about.body) : null);
}

/** A page of the service that shows the repository; null: it is none, or elsewhere. */
function pageAt(home: string | null, page: string | null): string | null {
  const [base, url] = [URL.parse(home ?? ""), URL.parse(page ?? "")];
  const isOurs = base !== null && url !== null && url.origin === base.origin && /^https?:$/.test(url.protocol);
  return isOurs && url.username === "" && url.password === "" ? url.href : null;
}

/** What would turn the direction of a line, or be no text: controls, and marks of direction. Line breaks stay. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const UNSHOWN = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

function manyLines(text: string): string {
  const lines = text.toWellFormed().replaceAll("\r\n", "\n").replaceAll(UNSHOWN, " ");
  return lines.replaceAll(/\n\s*\n\s*/g, "\n\n").trim();
}

function oneLine(text: string): string {
  return manyLines(text).replaceAll(/\s+/g, " ");
}

function orNull(text: string): string | null {
  return text === "" ? null : text;
}

/**
 * The beginning of a text that has at most so many characters (UTF-16 units) once it is escaped. An ellipsis says that
 * more was written. Pure. @param escaped what it makes of a text is what it makes of each character
 */
export function fitted(text: string, most: number, escaped: (text: string) => string = (each) => each): string {
  const whole = escaped(text.slice(0, most + 1));
  if (whole.length <= most) return whole;
  let fits = "";
  for (const character of text) {
    const more = fits + escaped(character);
    if (more.length >= most) break;
    fits = more;
  }
  return `${fits}…`;
}
