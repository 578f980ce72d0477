import { PEOPLE } from "../../../db/revisions.ts";
import { type Fields, isObject, type Json, parseStored } from "../../json.ts";
import {
  PLACEHOLDER,
  referenceOf,
  type SharedKind,
  type TemplateReference,
} from "../../kinds/contract/placeholders.ts";

// Stored documents: how their placeholders are filled in, and what of them a caller is shown.

const IS_NUMBER = /^-?\d+(?:\.\d+)?$/;

// In JSON text a placeholder is the escape \u000N just after a string's opening quote. An opening quote never follows a
// backslash, and a quote inside a string always does. So no user's text can be taken for a placeholder.
const ESCAPE = "\\u000";
const QUOTE = 34;
const BACKSLASH = 92;
/** The length of a placeholder in JSON text, with the quote before it. */
const PLACEHOLDER_LENGTH = 7;

function isPlaceholderAt(document: string, at: number): boolean {
  return document.charCodeAt(at - 1) === QUOTE && document.charCodeAt(at - 2) !== BACKSLASH;
}

/** A piece of a document's text where something was cut out. */
export type Cut = (typeof PLACEHOLDER)["repository" | "api" | "page" | "body"];

/** A piece of a stored document's text: JSON as it is, what was cut out, or what `found` made of a reference. */
export type Piece<Found extends object> = string | Cut | Found;

/**
 * Takes a stored document's text apart, to be joined again with what was cut out. Text in, text out: nothing is parsed.
 * `found` gets what stands behind the placeholder of a reference; see `referenceOf`.
 */
export function takeApart<Found extends object>(document: string, found: (text: string) => Found): Piece<Found>[] {
  const pieces: Piece<Found>[] = [];
  let from = 0;
  for (let at = document.indexOf(ESCAPE); at >= 0; at = document.indexOf(ESCAPE, Math.max(at + 1, from))) {
    if (!isPlaceholderAt(document, at)) continue;
    const rest = at - 1 + PLACEHOLDER_LENGTH;
    const code = document.charCodeAt(at + ESCAPE.length) - 48;
    switch (code) {
      case PLACEHOLDER.repository:
      case PLACEHOLDER.api:
      case PLACEHOLDER.page:
        pieces.push(document.slice(from, at), code);
        from = rest;
        break;
      case PLACEHOLDER.body:
        pieces.push(document.slice(from, at - 1), code);
        from = rest + 1;
        break;
      case PLACEHOLDER.reference: {
        const end = document.indexOf('"', rest);
        pieces.push(document.slice(from, at - 1), found(document.slice(rest, end)));
        from = end + 1;
        break;
      }
      case PLACEHOLDER.literal:
        pieces.push(document.slice(from, at));
        from = rest;
        break;
      case PLACEHOLDER.number: {
        const digits = document.slice(rest, document.indexOf('"', rest));
        if (!IS_NUMBER.test(digits)) break;
        pieces.push(document.slice(from, at - 1), digits);
        from = rest + digits.length + 1;
        break;
      }
      default:
        break;
    }
  }
  pieces.push(from === 0 ? document : document.slice(from));
  return pieces;
}

/** All references in a stored document's text, each once. */
export function references(document: string): TemplateReference[] {
  const texts = new Set<string>();
  takeApart(document, (text) => texts.add(text));
  return [...texts].map(referenceOf);
}

/** Which row: labels and milestones belong to a repository, users and repositories to none (0). */
export interface SharedKey {
  kind: SharedKind;
  repositoryId: number;
  id: number;
}

/** A row that a document refers to, and the shape in which it is shown there; null: whole. */
export interface Mentioned {
  key: SharedKey;
  /** Its `sharedName`. */
  name: string;
  shape: string | null;
  login: string | null;
}

/** What a reference in a document stands for. */
export interface Referred extends Mentioned {
  shape: string;
}

/** What a placeholder in a document of this repository stands for. */
export function referredBy(placeholder: string, repositoryId: number): Referred {
  return mentionedBy(referenceOf(placeholder), repositoryId);
}

export function mentionedBy(reference: TemplateReference, repositoryId: number): Referred {
  const key = sharedKey(reference, repositoryId);
  return { key, name: sharedName(key), shape: reference.shape, login: reference.login };
}

export function wholeRepository(id: number): Mentioned {
  return { key: { kind: "r", repositoryId: 0, id }, name: `r${id}`, shape: null, login: null };
}

export function wholeUser(id: number): Mentioned {
  return { key: { kind: "u", repositoryId: 0, id }, name: `u${id}`, shape: null, login: null };
}

/** Which row a reference in a document of this repository stands for. */
export function sharedKey({ kind, id }: TemplateReference, repositoryId: number): SharedKey {
  return { kind, repositoryId: kind === "l" || kind === "m" ? repositoryId : 0, id };
}

