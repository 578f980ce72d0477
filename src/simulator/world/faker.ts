/**
 * Believable text about software work, from a seed: what people write in issues, pull requests, comments and reviews.
 * Text is joined, never concatenated piece by piece, so that a million bodies are flat strings in memory.
 */
import type { Random } from "./random.ts";

const PARTS = [
  "the connection pool",
  "the retry loop",
  "the config parser",
  "the scheduler",
  "the HTTP client",
  "the token refresh",
  "the CLI",
  "the migration runner",
  "the file watcher",
  "the cache layer",
  "the diff renderer",
  "the login page",
  "the search index",
  "the upload endpoint",
  "the worker queue",
  "the date picker",
  "the plugin loader",
  "the rate limiter",
  "the metrics exporter",
  "the test harness",
  "the build script",
  "the GraphQL resolver",
  "the webhook receiver",
  "the release job",
  "the TLS handshake",
  "the JSON decoder",
  "the tokenizer",
  "the lock file",
  "pagination",
  "the dashboard",
  "the Docker image",
  "the type checker",
  "the session store",
  "the markdown renderer",
] as const;
const FAULTS = [
  "crashes on empty input",
  "leaks file descriptors",
  "hangs after a reconnect",
  "ignores the timeout",
  "returns stale rows",
  "drops the last page",
  "is slow with more than 10,000 entries",
  "fails on Windows paths",
  "double-counts retries",
  "throws on non-ASCII names",
  "loses its state on restart",
  "does not honour NO_PROXY",
  "races with shutdown",
  "prints the secret in debug logs",
  "accepts expired tokens",
  "rounds timestamps down",
  "blocks the event loop",
  "breaks under Node 26",
  "reports success on partial failure",
  "keeps growing in memory",
  "escapes quotes twice",
  "shows the wrong time zone",
  "deadlocks under load",
  "mangles CRLF line endings",
] as const;
const VERBS = [
  "Add",
  "Support",
  "Document",
  "Simplify",
  "Refactor",
  "Speed up",
  "Deprecate",
  "Expose",
  "Rework",
  "Test",
  "Bound",
  "Rename",
  "Validate",
  "Cache",
  "Remove dead code from",
  "Allow disabling",
  "Make configurable:",
  "Stop swallowing errors in",
  "Clean up",
  "Harden",
] as const;
const SCOPES = ["core", "cli", "docs", "api", "ui", "deps", "ci", "db", "auth", "perf"] as const;
const OPENINGS = [
  "Since the last release",
  "After upgrading to 4.2",
  "On a fresh install",
  "With two workers running",
  "When the network is flaky",
  "In production, about once a day,",
  "On macOS only,",
  "As soon as the queue is full,",
  "Behind a corporate proxy,",
  "Under heavy load",
  "With `strict` turned on",
  "If the file is missing",
] as const;
const REMARKS = [
  "I can reproduce this every time.",
  "Happy to send a pull request if the approach sounds right.",
  "A bisect points at the last refactoring.",
  "The workaround is to restart the process.",
  "We have been running a patched version for a week without trouble.",
  "There is no error in the log, it just stops.",
  "This looks related to the change of defaults.",
  "Nothing in the documentation mentions it.",
  "It used to work in 3.x.",
  "The same input works on Linux.",
  "I would expect an error message here.",
  "It only shows with more than one CPU.",
  "Memory goes from 80 MB to 2 GB within an hour.",
  "The stack trace is below.",
  "Let me know what else you need.",
  "We hit this in CI, so it blocks our release.",
  "The spec is clear about this, see section 4.2.",
  "I have not checked the development branch.",
] as const;
const REPLIES = [
  "Thanks for the report!",
  "I can confirm this.",
  "Could you try again with the nightly build?",
  "Fixed on main, please verify.",
  "I don't think we should do this by default.",
  "What does `--version` print?",
  "+1, we see the same.",
  "Good catch, I missed that path.",
  "Let's keep this open until the next release.",
  "That is by design, but the docs should say so.",
  "Any news on this?",
  "I took a stab at it, see the linked pull request.",
  "Rebased on main.",
  "LGTM once the tests are green.",
  "This needs a test that fails without the fix.",
  "Could we do this without the extra allocation?",
  "Merci ! Ça marche chez moi.",
  "Danke, läuft jetzt wieder.",
  "ありがとうございます、直りました。",
  "Спасибо, помогло.",
  "Sorry for the late answer.",
  "Still happening here.",
  "Closing as a duplicate.",
  "Nice work 🎉",
] as const;
const REVIEW_NOTES = [
  "nit: this name says what it is, not what it is for",
  "Can this be null here?",
  "Please add a comment saying why.",
  "This allocates per row.",
  "Should be `>=`, the bound is inclusive.",
  "Dead code since the last commit?",
  "I would return early instead.",
  "This swallows the error.",
  "Prefer a constant, with where the number comes from.",
  "Missing `await`.",
  "Same here.",
  "Nice, much clearer than before 👍",
  "```suggestion\n    return rows.length > 0;\n```",
  "Is the order guaranteed by the query?",
  "What happens when two of these run at once?",
] as const;
const CODE = [
  "```ts\nconst rows = await db.query(sql`select 1`);\nassert(rows.length === 1);\n```",
  "```\nError: read ECONNRESET\n    at TLSWrap.onStreamRead (node:internal/stream_base_commons:216:20)\n    at drain (src/pool.ts:118:7)\n```",
  "```sh\n$ curl -sSf localhost:8080/health\ncurl: (52) Empty reply from server\n```",
  '```go\nif err := srv.Close(); err != nil {\n\tlog.Fatalf("close: %v", err)\n}\n```',
  '```python\nwith open(path, encoding="utf-8") as f:\n    return json.load(f)\n```',
  "```diff\n-  retries: 5,\n+  retries: options.retries ?? 5,\n```",
  "```yaml\nworkers: 4\nqueue:\n  name: default\n  limit: 1000\n```",
] as const;
const EMOJI = ["🐛", "🚀", "✨", "🔥", "💥", "🧹", "📦", "👩‍💻", "🏳️‍🌈", "𝒳", "🤷🏽‍♂️"] as const;
const FOREIGN = [
  "Fehler beim Öffnen größerer Dateien",
  "日本語のファイル名で失敗する",
  "Ошибка при пустом вводе",
  "L'écran reste figé à la reconnexion",
  "문서의 오타 수정",
  "خطأ في اتجاه النص",
  "Błąd przy znakach ąęł",
  "设置页面无法保存",
  "e\u0301 is not é: normalise names",
] as const;
const FILES = [
  "src/pool.ts",
  "src/http/client.ts",
  "lib/parser.go",
  "docs/setup.md",
  "internal/queue/queue.go",
  "app/models/user.rb",
  "README.md",
  "src/naïve file.rs",
  "test/fixtures/多字节.json",
] as const;
const SYLLABLES = [
  "ka",
  "ri",
  "mo",
  "ta",
  "len",
  "do",
  "sha",
  "vi",
  "ber",
  "no",
  "el",
  "ju",
  "an",
  "pe",
  "wo",
  "gri",
  "sun",
  "tor",
  "ash",
  "mi",
] as const;
const ROLES = ["", "", "", "dev", "-hq", "42", "-io", "code", "x", "ops", "-bits", "7"] as const;
const THINGS = [
  "gateway",
  "parser",
  "relay",
  "ledger",
  "beacon",
  "quarry",
  "harbor",
  "lantern",
  "compass",
  "anvil",
  "orchard",
  "loom",
  "furnace",
  "atlas",
  "sextant",
] as const;
const QUALITIES = ["", "tiny-", "open-", "rapid-", "quiet-", "brass-", "node-", "go-", "py.", "next-"] as const;

