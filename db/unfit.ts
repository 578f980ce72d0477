import { VERSION } from "../src/version.ts";

/** A store that this Tain must not work with. The message says what is wrong and what would be right. */
export class UnfitStoreError extends Error {
  readonly fault: string;
  readonly remedy: string;

  constructor(fault: string, remedy: string) {
    super(`${fault}: ${remedy}`);
    this.fault = fault;
    this.remedy = remedy;
  }
}

/** Its server is of a version that lacks what this Tain needs. */
export class StoreTooOldError extends UnfitStoreError {
  override name = "StoreTooOldError";
}

/** `npm run proofs stores` runs the tests on it and on what came after it. */
const OLDEST_POSTGRES = 15;
/** BullMQ asks for it. Valkey calls itself a Redis 7.2. */
const OLDEST_REDIS = "6.2";

/** Null where the server is new enough. Pure. @param versionNumber as in `server_version_num`: 150018 is 15.18 */
export function postgresTooOld(versionNumber: number): StoreTooOldError | null {
  if (versionNumber >= OLDEST_POSTGRES * 10_000) return null;
  const server = `${Math.trunc(versionNumber / 10_000)}.${versionNumber % 10_000}`;
  return new StoreTooOldError(
    `Postgres ${server} is too old for Tain ${VERSION}`,
    `use Postgres ${OLDEST_POSTGRES} or newer`,
  );
}

/** Null where the server is new enough. Pure. @param version as in INFO's `redis_version` */
export function redisTooOld(version: string): StoreTooOldError | null {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_REDIS.split(".").map(Number);
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return null;
  return new StoreTooOldError(
    `Redis ${version} is too old for Tain ${VERSION}`,
    `use Redis ${OLDEST_REDIS} or newer, or Valkey`,
  );
}
