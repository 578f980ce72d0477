import type { Issue, Repository, User } from "../world/records.ts";
import type { Stage } from "./stage.ts";

/**
 * One thing that a person does in a repository. Answers what was touched, or undefined when there was nothing to do it
 * to. May throw a `Refusal`.
 */
export type Act = (stage: Stage, repository: Repository, by: number) => Issue | Repository | User | undefined;
