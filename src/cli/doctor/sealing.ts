import { sealingKeyName } from "../../config/sealing.ts";
import type { Context } from "../../context.ts";
import { countSealedSecrets } from "../../events/target.ts";
import { counted } from "../terminal/output.ts";
import { type Finding, Findings } from "./finding.ts";

/** Which keys the targets' secrets still need, so that an operator knows when an older one can go. */
export async function examineSealing(ctx: Pick<Context, "db" | "config">): Promise<Finding[]> {
  const { config } = ctx;
  const { byKey, unopened } = await countSealedSecrets(ctx);
  const found = new Findings("keys");
  const newest = sealingKeyName(config, 0);
  if (unopened > 0)
    found.problem(
      "key-missing",
      `${counted(unopened, "secret")} of targets cannot be decrypted with any key that is set here: their events wait`,
      "Name the key that encrypted them behind the present one, or give the targets their secrets again",
    );
  const older = [...byKey].filter(([place]) => place > 0).sort(([one], [other]) => one - other);
  for (const [place, count] of older)
    found.warning(
      "key-older",
      `${counted(count, "secret")} of targets can be decrypted by ${sealingKeyName(config, place)} alone`,
      "Once every process has the present key: `tain targets reseal`. Until then keep the older one",
    );
  if (config.encryptionKeys === null)
    found.warning(
      "key-shared",
      "ENCRYPTION_KEY is not set: WEBHOOK_SECRET, which makes the hooks' secrets, also encrypts targets' secrets and operators' commands",
      "Set it in every process to a secret of its own (`openssl rand -hex 24`), restart, then `tain targets reseal`",
    );
  else if (older.length === 0 && unopened === 0)
    found.ok(`${counted(byKey.get(0) ?? 0, "secret")} of targets, all encrypted by ${newest}: no older key is needed`);
  return found.all;
}
