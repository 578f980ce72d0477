import querystring from "node:querystring";
import { isatty } from "node:tty";
import { styleText } from "node:util";
import pino from "pino";
import { type Config, secretValues } from "../config.ts";
import { withoutContents } from "../failure.ts";

export type Logger = pino.Logger;

/** Where lines go: one call is one line, its line feed included. */
export interface LineSink {
  write(line: string): void;
}

/**
 * One JSON line per event, or a short readable line when it goes to a terminal.
 *
 * Every secret of the configuration is replaced wherever it appears in a line, also inside the message of a foreign
 * error. Keys whose names mean a secret are replaced whatever they hold.
 */
export function openLog(config: Config, { name }: { name: string }, sink: LineSink = standardStream(1)): Logger {
  const secrets = secretTexts(config);
  return pino(
    {
      level: config.logLevel,
      base: { process: name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: serialized },
      redact: {
        paths: ["authorization", "token", "secret", "payload", "*.authorization", "*.token", "*.secret", "*.payload"],
        censor: "[redacted]",
      },
    },
    { write: (line: string) => sink.write(withoutSecrets(line, secrets)) },
  );
}

function serialized(thrown: unknown): unknown {
  const error = withoutContents(thrown);
  return error instanceof Error ? pino.stdSerializers.errWithCause(error) : error;
}

/** Every text that must not appear in a log: the secret settings, and the passwords inside addresses. */
function secretTexts(config: Config): string[] {
  const texts = new Set<string>();
  for (const value of secretValues(config)) {
    if (typeof value !== "string") continue;
    // A token may look like an address that has no password.
    const password = value.includes("://") ? URL.parse(value)?.password : undefined;
    if (password === undefined) texts.add(value);
    // A `%` that begins no code stays as it is.
    else if (password) texts.add(password).add(querystring.unescape(password));
  }
  // A line is JSON, in which a quote or a backslash of the secret is escaped.
  const escaped = [...texts].map((text) => JSON.stringify(text).slice(1, -1));
  // Texts of fewer than six characters are left alone: replacing them would garble every line.
  return [...new Set([...texts, ...escaped])].filter((text) => text.length >= 6).sort((a, b) => b.length - a.length);
}

function withoutSecrets(line: string, secrets: string[]): string {
  for (const secret of secrets) if (line.includes(secret)) line = line.replaceAll(secret, "[redacted]");
  return line;
}

/** Standard output (1) or standard error (2). */
export function standardStream(fd: 1 | 2): LineSink {
  const out = pino.destination({ fd, sync: true });
  if (!isatty(fd)) return out;
  return { write: (line) => out.write(readable(line)) };
}

type LogStyle = Parameters<typeof styleText>[0];
/** By pino's number of the level. */
const LOG_COLOURS: Readonly<Record<number, LogStyle>> = {
  10: "gray",
  20: "gray",
  30: "green",
  40: "yellow",
  50: "red",
  60: "magenta",
};

/** A line as pino writes it with our options. The rest is what the caller gave with the message. */
interface WrittenLine {
  level: number;
  /** ISO 8601 */
  time: string;
  /** The process's name. */
  process: string;
  msg?: string;
  err?: { stack?: string; message?: string };
  [given: string]: unknown;
}

/** `12:00:01 WARN worker  the message key=value`, with a stack below it when there is one. */
export function readable(line: string): string {
  // No type can say what a text holds: pino has just written it.
  const { level, time, pid: _pid, process: name, msg = "", err, ...rest }: WrittenLine = JSON.parse(line);
  const label = (pino.levels.labels[level] ?? String(level)).toUpperCase().padEnd(5);
  const colour = LOG_COLOURS[level] ?? "white";
  const extra = Object.entries(rest).map(
    ([key, value]) => ` ${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  const stack = err ? `\n  ${String(err.stack ?? err.message).replaceAll("\n", "\n  ")}` : "";
  return `${String(time).slice(11, 19)} ${styleText(colour, label)} ${name}  ${msg}${styleText("gray", extra.join(""))}${stack}\n`;
}
