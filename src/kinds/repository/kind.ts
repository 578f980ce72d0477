import { type Json, parseStored } from "../../json.ts";
import { asShown, CHANGES, mayBeEmpty, resource, resourceEvents, sets, shows } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { repositories } from "./table.ts";

export const repository = resource("repository", repositories, {
  right: "metadata",
  isGlobal: true,
  columns: ({ owner, private: isPrivate }) => ({ owner_id: referenceId(owner), private: isPrivate !== false }),
  upstream: { path: (id) => `/repositories/${id}` },
  // GitHub sends these for GET /repos/{owner}/{repo} only (its OpenAPI: full-repository less repository).
  detailKeys: new Set([
    "subscribers_count",
    "network_count",
    "organization",
    "parent",
    "source",
    "template_repository",
    "temp_clone_token",
    "security_and_analysis",
    "code_of_conduct",
    "allow_squash_merge",
    "allow_merge_commit",
    "allow_rebase_merge",
    "allow_auto_merge",
    "delete_branch_on_merge",
    "allow_update_branch",
    "use_squash_pr_title_as_default",
    "squash_merge_commit_title",
    "squash_merge_commit_message",
    "merge_commit_title",
    "merge_commit_message",
    "anonymous_access_enabled",
    "master_branch",
  ]),
  events: resourceEvents({
    event: "repository",
    in: "repository",
    fields: {
      name: asShown,
      description: mayBeEmpty,
      homepage: mayBeEmpty,
      default_branch: asShown,
      topics: (value) => (Array.isArray(value) ? JSON.stringify(value) : undefined),
      private: asShown,
      archived: asShown,
    },
    actions: {
      created: { isFirst: true },
      renamed: shows("name"),
      edited: CHANGES,
      archived: sets("archived", true),
      unarchived: sets("archived", false),
      privatized: sets("private", true),
      publicized: sets("private", false),
    },
    former: (field, was) => ({
      from: field === "topics" && typeof was === "string" ? parseStored<Json>(was) : was === "" ? null : was,
    }),
    more: (action, was) => (action === "renamed" ? { changes: { repository: { name: { from: was } } } } : {}),
  }),
});
