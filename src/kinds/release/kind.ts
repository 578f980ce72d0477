import { sql } from "../../../db/sql.ts";
import { textOf } from "../../json.ts";
import { asShown, CHANGES, exists, mayBeEmpty, resource, resourceEvents, sets } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { releaseLists, releases } from "./table.ts";

export const release = resource("release", releases, {
  right: "contents",
  part: "releases",
  columns: ({ author, draft }) => ({ author_id: referenceId(author), draft: draft === true }),
  needed: ["tag_name", "created_at"],
  upstream: { path: (id) => `/releases/${id}` },
  list: {
    table: releaseLists,
    path: "/releases",
    everyMs: 60 * 60_000,
    // Upstream sends no event for an asset, and assets come after their release. None is known for edits of a draft.
    moving: { everyMs: 5 * 60_000, rows: sql`t.draft` },
    hidden: { rows: sql`t.draft`, column: "shows_drafts" },
  },
  events: resourceEvents({
    event: "release",
    in: "release",
    fields: { name: asShown, body: mayBeEmpty, draft: asShown, prerelease: asShown },
    actions: {
      created: exists(true),
      edited: CHANGES,
      deleted: exists(false),
      published: sets("draft", false),
      unpublished: sets("draft", true),
      prereleased: sets("prerelease", true),
      released: sets("prerelease", false),
    },
    // The `created_at` of a release is its commit's.
    madeAt: ({ published_at, created_at }) => textOf(published_at) ?? created_at,
    maker: ({ author }) => author,
    sinceBirth: ({ draft }) =>
      draft === true
        ? []
        : [
            ["draft", true],
            ["prerelease", null],
          ],
    toldSinceBirth: "each",
    // By GitHub's webhook schema, a former value of a release is never null.
    former: (_field, was) => ({ from: was ?? "" }),
  }),
});
