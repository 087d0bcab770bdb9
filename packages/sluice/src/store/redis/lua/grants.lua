--[[ grants: units that holders (instances, or a region's store) have prefetched and not settled yet; included only by fetch
  stored   hash beside the counter: '' -> units of all holders, the earliest end among them (or an earlier instant), how often
             any of it changed; holder -> seq, used, units, granted, kept, ends_ms (grants.ts)
  Held units count as if they were in the counter: remaining is what is left besides them. What a holder used is charged when it settles;
  the rest is free again. Units that nobody settled are charged at their end, because they may have been used then. ]]
local RECORD, LONGEST_TERM = '<dddddd', 60000
local grants_keys, texts, fetches, changed = {}, {}, {}, {}

include('grants-head')

local function packed_head(grants)
  grants.changes = (grants.changes or 0) + 1
  return struct.pack('<ddd', grants.total, grants.ends, grants.changes)
end

-- Expired grants are charged at the latest of their ends, as if the script had run then. The counter is written and read again, because a
-- packed log gives everything that one call adds the same timestamp.
local function charge_ended(key, state, body, policy, units, at)
  if body.lasts_until(policy, at) <= now then return state end
  local present = now
  -- A bucket may have refilled since, a counter's own clock may be ahead, a pool has no past: those are charged now.
  if not state.deficit and not body.ends_of and (state.newest or state.last) <= now then now = at end
  -- Redis deletes a key whose expiry has passed meanwhile; it is read again below.
  state.leeway = 1000
  body.charge(state, policy, units, 'h' .. spell(at))
  body.save(key, state)
  now = present
  return body.load(key)
end

-- Drops the holders whose units have expired. An end that is far ahead was written before the clock stepped back.
local function sweep(key, state, grants, body, policy)
  local all, ended, ended_at, gone = call('HGETALL', grants.key), 0, 0, {}
  grants.total, grants.ends = 0, 0
  for i = 1, #all, 2 do
    if all[i] ~= '' then
      local seq, used, units, granted, kept, ends = struct.unpack(RECORD, all[i + 1])
      if ends - now > LONGEST_TERM then
        ends = now + LONGEST_TERM
        call('HSET', grants.key, all[i], struct.pack(RECORD, seq, used, units, granted, kept, ends))
      end
      if ends <= now then
        gone[#gone + 1] = all[i]
        ended, ended_at = ended + units, max(ended_at, ends)
      else
        grants.total = grants.total + units
        grants.ends = grants.ends == 0 and ends or min(grants.ends, ends)
      end
    end
  end
  if ended > 0 then state = charge_ended(key, state, body, policy, ended, ended_at) end
  for i = 1, #gone do call('HDEL', grants.key, gone[i]) end
  call('HSET', grants.key, '', packed_head(grants))
  return state
end

local function held(state)
  return state.grants and state.grants.total or 0
end

-- Wraps the algorithm of a policy with prefetch: the same, but units held elsewhere count too.
local function holding(body, policy)
  local function load(key)
    local grants = { key = grants_keys[key], total = 0, ends = 0, holders = {} }
    local head, state = call('HGET', grants.key, ''), body.load(key)
    if head then grants.total, grants.ends, grants.changes = read_head(head) end
    if grants.ends > 0 and (grants.ends <= now or grants.ends - now > LONGEST_TERM) then
      state = sweep(key, state, grants, body, policy)
    end
    state.grants = grants
    return state
  end

  local function look(state, _, cost, strict)
    local total = held(state)
    -- A pool's look accounts for held units itself: more may be available from the global store.
    if body.ends_of then return body.look(state, policy, cost, strict, total) end
    local allowed, remaining, retry, reset, reason = body.look(state, policy, cost, strict)
    if total == 0 then return allowed, remaining, retry, reset, reason end
    local wait = max(1, state.grants.ends - now)
    remaining, reset = remaining - total, max(reset, wait)
    if not allowed or remaining >= cost or (cost == 0 and not strict) then return allowed, remaining, retry, reset, reason end
    -- Enough would be left but for the held units: wait until some of them expire, or until entries make room next to them.
    if cost + total <= policy[1] then
      local _, _, beside = body.look(state, policy, cost + total)
      wait = min(wait, beside)
    end
    return false, remaining, wait, reset, LIMIT
  end

  local function charge(state, _, cost, member)
    local remaining, reset = body.charge(state, policy, cost, member)
    return remaining - held(state), reset
  end

  return { arity = body.arity, load = load, look = look, charge = charge, save = body.save, body = body }
end

local function holder_of(grants, holder)
  local record = grants.holders[holder]
  if record then return record end
  local raw = call('HGET', grants.key, holder)
  if not raw then return nil end
  record = {}
  record.seq, record.used, record.units, record.granted, record.kept, record.ends = struct.unpack(RECORD, raw)
  return record
end

-- Charges what the holder used since its last settlement, and frees what it no longer holds. Leaves what is to be granted.
local function settle_fetch(i, text)
  local key, policy = keys[i], policy_of[i]
  local state = state_of(key, policy.algorithm)
  local grants = state.grants
  local seq, used, held_units, want, need, holder = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (.+)$')
  seq, used = tonumber(seq), tonumber(used)
  local record = grants and holder_of(grants, holder)
  if not grants or (record and seq < record.seq) then
    fetches[i] = {}
    return
  end
  if record and seq == record.seq then
    fetches[i] = { record = record, need = tonumber(need) }
    return
  end
  local outstanding = record and record.units or 0
  local kept = min(tonumber(held_units), outstanding)
  local spent = record and min(max(0, used - record.used), outstanding - kept) or 0
  if spent > 0 then
    policy.algorithm.body.charge(state, policy, spent, holder .. '.' .. spell(seq))
    touched[key] = true
  end
  grants.total = grants.total - outstanding + kept
  if not record then grants.new = (grants.new or 0) + 1 end
  grants.holders[holder] = { seq = seq, used = used, units = kept, granted = 0, kept = kept, ends = 0 }
  fetches[i] = { record = grants.holders[holder], grants = grants, state = state, want = tonumber(want), need = tonumber(need) }
end

-- Grants what was requested, as far as it is available. Appends to `out`: units granted, units kept, their life and, if the holder needs
-- more than it got, when the next unit is expected.
local function grant(i, out, n, left, passes)
  local fetch, policy = fetches[i], policy_of[i]
  local record, grants = fetch.record, fetch.grants
  if not record then
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = 0, 0, 0, 0
    return
  end
  if grants then
    local body, term = policy.algorithm.body, policy.term
    local ends = now + term
    -- Units expire before their window ends, so that what is charged at their expiry is charged in that window.
    if body.ends_of then ends = min(ends, body.ends_of(fetch.state)) end
    if body.ends_with_window then ends = min(ends, body.lasts_until(policy, max(now, fetch.state.last)) - 1) end
    if passes and ends > now and left > 0 and fetch.want > 0 then
      local holders = max(0, call('HLEN', grants.key) - 1) + (grants.new or 0)
      record.granted = min(fetch.want, left, max(fetch.need, ceil(left / max(2, holders / 4))))
      record.units = record.units + record.granted
      grants.total = grants.total + record.granted
    end
    record.ends = ends
    grants.ends = grants.ends == 0 and ends or min(grants.ends, ends)
    grants.lives = max(grants.lives or 0, body.lasts_until(policy, ends) - now)
    changed[keys[i]] = grants
  end
  local _, retry = nil, 0
  if fetch.need > record.granted then _, _, retry = policy.algorithm.look(state_of(keys[i], policy.algorithm), policy, 1) end
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = record.granted, record.kept, max(0, record.ends - now), retry
end

local function write_grants(grants)
  local fields = { '', packed_head(grants) }
  for holder, record in pairs(grants.holders) do
    fields[#fields + 1] = holder
    fields[#fields + 1] = struct.pack(RECORD, record.seq, record.used, record.units, record.granted, record.kept, record.ends)
  end
  call('HSET', grants.key, unpack(fields))
  outlive(grants.key, grants.lives)
end
