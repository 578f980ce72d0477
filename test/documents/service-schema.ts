import { schema as published } from "@octokit/graphql-schema";

/** The published schema is older than what one document asks for. */
const NEWER = `
  input IssueFieldValueFilter { name: String }
  extend input IssueFilters { issueFieldValues: [IssueFieldValueFilter!] }
  type IssueFieldValue { value: String }
  type IssueFieldValueConnection { nodes: [IssueFieldValue] }
  extend type Issue { issueFieldValues(first: Int): IssueFieldValueConnection }
`;

/** All that the service's GraphQL knows, as SDL. */
export const SERVICE_SCHEMA = published.idl + NEWER;