export function title(random: Random): string {
  const part = random.pick(PARTS);
  const roll = random.next();
  if (roll < 0.45) return [part.charAt(0).toUpperCase(), part.slice(1), " ", random.pick(FAULTS)].join("");
  if (roll < 0.75) return [random.pick(VERBS), " ", part].join("");
  if (roll < 0.85) return [random.pick(SCOPES), ": ", random.pick(VERBS).toLowerCase(), " ", part].join("");
  if (roll < 0.9) return [random.pick(EMOJI), " ", random.pick(VERBS), " ", part].join("");
  if (roll < 0.94) return random.pick(FOREIGN);
  if (roll < 0.97)
    return ["Question: why does `", part.replace("the ", ""), "` need ", random.int(2, 64), " MB?"].join("");
  return ["[RFC] ", random.pick(VERBS), " ", part, " & friends <v", random.int(2, 9), ">"].join("");
}

function sentence(random: Random): string {
  return [random.pick(OPENINGS), " ", random.pick(PARTS), " ", random.pick(FAULTS), "."].join("");
}

/** What a text can point at. */
export interface Surroundings {
  /** Logins to mention; at least one. */
  readonly logins: readonly string[];
  /** The highest number that can be referred to; 0 for none. */
  readonly lastNumber: number;
}

/** The body of an issue or pull request: a few paragraphs, sometimes code, a task list, links, mentions. */
export function body(random: Random, around: Surroundings): string {
  const paragraphs = [[sentence(random), " ", random.pick(REMARKS)].join("")];
  if (random.chance(0.5))
    paragraphs.push([sentence(random), " ", random.pick(REMARKS), " ", random.pick(REMARKS)].join(""));
  if (random.chance(0.3)) paragraphs.push(random.pick(CODE));
  if (random.chance(0.15)) {
    const tasks = Array.from({ length: random.int(2, 5) }, () =>
      [random.chance(0.4) ? "- [x] " : "- [ ] ", random.pick(VERBS), " ", random.pick(PARTS)].join(""),
    );
    paragraphs.push(["### To do\n\n", tasks.join("\n")].join(""));
  }
  if (random.chance(0.2) && around.lastNumber > 0)
    paragraphs.push(["Related to #", random.int(1, around.lastNumber), "."].join(""));
  if (random.chance(0.15))
    paragraphs.push(["cc @", random.pick(around.logins), " @", random.pick(around.logins)].join(""));
  if (random.chance(0.08))
    paragraphs.push(
      "See <https://example.org/specs/v2?part=4#limits> and [the thread](https://lists.example.org/m/17).",
    );
  if (random.chance(0.06)) paragraphs.push([random.pick(FOREIGN), " ", random.pick(EMOJI)].join(""));
  if (random.chance(0.05))
    paragraphs.push(
      "| version | result |\n| --- | --- |\n| 4.1 | ok |\n| 4.2 | **fails** |\n\n<details><summary>Log</summary>\n\n`a < b && c > d`\n\n</details>",
    );
  // Web forms send CRLF, the API what it was given.
  return paragraphs.join(random.chance(0.2) ? "\r\n\r\n" : "\n\n");
}