/** The repository, or `PEOPLE`, whose revision grows when the row changes. */
export function domainOf({ kind, repositoryId, id }: SharedKey): number {
  return kind === "u" ? PEOPLE : kind === "r" ? id : repositoryId;
}

/** The repository whose labels and milestones a row of this key refers to. */
export function labelsHomeOf({ kind, repositoryId, id }: SharedKey): number {
  return kind === "r" ? id : repositoryId;
}

/** The name of a row in maps. */
export function sharedName({ kind, repositoryId, id }: SharedKey): string {
  return kind === "l" || kind === "m" ? `${kind}${repositoryId}/${id}` : `${kind}${id}`;
}

// What a caller is shown.

/**
 * How near a caller stands to a repository, which decides what of its documents they are shown:
 * - mirror: they have all rights of the mirror's own token, which read the documents. Shown everything.
 * - writer: they may push. Shown everything but what the documents say about the mirror's own token.
 * - reader: they have access to the repository. Shown what is public, and what upstream shows to everyone with access.
 * - stranger: they see the repository because it is public. Shown what is public.
 */
export type AccessLevel = "mirror" | "writer" | "reader" | "stranger";

/**
 * The keys of upstream's JSON that everybody sees who sees the resource, by GitHub's OpenAPI, in any object. Any other
 * key may depend on the reader, even a key that upstream adds tomorrow.
 */
export const PUBLIC: ReadonlySet<string> = new Set(
  `
  +1 -1 _links active_lock_reason actor additions admin after allow_forking annotations_count annotations_url app
  archive_url archived archived_at artifacts_url assets assets_url assignee assignees assignees_url author author_association
  auto_merge avatar_url badge_url base before bio blob_url blobs_url blocked_by blocking blog body body_html body_text
  branches_url browser_download_url cancel_url changed_files changes check_run_url check_runs_url check_suite check_suite_id
  check_suite_node_id check_suite_url checks client_id clone_url
  closed_at closed_by closed_issues code_of_conduct collaborators_url color comment_count comments comments_url
  commit commit_id commit_message commit_title commit_url commits commits_url committer company compare_url
  completed completed_at conclusion confused content_type contents contents_url context contributors_url
  created_at creator date default default_branch deleted_at deletions deployment deployment_url deployments deployments_url description
  details_url diff_hunk diff_url digest disabled discussion_url display_title download_count downloads_url draft due_on email
  enabled_by enterprise_id environment environment_url event events events_url external_id external_url eyes filename files followers
  followers_url following following_url fork forks forks_count forks_url fragment full_name gists_url
  git_commits_url git_refs_url git_tags_url git_url gravatar_id has_discussions has_downloads has_issues
  has_organization_projects has_pages has_projects has_pull_requests has_repository_projects has_wiki head
  head_branch head_commit head_repository head_sha heart hireable homepage hooks_url hooray href html html_url id immutable
  in_reply_to_id indices installations_count is_enabled is_template is_verified issue issue_comment_url
  issue_dependencies_summary issue_events_url issue_url issues issues_url jobs_url key keys_url label labels labels_url
  language languages_url latest_check_runs_count laugh license line location locked log_url login logs_url maintain
  maintainer_can_modify master_branch matches members_count members_url mentions_count merge_commit_sha merge_method mergeable
  mergeable_state merged merged_at merged_by merges_url message metadata milestone milestones_url minimized
  mirror_url name network_count node_id notification_setting notifications_url number object object_type
  object_url open_issues open_issues_count organization organization_id organizations_url original_commit_id
  original_environment original_line original_position original_start_line output owner parent parent_issue_url
  parents patch patch_url path payload percent_completed performed_via_github_app permission permissions pin
  pinned_at pinned_by pinned_comment position prerelease previous_attempt_url previous_filename privacy private
  production_environment property protected public_gists public_members_url public_repos published_at pull
  pull_request pull_request_creation_policy pull_request_review_id pull_request_url pull_requests pulls_url push
  pushed_at raw_url reactions reason rebaseable received_events_url ref referenced_workflows releases_url repo repos_count repos_url
  repositories_url repository repository_url requested_reviewers requested_teams rerequestable rerun_url review_comment
  review_comment_url review_comments review_comments_url rocket run_attempt run_id run_number run_started_at run_url runner_group_id
  runner_group_name runner_id runner_name runs_rerequestable score self sha side signature
  site_admin size slug source spdx_id ssh_url stack stargazers_count stargazers_url starred_at starred_url
  start_line start_side started_at state state_reason stats status statuses statuses_url steps sub_issues_summary
  subject_type submitted_at subscribers_count subscribers_url subscription_url subscriptions_url summary svn_url
  tag_name tags_url tarball_url target_commitish target_url task teams_url template_repository text text_matches
  timeline_url timestamp title topics total total_blocked_by total_blocking total_count transient_environment
  tree tree_id trees_url triage triggering_actor twitter_username type updated_at upload_url uploader url user user_view_type
  verification verified verified_at visibility watchers watchers_count web_commit_signoff_required website_url
  workflow_id workflow_name workflow_url
  zipball_url
  assigner rename from to lock_reason review_requester requested_reviewer requested_team dismissed_review review_id dismissal_message
  dismissal_commit_id project_card project_url project_id column_name previous_column_name issue_type prev_issue_type sub_issue parent_issue intent rationale confidence
`
    .trim()
    .split(/\s+/),
);

