import { expect, test } from "vitest";
import { StandingsReader } from "../../src/mirror/unchanged/standings.ts";
import { openTestDatabase } from "../support/database.ts";

test("closed while its first connection is being made, it leaves none behind and answers nothing more", async () => {
  const database = await openTestDatabase();
  for (let turn = 0; turn < 5; turn++) {
    const reader = new StandingsReader({ databaseUrl: database.url, databaseDirectUrl: null });
    const asked = reader.now([1]).then(
      () => "answered",
      () => "refused",
    );
    await Promise.resolve();
    await reader[Symbol.asyncDispose]();
    expect(["answered", "refused"]).toContain(await asked);
    await expect(reader.now([1])).rejects.toThrow("closed");
  }
  // It fails while a connection is open.
  await database.drop();
});
