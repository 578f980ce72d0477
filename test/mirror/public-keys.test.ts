/** Compares the keys that the mirror shows to everybody with those that the service publishes for its resources. */
import { expect, test } from "vitest";
import { isPublicKey, ONES_OWN, PUBLIC } from "../../src/mirror/documents/documents.ts";
import { readDescription } from "../simulator/openapi.ts";

/** The resources that the mirror holds, whole or embedded. */
const MIRRORED =
  "full-repository minimal-repository repository repo-search-result-item issue issue-search-result-item pull-request pull-request-simple label label-search-result-item milestone issue-comment issue-event pull-request-review pull-request-review-comment review-comment simple-user public-user private-user organization-simple organization-full team team-full check-run check-suite status combined-commit-status commit diff-entry release deployment deployment-status workflow workflow-run job short-branch git-ref tag";

/** Below these keys an organisation chooses the words. */
const OWN_WORDS = ["issue_field_values", "custom_properties"];

/**
 * Published keys that only some of those who see the resource are shown: administrators of the repository, owners and
 * members of the organisation, and the account itself. The last keys say what protects a branch.
 */
const HELD_BACK = `
  allow_rebase_merge temp_clone_token allow_squash_merge allow_auto_merge delete_branch_on_merge allow_update_branch
  use_squash_pr_title_as_default squash_merge_commit_title squash_merge_commit_message merge_commit_title merge_commit_message
  allow_merge_commit anonymous_access_enabled code_search_index_status lexical_search_ok lexical_commit_sha
  security_and_analysis advanced_security code_security dependabot_security_updates secret_scanning
  secret_scanning_push_protection secret_scanning_non_provider_patterns secret_scanning_ai_detection
  secret_scanning_delegated_alert_dismissal secret_scanning_delegated_bypass secret_scanning_delegated_bypass_options reviewers
  reviewer_id reviewer_type mode head_repository_id custom_properties role_name issue_field_values ldap_dn access_source notification_email plan
  collaborators space private_repos private_gists total_private_repos owned_private_repos disk_usage two_factor_authentication
  business_plus billing_email filled_seats seats default_repository_permission default_repository_branch
  members_can_create_repositories two_factor_requirement_enabled members_allowed_repository_creation_type
  members_can_create_public_repositories members_can_create_private_repositories members_can_create_internal_repositories
  members_can_create_pages members_can_create_public_pages members_can_create_private_pages members_can_delete_repositories
  members_can_change_repo_visibility members_can_invite_outside_collaborators members_can_delete_issues
  display_commenter_full_name_setting_enabled readers_can_create_discussions members_can_create_teams
  members_can_view_dependency_insights members_can_fork_private_repositories advanced_security_enabled_for_new_repositories
  dependabot_alerts_enabled_for_new_repositories dependabot_security_updates_enabled_for_new_repositories
  dependency_graph_enabled_for_new_repositories secret_scanning_enabled_for_new_repositories
  secret_scanning_push_protection_enabled_for_new_repositories
  secret_scanning_push_protection_custom_link_enabled secret_scanning_push_protection_custom_link
  deploy_keys_enabled_for_repositories required allow_deletions allow_force_pushes allow_fork_syncing app_id apps apps_url block_creations
  bypass_pull_request_allowances contexts contexts_url dismiss_stale_reviews dismissal_restrictions enabled enforce_admins
  enforcement_level lock_branch protection protection_url require_code_owner_reviews require_last_push_approval
  required_approving_review_count required_conversation_resolution required_linear_history required_pull_request_reviews
  required_signatures required_status_checks restrictions single_file strict teams users users_url
`;

const { schemas = {} } = readDescription().components;

/** All keys of these resources and of what is embedded in them. */
function publishedKeys(kinds: readonly string[]): string[] {
  const keys = new Set<string>();
  const seen = new Set<unknown>();
  // biome-ignore lint/suspicious/noExplicitAny: a JSON schema is looked into without a type of its own
  const look = (schema: any): void => {
    if (typeof schema !== "object" || schema === null || seen.has(schema)) return;
    seen.add(schema);
    if (schema.$ref) look(schemas[schema.$ref.split("/").at(-1)]);
    for (const [key, inner] of Object.entries(schema.properties ?? {})) {
      keys.add(key);
      if (!OWN_WORDS.includes(key)) look(inner);
    }
    for (const way of ["allOf", "anyOf", "oneOf"]) for (const one of schema[way] ?? []) look(one);
    look(schema.items);
    look(schema.additionalProperties);
  };
  for (const kind of kinds) {
    if (!schemas[kind]) throw new Error(`The service publishes no ${kind}`);
    look(schemas[kind]);
  }
  return [...keys].sort();
}

const words = (text: string) => text.trim().split(/\s+/);

test("every key that the service publishes is either shown to everybody or held back, and so is no other", () => {
  const published = publishedKeys(words(MIRRORED));
  expect(published.filter((key) => !isPublicKey(key))).toEqual(words(HELD_BACK).sort());
  expect([...PUBLIC].filter((key) => !published.includes(key))).toEqual([]);
});

test("what an account sees of itself alone is what a private user has and a public one has not", () => {
  const toOthers = publishedKeys(["simple-user", "public-user"]);
  const toOneself = Object.keys(schemas["private-user"].properties);
  const own = toOneself.filter((key) => ONES_OWN.test(key));
  expect(own.filter(isPublicKey)).toEqual([]);
  // A key that a public user may have too is published for both kinds of reader.
  const alone = toOneself.filter((key) => !Object.keys(schemas["public-user"].properties).includes(key));
  expect(alone.filter((key) => !ONES_OWN.test(key))).toEqual([]);
  expect(toOthers.filter((key) => !isPublicKey(key) && !ONES_OWN.test(key))).toEqual(["space", "private_repos"].sort());
});
