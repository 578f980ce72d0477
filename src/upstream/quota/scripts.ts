import { hash } from "node:crypto";
import { RETRIES } from "../../waits/retries.ts";
import {
  CONCURRENT_PER_USER,
  FULL_WAIT_MS,
  LONGEST_LINE_MS,
  PLACE_MS,
  POINTS_WINDOW_MS,
  PROBE_MS,
  PROBE_WAIT_MS,
  REPETITION_MS,
  SAME_WINDOW_S,
  SHARED_CLOCKS_APART_MS,
  SLOT_MS,
  TRIAL_MS,
  UNMETERED_MS,
  WRITE_GAP_MS,
  WRITES_PER_HOUR,
} from "./limits.ts";

const { throttled } = RETRIES;

/**
 * The rules of the budget of all processes. Each operation is one script, so it is atomic among processes and takes one
 * round trip. Each credential and each bucket is a hash; a missing field reads as 0. The requests under way are a
 * sorted set, by the time at which their places expire. The points of the last minute are a hash, by slot. Unused keys
 * expire an hour after they have lost their meaning.
 *
 * A bucket of a credential is
 * - known: an answer's headers said what is left, which holds until `resetAt`;
 * - unmetered: an answer came without such headers, so upstream does not count; believed for a minute;
 * - unknown: before the first answer, after the window is over, and after Redis has lost its memory. It never counts as
 *   full: very few requests may be under way ("probes") until the headers of one of them say what is left.
 *
 * A bucket's `remaining` is less the leases given out, and its `spent` is what we ourselves have taken from the window.
 * The rest of a lease from a past window is not given back to the next one.
 */
const HOUR_MS = 3_600_000;

/** A script and the name that Redis has for it. */
export interface Script {
  text: string;
  sha1: string;
}

/** A stored time as a number, or 0 if it lies further ahead of now than `most`, and so was stored by a clock ahead. */
const NEAR = `local function near(value, most)
  local at = tonumber(value or 0)
  if at > now + most + ${SHARED_CLOCKS_APART_MS} then return 0 end
  return at
end`;

const redisScript = (text: string): Script => ({ text, sha1: hash("sha1", text) });

/**
 * KEYS: for each credential its ledger's hash, its bucket's, its requests under way and its points, and its own hash.
 * ARGV: now, cost, floor, share, probes, the request's id, its points, the points allowed, 1 if it writes, then per
 * credential 1 if preferred.
 * Answers the credential's index, how it is counted, the window and when to send. Denied: 0, when to come back, and 1
 * if only our own pace denies it.
 */