/** An organisation's own fields and properties. The organisation chooses the keys below them. */
const GIVEN: ReadonlySet<string> = new Set(["issue_field_values", "custom_properties"]);

/** Keys about the caller. */
const OF_ASKER = /^(?:viewer|role_name$)/;
const OF_ASKER_IN_TEXT = /"(?:viewer\w*|role_name)":/;

/**
 * Keys that `GET /user` shows only to the account itself: those of private-user that public-user lacks, in GitHub's
 * OpenAPI description.
 */
export const ONES_OWN =
  /^(private_gists|total_private_repos|owned_private_repos|disk_usage|collaborators|two_factor_authentication|plan|business_plus|ldap_dn|notification_email)$/;

/** Keys that are shown with all that lies below them. The maker of a deployment chooses what is in its payload. */
const SHOWN_WHOLE: ReadonlySet<string> = new Set(["permissions", "payload", ...GIVEN]);

export function isPublicKey(key: string): boolean {
  return PUBLIC.has(key);
}

function isShownTo(accessLevel: AccessLevel, key: string): boolean {
  switch (accessLevel) {
    case "mirror":
      return true;
    case "writer":
      return !OF_ASKER.test(key);
    case "reader":
      return PUBLIC.has(key) || GIVEN.has(key);
    case "stranger":
      return PUBLIC.has(key);
    default:
      throw new Error(`Nobody stands so: ${accessLevel satisfies never}`);
  }
}

/**
 * Whether every key in a stored document is public. Nothing is parsed: a quote before a colon ends a key. If that quote
 * is escaped, the text before it is no known key.
 */
export function hasPublicKeysOnly(document: string): boolean {
  for (let end = document.indexOf('":'); end >= 0; end = document.indexOf('":', end + 2))
    if (!PUBLIC.has(document.slice(document.lastIndexOf('"', end - 1) + 1, end))) return false;
  return true;
}

/** An association that may come from a private membership of the organisation. */
const MEMBER = '"author_association":"MEMBER"';

/** A stored document as a caller of this access level is shown it. The usual text is answered unparsed. */
export function shownDocument(document: string, accessLevel: AccessLevel): string {
  if (accessLevel === "mirror") return document;
  if (accessLevel === "writer" && !OF_ASKER_IN_TEXT.test(document)) return document;
  const text = accessLevel === "stranger" && document.includes(MEMBER) ? document.replace(MEMBER, NO_TIE) : document;
  if (accessLevel !== "writer" && hasPublicKeysOnly(text)) return text;
  return JSON.stringify(withShown(parseStored<Fields>(text), accessLevel));
}

/** Keys in which upstream describes the account that read the document: here the mirror's own. */
const OF_READER = /^(?:viewer\w*|role_name|temp_clone_token)$/;
const OF_READER_IN_TEXT = /"(?:viewer\w*|role_name|temp_clone_token)":/;

/** A text of upstream's without the keys about its reader. The usual text is answered unparsed. */
export function withoutReader(text: string, accessLevel: AccessLevel): string {
  const shown = accessLevel === "stranger" ? text.replaceAll(MEMBER, NO_TIE) : text;
  if (!OF_READER_IN_TEXT.test(shown)) return shown;
  return JSON.stringify(JSON.parse(shown, (key, value) => (OF_READER.test(key) ? undefined : value)));
}

/**
 * What a stranger is shown for a private member. Upstream might show another association instead, such as CONTRIBUTOR,
 * but the mirror does not know it.
 */
const NO_TIE = '"author_association":"NONE"';

/** The same for a single association of an author. */
export function associationFor(association: Json | undefined, accessLevel: AccessLevel): Json {
  return accessLevel === "stranger" && association === "MEMBER" ? "NONE" : (association ?? null);
}

/** The fields that a caller of this access level is shown, at any depth. */
export function withShown(fields: Fields, accessLevel: AccessLevel): Fields {
  const shown: Fields = {};
  for (const [key, value] of Object.entries(fields)) {
    if (!isShownTo(accessLevel, key)) continue;
    shown[key] = SHOWN_WHOLE.has(key) ? value : valueShown(value, accessLevel);
  }
  return shown;
}

function valueShown(value: Json, accessLevel: AccessLevel): Json {
  if (Array.isArray(value)) return value.map((one) => valueShown(one, accessLevel));
  return isObject(value) ? withShown(value, accessLevel) : value;
}