export function reply(random: Random, around: Surroundings): string {
  const parts: string[] = [random.pick(REPLIES)];
  if (random.chance(0.25)) parts.unshift(["@", random.pick(around.logins)].join(""));
  if (random.chance(0.35)) parts.push(random.pick(REMARKS));
  if (random.chance(0.1)) parts.push(["\n\n> ", sentence(random), "\n\n", random.pick(REMARKS)].join(""));
  if (random.chance(0.08)) parts.push(["\n\n", random.pick(CODE)].join(""));
  if (random.chance(0.08) && around.lastNumber > 0)
    parts.push(["See #", random.int(1, around.lastNumber), "."].join(""));
  return parts.join(" ");
}

export function reviewNote(random: Random): string {
  return random.chance(0.7)
    ? random.pick(REVIEW_NOTES)
    : [random.pick(REVIEW_NOTES), " ", random.pick(REMARKS)].join("");
}

export function filePath(random: Random): string {
  return random.pick(FILES);
}

export function branchName(random: Random): string {
  return [
    random.pick(["fix", "feature", "chore", "users/ada"]),
    "/",
    random.pick(THINGS),
    "-",
    random.int(1, 9_999),
  ].join("");
}

export function login(random: Random): string {
  const name = Array.from({ length: random.int(2, 3) }, () => random.pick(SYLLABLES)).join("");
  return [random.chance(0.1) ? name.charAt(0).toUpperCase() + name.slice(1) : name, random.pick(ROLES)].join("");
}

export function personName(random: Random): string {
  const word = () => {
    const text = Array.from({ length: random.int(2, 3) }, () => random.pick(SYLLABLES)).join("");
    return text.charAt(0).toUpperCase() + text.slice(1);
  };
  return random.chance(0.1) ? [word(), " Müller-", word(), " 🌱"].join("") : [word(), " ", word()].join("");
}

export function repositoryName(random: Random): string {
  return [random.pick(QUALITIES), random.pick(THINGS)].join("");
}

export function repositoryDescription(random: Random): string {
  return [
    random.pick(["A small", "The missing", "A fast", "Yet another", "An opinionated"]),
    " ",
    random.pick(THINGS),
    " for ",
    random.pick(PARTS).replace("the ", ""),
    random.chance(0.2) ? " 🚀" : "",
  ].join("");
}

/** What people call their labels: emoji, slashes, spaces, colons. */
export const LABELS: readonly {
  readonly name: string;
  readonly color: string;
  readonly description: string | null;
  readonly isDefault?: boolean;
}[] = [
  { name: "bug", color: "d73a4a", description: "Something isn't working", isDefault: true },
  {
    name: "documentation",
    color: "0075ca",
    description: "Improvements or additions to documentation",
    isDefault: true,
  },
  { name: "duplicate", color: "cfd3d7", description: "This issue or pull request already exists", isDefault: true },
  { name: "enhancement", color: "a2eeef", description: "New feature or request", isDefault: true },
  { name: "good first issue", color: "7057ff", description: "Good for newcomers", isDefault: true },
  { name: "help wanted", color: "008672", description: "Extra attention is needed", isDefault: true },
  { name: "question", color: "d876e3", description: "Further information is requested", isDefault: true },
  { name: "wontfix", color: "ffffff", description: "This will not be worked on", isDefault: true },
  { name: "area/core", color: "1d76db", description: null },
  { name: "area/http & tls", color: "1d76db", description: "Everything on the wire" },
  { name: "priority: high", color: "b60205", description: null },
  { name: "🐛 regression", color: "e99695", description: "It worked before 😢" },
  { name: "needs/más información", color: "fef2c0", description: null },
  { name: "perf 100%?", color: "5319e7", description: "" },
  { name: "stale", color: "ededed", description: null },
];

export const MILESTONE_TITLES = [
  "v1.0",
  "v1.1",
  "v2.0 🚀",
  "Backlog",
  "Next / soon",
  "Q3 stabilisation",
  "v3.0-rc.1",
  "Someday",
] as const;
export const LOCK_REASONS = ["off-topic", "too heated", "resolved", "spam", null] as const;