export const LEASE = redisScript(`
local now, cost, floor, share = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local probes, id, points, allowed = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local writes = ARGV[9] == '1'
local best, bestLeft, bestPreferred = 0, 0, false
local retryAt, paced = 0, 0
local function field(value) return tonumber(value or 0) end
${NEAR}
local function text(value) return string.format('%.0f', value) end
local function pointsFreeAt(key)
  local spent = redis.call('HGETALL', key)
  local oldest = (now - ${POINTS_WINDOW_MS}) / ${SLOT_MS} - 1
  local newest = (now + ${LONGEST_LINE_MS} + ${SHARED_CLOCKS_APART_MS}) / ${SLOT_MS}
  local excess = points - (allowed - math.ceil(allowed * floor))
  for j = 1, #spent, 2 do
    if tonumber(spent[j]) <= oldest or tonumber(spent[j]) > newest then
      redis.call('HDEL', key, spent[j])
    else
      excess = excess + tonumber(spent[j + 1])
    end
  end
  -- Nearly always; this is run for every credential at every request.
  if excess <= 0 then return 0 end
  local slots = {}
  for j = 1, #spent, 2 do
    local slot = tonumber(spent[j])
    if slot > oldest and slot <= newest then slots[#slots + 1] = {slot, tonumber(spent[j + 1])} end
  end
  table.sort(slots, function(a, b) return a[1] < b[1] end)
  local freeAt = 0
  for j = 1, #slots do
    if excess <= 0 then break end
    excess = excess - slots[j][2]
    freeAt = (slots[j][1] + 1) * ${SLOT_MS} + ${POINTS_WINDOW_MS}
  end
  return freeAt
end
for i = 1, #KEYS / 5 do
  local c = redis.call('HMGET', KEYS[5 * i - 4], 'blockedUntil', 'strikes', 'writeAt', 'writeHourEnds', 'writes')
  local blockedUntil, rejectedUntil = field(c[1]), field(redis.call('HGET', KEYS[5 * i], 'rejectedUntil'))
  if rejectedUntil <= now then
    local b = redis.call('HMGET', KEYS[5 * i - 3], 'limit', 'remaining', 'resetAt', 'spent', 'probes', 'probesUntil', 'unmeteredUntil')
    local limit, resetAt = field(b[1]), field(b[3])
    local left, limitedUntil, freeAt = math.huge, 0, 0
    if resetAt > now then
      local budget = math.floor(limit * share)
      left = math.min(tonumber(b[2]) - math.ceil(limit * floor), budget - field(b[4]) - math.ceil(budget * floor))
      if left < cost then limitedUntil = resetAt end
    elseif near(b[7], ${UNMETERED_MS}) <= now and near(b[6], ${PROBE_MS}) > now and field(b[5]) >= probes then
      freeAt = now + ${PROBE_WAIT_MS}
    end
    if blockedUntil > now then limitedUntil = math.max(limitedUntil, blockedUntil) end
    local longest = text(now + ${PLACE_MS} + ${SHARED_CLOCKS_APART_MS})
    if redis.call('ZCOUNT', KEYS[5 * i - 2], '(' .. text(now), longest) >= ${CONCURRENT_PER_USER} - math.ceil(${CONCURRENT_PER_USER} * floor) then
      freeAt = math.max(freeAt, now + ${FULL_WAIT_MS})
    end
    freeAt = math.max(freeAt, limitedUntil, pointsFreeAt(KEYS[5 * i - 1]))
    if writes then
      local writeAt = near(c[3], ${LONGEST_LINE_MS} + ${WRITE_GAP_MS})
      if writeAt - now > ${LONGEST_LINE_MS} then freeAt = math.max(freeAt, writeAt - ${LONGEST_LINE_MS}) end
      if near(c[4], ${HOUR_MS}) > now and field(c[5]) >= ${WRITES_PER_HOUR} then freeAt = math.max(freeAt, field(c[4])) end
    end
    if freeAt > 0 then
      if retryAt == 0 or freeAt < retryAt then
        retryAt = freeAt
        paced = limitedUntil > 0 and 0 or 1
      end
    else
      local preferred = ARGV[9 + i] == '1'
      if best == 0 or (preferred and not bestPreferred) or (preferred == bestPreferred and left > bestLeft) then
        best, bestLeft, bestPreferred = i, left, preferred
      end
    end
  end
end
if best == 0 then return {0, retryAt, paced} end
local credential, bucket, underWay, slots = KEYS[5 * best - 4], KEYS[5 * best - 3], KEYS[5 * best - 2], KEYS[5 * best - 1]
local c = redis.call('HMGET', credential, 'strikes', 'writeAt', 'writeHourEnds')
local rejectedUntil = field(redis.call('HGET', KEYS[5 * best], 'rejectedUntil'))
if rejectedUntil > 0 then redis.call('HSET', KEYS[5 * best], 'rejectedUntil', text(now + ${TRIAL_MS})) end
local sendAt = now
if writes then
  sendAt = math.max(now, near(c[2], ${LONGEST_LINE_MS} + ${WRITE_GAP_MS}))
  redis.call('HSET', credential, 'writeAt', text(sendAt + ${WRITE_GAP_MS}))
  if near(c[3], ${HOUR_MS}) <= now then
    redis.call('HSET', credential, 'writeHourEnds', text(now + ${HOUR_MS}), 'writes', 1)
  else
    redis.call('HINCRBY', credential, 'writes', 1)
  end
  redis.call('PEXPIRE', credential, math.max(2 * ${HOUR_MS}, redis.call('PTTL', credential)))
end
redis.call('ZREMRANGEBYSCORE', underWay, '-inf', text(now))
redis.call('ZADD', underWay, text(now + ${PLACE_MS}), id)
redis.call('PEXPIRE', underWay, ${HOUR_MS})
redis.call('HINCRBY', slots, text(math.floor(sendAt / ${SLOT_MS})), points)
redis.call('PEXPIRE', slots, ${HOUR_MS})
local b = redis.call('HMGET', bucket, 'reset', 'resetAt', 'probes', 'probesUntil', 'unmeteredUntil')
if field(b[2]) > now then
  if cost > 0 then
    redis.call('HINCRBY', bucket, 'remaining', -cost)
    redis.call('HINCRBY', bucket, 'spent', cost)
  end
  return {best, 'window', tonumber(b[1]), sendAt}
end
if near(b[5], ${UNMETERED_MS}) > now then return {best, 'unmetered', 0, sendAt} end
local asking = near(b[4], ${PROBE_MS}) > now and field(b[3]) or 0
redis.call('HSET', bucket, 'probes', asking + 1, 'probesUntil', text(now + ${PROBE_MS}))
redis.call('PEXPIRE', bucket, math.max(${HOUR_MS}, redis.call('PTTL', bucket)))
return {best, 'probe', field(b[1]), sendAt}
`);

