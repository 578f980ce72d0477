/**
 * How the service refuses what it would otherwise answer, in its own words. Each costs a request, like any answer of
 * 4xx.
 */
interface Refused {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

export const REFUSALS = {
  permission: { status: 403, body: { message: "Resource not accessible by personal access token" } },
  saml: {
    status: 403,
    body: {
      message:
        "Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this organization.",
    },
    headers: { "X-GitHub-SSO": "required; url=https://github.com/orgs/octo/sso?authorization_request=A1" },
  },
  "ip-allow-list": {
    status: 403,
    body: {
      message:
        "Although you appear to have the correct authorization credentials, the `octo` organization has an IP allow list enabled, and your IP address is not permitted to access this resource.",
    },
  },
  absent: { status: 404, body: { message: "Not Found" } },
  dmca: {
    status: 451,
    body: { message: "Repository access blocked", block: { reason: "dmca", created_at: null, html_url: null } },
  },
  "issues-off": { status: 410, body: { message: "Issues has been disabled in this repository." } },
  "deep-page": {
    status: 422,
    body: {
      message: "In order to keep the API fast for everyone, pagination is limited for this resource.",
    },
  },
} as const satisfies Record<string, Refused>;

export type RefusalName = keyof typeof REFUSALS;
