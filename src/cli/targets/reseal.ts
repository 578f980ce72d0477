import { resealSecrets } from "../../events/target.ts";
import type { Action, Given } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { counted, type Output } from "../terminal/output.ts";

export const reseal: Action = {
  name: "targets reseal",
  summary: "encrypt the targets' secrets anew, with the first ENCRYPTION_KEY",
  about: `
Run it once every process has the new ENCRYPTION_KEY, or the first one ever. What an older value of
ENCRYPTION_KEY encrypted, or WEBHOOK_SECRET, is decrypted with that and encrypted with the first.
\`tain doctor\` then says that no older value is needed. It may be run at any time, and again.`,
  async run({ env, resources, within }: Given, output: Output): Promise<number> {
    const { ctx } = await openInstance(env, resources, within);
    const resealed = await resealSecrets(ctx);
    output.document({ resealed });
    output.line(`${counted(resealed, "secret was", "secrets were")} encrypted anew; \`tain doctor\` says what is left`);
    return 0;
  },
};
