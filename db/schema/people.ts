import { sql } from "drizzle-orm";
import { boolean, check, index, integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, timestamptz } from "./columns.ts";

/** Whose list it is, and which. `repositoryId` 0: one of an organisation or team, whose id is `ownerId`; else that is 0. */
const ofList = {
  repositoryId: int8("repository_id").notNull(),
  ownerId: int8("owner_id").notNull(),
  list: text().notNull(),
};

/** One row is one list of people or teams: of a repository, an organisation or a team. */
export const peopleLists = pgTable(
  "people_lists",
  {
    ...ofList,
    homeId: int8("home_id").notNull(),
    heardAt: timestamptz("heard_at"),
    readAt: timestamptz("read_at"),
    refusedAt: timestamptz("refused_at"),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.ownerId, table.list], name: "people_lists_pkey" }),
    index("people_lists_home").on(table.homeId, table.repositoryId),
    check("people_lists_owner_check", sql`((repository_id = 0) <> (owner_id = 0))`),
  ],
);

/** One row is one person or team in one list, as upstream listed it. */
export const listedPeople = pgTable(
  "listed_people",
  {
    ...ofList,
    position: integer().notNull(),
    id: int8().notNull(),
    slug: text(),
    role: text(),
    isSecret: boolean("is_secret"),
    document: json().notNull(),
    own: json(),
  },
  (table) => [
    primaryKey({
      columns: [table.repositoryId, table.ownerId, table.list, table.position],
      name: "listed_people_pkey",
    }),
    index("listed_people_id").on(table.id, table.list),
  ],
);
