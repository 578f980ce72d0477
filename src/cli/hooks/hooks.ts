import type { CommandGroup } from "../terminal/command.ts";
import { check } from "./check.ts";
import { list } from "./list.ts";
import { register } from "./register.ts";
import { remove } from "./remove.ts";
import { rotate } from "./rotate.ts";
import { secret } from "./secret.ts";

export const hooks: CommandGroup = {
  name: "hooks",
  about: `
Works on the repositories' webhooks at upstream. They send to PUBLIC_URL/webhooks, each signed with
a secret of its own that is made of the first WEBHOOK_SECRET; where neither is set, to the instance
that runs here, if upstream can reach it.`,
  actions: { register, list, check, rotate, secret, remove },
};
