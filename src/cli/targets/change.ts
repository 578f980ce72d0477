import { askForRedelivery } from "../../events/asks.ts";
import { wakeTargets, wantsChanged } from "../../events/log.ts";
import { changeTarget, removeTarget } from "../../events/target.ts";
import { type Action, CommandError, type Given } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import type { Output } from "../terminal/output.ts";
import { missing, readIds } from "./ids.ts";

export const enable: Action = {
  name: "targets enable",
  summary: "send to a disabled target again, from where it stopped",
  takes: "ID",
  about: `
A target that accepts nothing for TARGETS_RETRY_FOR is disabled. Enabled, it is sent what has waited
since, in order. Deliveries are kept for it for DELIVERY_RETENTION from when it was disabled.`,
  async run({ words, env, resources, within }: Given, output: Output): Promise<number> {
    const [id = 0] = readIds("targets enable", words, 1);
    const { ctx } = await openInstance(env, resources, within);
    if (!(await changeTarget(ctx, id, { active: true }))) throw missing(id);
    await wakeTargets(ctx, [id]);
    output.document({ id });
    output.line(`Target ${id} is sent to again`);
    return 0;
  },
};

export const remove: Action = {
  name: "targets remove",
  summary: "send no more events to a target, and forget it",
  takes: "ID",
  about: "Deletes the target with the record of what was sent to it. What waits for it is not sent.",
  async run({ words, env, resources, within }: Given, output: Output): Promise<number> {
    const [id = 0] = readIds("targets remove", words, 1);
    const { ctx } = await openInstance(env, resources, within);
    if (!(await removeTarget(ctx, id))) throw missing(id);
    await wantsChanged(ctx);
    output.document({ id });
    output.line(`Target ${id} is removed`);
    return 0;
  },
};

export const resend: Action = {
  name: "targets resend",
  summary: "make a request of a target once more, with the same GUID",
  takes: "ID DELIVERY",
  about: `
DELIVERY is the id that \`tain targets deliveries ID\` lists, and the hooks API at
/repos/owner/name/hooks/ID/deliveries.`,
  async run({ words, env, resources, within }: Given, output: Output): Promise<number> {
    const [id = 0, delivery = 0] = readIds("targets resend", words, 2);
    const { ctx } = await openInstance(env, resources, within);
    if (!(await askForRedelivery(ctx, id, delivery)))
      throw new CommandError(`Target ${id} was sent no delivery ${delivery}, or its payload is no longer kept`);
    await wakeTargets(ctx, [id]);
    output.document({ id, delivery });
    output.line(`Delivery ${delivery} is sent to target ${id} again`);
    return 0;
  },
};
