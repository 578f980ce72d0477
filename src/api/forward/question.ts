import { headerText, isRead } from "../../http/reply.ts";
import { decoded } from "../../http/router.ts";
import type { Call } from "../call/call.ts";
import { isLaidOut } from "../dialect/elements.ts";
import { repositoryIn } from "../dialect/protocol.ts";
import { type CacheableRead, digest } from "./cache/forwarded-answers.ts";

/**
 * Paths whose answers are never kept: settings, secrets and their keys, alerts about the code, and the caller's own
 * resources.
 */
const NEVER_KEPT: readonly RegExp[] = [
  /^\/(hooks|keys|invitations|subscription|notifications|installation|traffic|codespaces|autolinks|environments|import)(\/|$)/,
  /^\/(dependabot|code-scanning|secret-scanning|security-advisories|private-vulnerability-reporting)(\/|$)/,
  /^\/(vulnerability-alerts|automated-security-fixes|interaction-limits|attestations)(\/|$)/,
  /^\/actions\/(?!(runs|jobs|workflows|artifacts)(\/|$))/,
  /^\/branches\/.+\/protection(\/|$)/,
];

/** Rare headers that change an answer. */
const OTHERWISE: readonly string[] = [
  "range",
  "if-range",
  "if-match",
  "if-unmodified-since",
  "time-zone",
  "x-github-next-global-id",
  "x-github-otp",
];

const SHA = "[0-9a-f]{40}";
const BY_SHA = new RegExp(`^/(git/(blobs|commits|trees|tags)/${SHA}|commits/${SHA}|compare/${SHA}\\.\\.\\.?${SHA})$`);
const BY_REF = /^\/(contents|readme)(\/|$)/;

/** Media types that mean JSON. */
const JSON_TYPES = /^(\*\/\*|application\/(json|\*|vnd\.github(\.v3)?(\.json)?(\+json)?))$/;

/**
 * The question of a forwarded call; null: its answer is not kept. Pure.
 * @param call with its path as the caller wrote it
 */
export function questionOf(
  call: Pick<Call, "method" | "path" | "query" | "headers" | "version" | "ctx">,
): CacheableRead | null {
  const { method, path, query, headers, version, ctx } = call;
  const named = repositoryIn(path);
  const plain = named && decoded(named.rest);
  if (
    !isRead(method) ||
    !named ||
    named.rest.length < 2 ||
    plain === null ||
    NEVER_KEPT.some((form) => form.test(plain))
  )
    return null;
  if (OTHERWISE.some((header) => headers[header] !== undefined) || isLaidOut(headerText(headers["user-agent"])))
    return null;
  const { fullName, id, rest } = named;
  const sorted = new URLSearchParams(query);
  sorted.sort();
  const name = fullName?.toLowerCase() ?? String(id);
  const parts = [ctx.config.upstreamUrl, name, rest, `${sorted}`, acceptedTypes(headers.accept), version];
  return {
    key: digest(parts),
    fullName,
    id,
    perPage: /^\/git\/(matching-)?refs(\/|$)/.test(plain)
      ? null
      : Math.min(Number(query.get("per_page") ?? 30) || 30, 100),
    isImmutable:
      BY_SHA.test(plain) ||
      (BY_REF.test(plain) && query.size === 1 && new RegExp(`^${SHA}$`).test(query.get("ref") ?? "")),
  };
}

function acceptedTypes(accept: string | string[] | undefined): string {
  const types = headerText(accept)
    .toLowerCase()
    .split(",")
    .map((type) => type.replace(/\s/g, ""))
    .filter(Boolean);
  return types.length === 0 ? "json" : types.map((type) => (JSON_TYPES.test(type) ? "json" : type)).join();
}