/**
 * KEYS: credential, bucket of its ledger, requests under way. ARGV: now, the request's id, how it was counted, its
 * window, refund, 1 if upstream answered, then limit, remaining, reset, resetAt, or nothing when they were not seen.
 */
export const SETTLE = redisScript(`
local now, counted, window, refund = tonumber(ARGV[1]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local function field(value) return tonumber(value or 0) end
${NEAR}
local function text(value) return string.format('%.0f', value) end
redis.call('ZREM', KEYS[3], ARGV[2])
if redis.call('HEXISTS', KEYS[1], 'rejectedUntil') == 1 then redis.call('HDEL', KEYS[1], 'rejectedUntil', 'rejection') end
if ARGV[6] == '1' then redis.call('HDEL', KEYS[1], 'rejectedSince') end
local b = redis.call('HMGET', KEYS[2], 'limit', 'remaining', 'reset', 'resetAt', 'spent', 'probes', 'probesUntil')
local known = field(b[4]) > now
local probes = near(b[7], ${PROBE_MS}) > now and field(b[6]) or 0
if counted == 'probe' and probes > 0 then
  probes = probes - 1
  redis.call('HSET', KEYS[2], 'probes', probes)
end
local ofWindow = known and counted == 'window' and window == tonumber(b[3])
if not ofWindow then refund = 0 end
if not ARGV[7] then
  if known and refund ~= 0 then
    redis.call('HSET', KEYS[2], 'remaining', math.min(tonumber(b[1]), tonumber(b[2]) + refund), 'spent', math.max(0, field(b[5]) - refund))
  end
  if not known and ARGV[6] == '1' then
    redis.call('HSET', KEYS[2], 'unmeteredUntil', text(now + ${UNMETERED_MS}))
    redis.call('PEXPIRE', KEYS[2], math.max(${HOUR_MS}, redis.call('PTTL', KEYS[2])))
  end
  return 0
end
local limit, remaining, reset, resetAt = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local spent
if known and math.abs(reset - tonumber(b[3])) <= ${SAME_WINDOW_S} then
  if ofWindow then spent = math.max(0, field(b[5]) - refund) else spent = math.max(field(b[5]), limit - remaining) end
  reset = tonumber(b[3])
  remaining = math.min(tonumber(b[2]) + refund, remaining)
  resetAt = math.min(tonumber(b[4]), resetAt)
elseif resetAt <= now then
  return 0
else
  remaining = remaining - probes
  spent = limit - remaining
end
redis.call('HSET', KEYS[2], 'limit', limit, 'remaining', remaining, 'reset', reset, 'resetAt', text(resetAt), 'spent', spent)
redis.call('PEXPIRE', KEYS[2], math.max(resetAt - now, 0) + ${HOUR_MS})
return 0
`);

/**
 * KEYS: ledger. ARGV: now, startedAt, until or '' when upstream named no moment. Answers until when it is blocked now.
 *
 * All processes share the block, and Redis counts its repetitions. So the formula of `src/waits/backoff.ts` stands here in
 * Lua. It takes no chance: the waits of those that are blocked have their own.
 */
export const BLOCK = redisScript(`
local now, startedAt = tonumber(ARGV[1]), tonumber(ARGV[2])
local c = redis.call('HMGET', KEYS[1], 'blockedUntil', 'strikes')
local blockedUntil, strikes = tonumber(c[1] or 0), tonumber(c[2] or 0)
local till = tonumber(ARGV[3])
if not till then
  if startedAt >= blockedUntil then
    if startedAt < blockedUntil + ${REPETITION_MS} then strikes = strikes + 1 else strikes = 1 end
  end
  till = now + math.min(${throttled.firstMs} * 2 ^ (math.max(strikes, 1) - 1), ${throttled.longestMs})
end
blockedUntil = math.max(blockedUntil, till)
redis.call('HSET', KEYS[1], 'blockedUntil', string.format('%.0f', blockedUntil), 'strikes', strikes)
redis.call('PEXPIRE', KEYS[1], math.max(blockedUntil - now + ${HOUR_MS}, redis.call('PTTL', KEYS[1])))
return blockedUntil
`);

/**
 * KEYS: credential. ARGV: now, until, why in words or ''. The first of several rejections in a row stays known, as
 * `rejectedSince`, until upstream accepts the credential.
 */
export const REJECT = redisScript(`
redis.call('HSETNX', KEYS[1], 'rejectedSince', ARGV[1])
redis.call('HSET', KEYS[1], 'rejectedUntil', ARGV[2], 'rejection', ARGV[3])
redis.call('PEXPIRE', KEYS[1], math.max(ARGV[2] - ARGV[1] + ${HOUR_MS}, redis.call('PTTL', KEYS[1])))
return 0
`);
