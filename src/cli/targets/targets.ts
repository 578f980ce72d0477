import type { CommandGroup } from "../terminal/command.ts";
import { add } from "./add.ts";
import { enable, remove, resend } from "./change.ts";
import { deliveries } from "./deliveries.ts";
import { check, list } from "./list.ts";
import { reseal } from "./reseal.ts";

export const targets: CommandGroup = {
  name: "targets",
  about: `
Works on targets: the addresses that Tain sends events to, each after the mirror shows what it
tells. Callers register theirs by the hooks API; those that have no API of their own are added here.`,
  actions: { add, list, check, deliveries, enable, resend, remove, reseal },
};
