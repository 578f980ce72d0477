import { z } from "zod";
import type { ListAnswer } from "../api/call.ts";
import { LONGEST_TEXT } from "./texts.ts";

/** `.` and `..` would lead to another path. Some models take no pattern that looks ahead. */
const NAME = String.raw`[\w.-]*[\w-][\w.-]*`;

export const repository = z
  .string()
  .max(200)
  .regex(new RegExp(`^${NAME}/${NAME}$`))
  .describe("owner/name");
export const login = z
  .string()
  .regex(/^[\w-]{1,100}(\[bot\])?$/)
  .describe("a user's login");
export const number = z.int().min(1).max(0x7fff_ffff);
export const state = z.enum(["open", "closed", "all"]).default("open");
export const direction = z.enum(["asc", "desc"]).default("desc");
export const moment = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
export const label = z.string().min(1).max(100);
/** 256 is the service's bound. */
export const title = z.string().min(1).max(256);
export const body = z.string().max(LONGEST_TEXT).describe("Markdown");

/** The page of a list. */
export const paging = {
  page: z.int().min(1).max(10_000).default(1),
  per_page: z.int().min(1).max(100).default(30),
};

/** The bound of each text in an answer. */
export const textBound = {
  max_text: z.int().min(100).max(LONGEST_TEXT).default(4_000).describe("characters of each text"),
};

/** How to ask for the page after this one. Pure. */
export function nextPage({ hasNext }: ListAnswer, { page }: { page: number }): string[] {
  return hasNext ? [`There are more: ask with page=${page + 1}`] : [];
}

/** The path of a repository, and what is below it. Pure. */
export function repositoryPath(fullName: string, ...below: readonly (string | number)[]): string {
  return ["/repos", ...fullName.split("/"), ...below]
    .map((one, at) => (at === 0 ? one : encodeURIComponent(one)))
    .join("/");
}
