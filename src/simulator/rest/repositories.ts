import {
  archiveRepository,
  createRepository,
  deleteRepository,
  editRepository,
  renameRepository,
  setVisibility,
} from "../changes/repositories.ts";
import { fullRepository } from "../views/repository.ts";
import type { Visibility } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import { flag, oneOf, required, text, textOrNull, texts } from "./body.ts";
import {
  type Answer,
  type Call,
  created,
  NO_CONTENT,
  needAdmin,
  notFound,
  ok,
  type RepositoryCall,
  writer,
} from "./call.ts";

export function getRepository(call: RepositoryCall): Answer {
  const seen = call.world.lag.seen(call.repository);
  if (!seen) throw notFound();
  return ok(fullRepository(call.view, seen), { lastModified: seen.updatedAt });
}

/** `POST /user/repos` and `POST /orgs/{org}/repos`. */
export function postRepository(call: Call): Answer {
  const by = writer(call);
  const { body, world } = call;
  const login = call.params.login;
  const owner = login === undefined ? world.user(by) : world.userByLogin(login);
  if (!owner) throw notFound();
  const hidden = flag(body, "private") ?? false;
  const visibility = oneOf(body, "visibility", ["public", "private", "internal"]) ?? (hidden ? "private" : "public");
  const repository = createRepository(world, by, {
    ownerId: owner.id,
    name: required(text(body, "name"), "name"),
    description: textOrNull(body, "description") ?? null,
    homepage: textOrNull(body, "homepage") ?? null,
    visibility,
    hasIssues: flag(body, "has_issues") ?? true,
    hasProjects: flag(body, "has_projects") ?? true,
    hasWiki: flag(body, "has_wiki") ?? true,
    isTemplate: flag(body, "is_template") ?? false,
  });
  return created(fullRepository(call.view, repository));
}

export function patchRepository(call: RepositoryCall): Answer {
  const by = needAdmin(call);
  const { body, world, repository } = call;
  const archived = flag(body, "archived");
  if (repository.archived && archived !== false) throw new Refusal(403, "Repository was archived so is read-only.");
  if (archived === false) archiveRepository(world, by, repository, false);
  const name = text(body, "name");
  const description = textOrNull(body, "description");
  const homepage = textOrNull(body, "homepage");
  const defaultBranch = text(body, "default_branch");
  const hasIssues = flag(body, "has_issues");
  const hasProjects = flag(body, "has_projects");
  const hasWiki = flag(body, "has_wiki");
  const edit = {
    ...(description === undefined ? {} : { description }),
    ...(homepage === undefined ? {} : { homepage }),
    ...(defaultBranch === undefined ? {} : { defaultBranch }),
    ...(hasIssues === undefined ? {} : { hasIssues }),
    ...(hasProjects === undefined ? {} : { hasProjects }),
    ...(hasWiki === undefined ? {} : { hasWiki }),
  };
  if (Object.keys(edit).length > 0) editRepository(world, by, repository, edit);
  if (name !== undefined) renameRepository(world, by, repository, name);
  const visibility = visibilityOf(call);
  if (visibility) setVisibility(world, by, repository, visibility);
  if (archived === true) archiveRepository(world, by, repository, true);
  return ok(fullRepository(call.view, repository));
}

function visibilityOf(call: RepositoryCall): Visibility | undefined {
  const hidden = flag(call.body, "private");
  return (
    oneOf(call.body, "visibility", ["public", "private", "internal"]) ??
    (hidden === undefined ? undefined : hidden ? "private" : "public")
  );
}

export function removeRepository(call: RepositoryCall): Answer {
  deleteRepository(call.world, needAdmin(call), call.repository);
  return NO_CONTENT;
}

export function getTopics(call: RepositoryCall): Answer {
  return ok({ names: call.repository.topics });
}

export function putTopics(call: RepositoryCall): Answer {
  const by = needAdmin(call);
  const topics = required(texts(call.body, "names"), "names").map((name) => name.toLowerCase());
  editRepository(call.world, by, call.repository, { topics });
  return ok({ names: call.repository.topics });
}
