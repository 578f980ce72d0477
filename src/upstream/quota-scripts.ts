import { firstBlockMs, longestBlockMs, repetitionMs, sameWindowS, trialMs } from "./ledger.ts";

/**
 * The rules of `ledger.ts` in Redis: each operation is one script, so it is atomic among all processes and takes one
 * round trip. A bucket and a credential are a hash each; a missing field reads as 0. What nobody touches any more
 * expires by itself, an hour after it has lost its meaning.
 */
const hourMs = 3_600_000;

/** KEYS: a credential's and its bucket's hash, for each credential. ARGV: now, cost, floor, then per credential 1 if preferred. */
export const leaseScript = `
local now, cost, floor = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local best, bestLeft, bestPreferred, bestKnown, bestTrial = 0, 0, false, false, false
local retryAt = 0
for i = 1, #KEYS / 2 do
  local c = redis.call('HMGET', KEYS[2 * i - 1], 'blockedUntil', 'rejectedUntil')
  local blockedUntil, rejectedUntil = tonumber(c[1] or 0), tonumber(c[2] or 0)
  if rejectedUntil <= now then
    local b = redis.call('HMGET', KEYS[2 * i], 'limit', 'remaining', 'resetAt')
    local resetAt = tonumber(b[3] or 0)
    local known, left, freeAt = resetAt > now, math.huge, 0
    if known then left = tonumber(b[2]) - math.ceil(tonumber(b[1]) * floor) end
    if blockedUntil > now then freeAt = blockedUntil end
    if known and left < cost and resetAt > freeAt then freeAt = resetAt end
    if freeAt > 0 then
      if retryAt == 0 or freeAt < retryAt then retryAt = freeAt end
    else
      local preferred = ARGV[3 + i] == '1'
      if best == 0 or (preferred and not bestPreferred) or (preferred == bestPreferred and left > bestLeft) then
        best, bestLeft, bestPreferred, bestKnown, bestTrial = i, left, preferred, known, rejectedUntil > 0
      end
    end
  end
end
if best == 0 then return {0, retryAt} end
if bestTrial then redis.call('HSET', KEYS[2 * best - 1], 'rejectedUntil', ARGV[1] + ${trialMs}) end
if bestKnown and cost > 0 then redis.call('HINCRBY', KEYS[2 * best], 'remaining', -cost) end
return {best, bestKnown and 1 or 0}
`;

/** KEYS: credential, bucket. ARGV: now, refund, then limit, remaining, reset, resetAt, or nothing when they were not seen. */
export const settleScript = `
local now, refund = tonumber(ARGV[1]), tonumber(ARGV[2])
if redis.call('HEXISTS', KEYS[1], 'rejectedUntil') == 1 then redis.call('HDEL', KEYS[1], 'rejectedUntil') end
local b = redis.call('HMGET', KEYS[2], 'limit', 'remaining', 'reset', 'resetAt')
local known = tonumber(b[4] or 0) > now
if not ARGV[3] then
  if known and refund ~= 0 then
    redis.call('HSET', KEYS[2], 'remaining', math.min(tonumber(b[1]), tonumber(b[2]) + refund))
  end
  return 0
end
local limit, remaining, reset, resetAt = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if known then
  if math.abs(reset - tonumber(b[3])) <= ${sameWindowS} then
    reset = tonumber(b[3])
    remaining = math.min(tonumber(b[2]) + refund, remaining)
    resetAt = math.min(tonumber(b[4]), resetAt)
  elseif resetAt <= now then
    return 0
  end
end
redis.call('HSET', KEYS[2], 'limit', limit, 'remaining', remaining, 'reset', reset, 'resetAt', string.format('%.0f', resetAt))
redis.call('PEXPIRE', KEYS[2], math.max(resetAt - now, 0) + ${hourMs})
return 0
`;

/** KEYS: credential. ARGV: now, startedAt, until or '' when upstream named no moment. Answers until when it is blocked now. */
export const blockScript = `
local now, startedAt = tonumber(ARGV[1]), tonumber(ARGV[2])
local c = redis.call('HMGET', KEYS[1], 'blockedUntil', 'strikes')
local blockedUntil, strikes = tonumber(c[1] or 0), tonumber(c[2] or 0)
local till = tonumber(ARGV[3])
if not till then
  if startedAt >= blockedUntil then
    if startedAt < blockedUntil + ${repetitionMs} then strikes = strikes + 1 else strikes = 1 end
  end
  till = now + math.min(${firstBlockMs} * 2 ^ (math.max(strikes, 1) - 1), ${longestBlockMs})
end
blockedUntil = math.max(blockedUntil, till)
redis.call('HSET', KEYS[1], 'blockedUntil', string.format('%.0f', blockedUntil), 'strikes', strikes)
redis.call('PEXPIRE', KEYS[1], math.max(blockedUntil - now, 0) + ${hourMs})
return blockedUntil
`;

/** KEYS: credential. ARGV: now, until. */
export const rejectScript = `
redis.call('HSET', KEYS[1], 'rejectedUntil', ARGV[2])
redis.call('PEXPIRE', KEYS[1], math.max(ARGV[2] - ARGV[1], redis.call('PTTL', KEYS[1]), 0) + ${hourMs})
return 0
`;
