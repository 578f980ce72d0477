/** What a client may name in a mirrored repository. */
export interface At {
  owner: string;
  name: string;
  issue: number;
  pull: number;
  issueId: string;
  pullId: string;
  repositoryId: string;
  label: string;
  login: string;
  /** The commit of the pull request. */
  oid: string;
}

/** A document that a client sends, written anew from the fields that it asks for. */
export interface ClientDocument {
  /** The tool, and what it asks. */
  name: string;
  query: string;
  variables?: (at: At) => Record<string, unknown>;
}

export const ofRepository = ({ owner, name }: At) => ({ owner, name });
