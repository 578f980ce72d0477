import type { CommandGroup } from "../terminal/command.ts";
import { create } from "./create.ts";

export const app: CommandGroup = {
  name: "app",
  about: `
A GitHub App mirrors what it is installed on, has a quota for each installation, and one webhook
for everything. It takes the place of a token (UPSTREAM_TOKEN), or stands beside tokens.`,
  actions: { create },
};
