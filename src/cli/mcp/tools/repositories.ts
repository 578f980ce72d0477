import { z } from "zod";
import { objectOf, rowsOf } from "../../../json.ts";
import { login, nextPage, paging, repository, repositoryPath, textBound } from "./inputs.ts";
import { Texts } from "./texts.ts";
import { type Tool, tool } from "./tool.ts";
import { releaseView, repositoryView } from "./views.ts";

const getRepository = tool({
  name: "get_repository",
  title: "Read a repository's description",
  description: "Reads what a repository is: description, default branch, visibility, counts.",
  input: z.strictObject({ repository }),
  async run(call, { repository: name }) {
    const found = await call.get({ part: "repository", what: `the repository ${name}` }, repositoryPath(name));
    return { fields: { repository: repositoryView(objectOf(found.document)) } };
  },
});

const listRepositories = tool({
  name: "list_repositories",
  title: "List repositories",
  description:
    "Lists the repositories that this token may see, or those of one owner. With a token of the mirror's these are the mirrored ones; with a token of GitHub's, GitHub answers.",
  input: z.strictObject({
    owner: login.optional().describe("a user or organization"),
    sort: z.enum(["created", "updated", "pushed", "full_name"]).default("full_name"),
    ...paging,
  }),
  async run(call, { owner, ...query }) {
    const path = owner === undefined ? "/user/repos" : `/users/${encodeURIComponent(owner)}/repos`;
    const what = owner === undefined ? "repositories" : `repositories of ${owner}`;
    const found = await call.get({ part: "repositories", what }, path, query);
    return { fields: { repositories: rowsOf(found.document).map(repositoryView) }, more: nextPage(found, query) };
  },
});

const listReleases = tool({
  name: "list_releases",
  title: "List a repository's releases",
  description: "Lists releases, newest first. The mirror asks GitHub if it does not keep releases.",
  input: z.strictObject({ repository, ...paging, ...textBound }),
  async run(call, { repository: name, max_text, ...page }) {
    const texts = new Texts(max_text);
    const of = { part: "releases", what: `the releases of ${name}` };
    const found = await call.get(of, repositoryPath(name, "releases"), page);
    const releases = rowsOf(found.document).map((each) => releaseView(each, texts));
    return { fields: { releases }, more: [...texts.more, ...nextPage(found, page)] };
  },
});

export const REPOSITORY_TOOLS: readonly Tool[] = [getRepository, listRepositories, listReleases];
