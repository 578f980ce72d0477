/** Settings of earlier versions, and what decides in their place. */
export const RETIRED_SETTINGS: Readonly<Record<string, string>> = {
  RECOMPUTE_ETAGS: "ETAG_PAGES_SIZE, where 0 stores no pages",
  REPLICA_WAIT: "a read waits for a replica for 100 ms",
  STALE_AFTER: "three times CATCH_UP_INTERVAL",
  STREAM_LIFETIME: "a stream stays open for an hour",
};

/** What the environment still says of them, in words. Pure. */
export function retiredSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(RETIRED_SETTINGS)
    .filter(([name]) => env[name]?.trim())
    .map(([name, now]) => `${name} is set and counts no more: ${now}`);
}
