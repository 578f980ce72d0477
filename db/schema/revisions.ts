import { table } from "./table.ts";

/** One row is what tells readers whether anything of a repository may have changed; 0 stands for people. */
export const revisions = table("revisions", {
  repository_id: "bigint",
  revision: "bigint",
});
