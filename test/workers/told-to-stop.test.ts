import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { startProgramAt } from "../support/program.ts";

test("work that waits when its process is told to stop has ended, and has not failed", async () => {
  const program = startProgramAt("/", fileURLToPath(new URL("./waiting-program.ts", import.meta.url)), {});
  await program.said("Waiting");
  const exited = program.stop();
  expect(await program.said("Ended")).toMatchObject({ kind: "ended" });
  expect(await program.said("Stopping: finishing what has begun")).toMatchObject({ reason: "SIGTERM" });
  expect(await exited).toBe(0);
});
