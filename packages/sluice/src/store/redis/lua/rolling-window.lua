--[[ rolling-window, storage sorted-set: one check of one key, exact (paper, Algorithm 4)
  stored   sorted set: score = arrival in ms, member = request id, so that two arrivals in one millisecond count twice;
           a request of cost n has n members. Past the limit, one more member, ~units:at:from, holds the debt (rolling-window.ts);
           its score is that of the newest entry when it was written, so that it sorts last.
  policy   limit, window_ms, min_interval_ms
  Clean-up happens with the insert: a refused request writes nothing, and so costs the replicas nothing. ]]
local arity, named = 3, true
local MOST_ENTRIES = 5000

local function load(key)
  local newest = call('ZREVRANGE', key, '0', '0', 'WITHSCORES')
  local state = { key = key, newest = tonumber(newest[2]) or 0, stored = newest[2] ~= nil, added = 0, members = {}, debt = 0, gone = 0 }
  if newest[1] and string.byte(newest[1]) == 126 then
    local units, at, from = string.match(newest[1], '^~(%d+):(%d+):(%d+)$')
    state.marker, state.marked_at = newest[1], state.newest
    state.debt, state.debt_at, state.debt_from = tonumber(units), tonumber(at), tonumber(from)
    local entry = call('ZREVRANGE', key, '1', '1', 'WITHSCORES')
    state.newest, state.stored = tonumber(entry[2]) or state.debt_at, entry[2] ~= nil
  end
  return state
end

local function count_live(state, cutoff)
  if not state.stored then return 0 end
  local live = call('ZCOUNT', state.key, '(' .. spell(cutoff), '+inf')
  return state.marker and state.marked_at > cutoff and live - 1 or live
end

local function live_debt(state, cutoff)
  return state.debt > 0 and state.debt_at > cutoff and state.debt or 0
end

-- Live entries and debt at the key's own clock, which never goes back. Entries are counted once per call and window.
local function settle(state, policy)
  local window = policy[2]
  local at = max(now, state.newest)
  if at > now and at - now > window + (policy.ahead or 0) then
    -- All entries lie within a window of the newest, so all of them are ahead: they count as now.
    state.debt = count_live(state, at - window) - state.gone + state.added + live_debt(state, at - window)
    state.debt_at, state.debt_from, state.newest, at = now, now, now, now
    state.moved, state.kept, state.stored, state.gone, state.added, state.members, state.window = true, window, false, 0, 0, {}, nil
  end
  if state.window ~= window then
    state.window = window
    state.live = count_live(state, at - window)
  end
  return max(0, state.live - state.gone) + state.added, live_debt(state, at - window), at
end

-- The arrival of the n-th oldest live entry.
local function arrival(state, window, n, at)
  if n > state.live then return at end
  local entry = call('ZRANGEBYSCORE', state.key, '(' .. spell(at - window), '+inf', 'WITHSCORES', 'LIMIT', spell(n - 1), '1')
  return tonumber(entry[2])
end

local function look(state, policy, cost, strict)
  local entries, debt, at = settle(state, policy)
  local limit, count = policy[1], entries + debt
  local remaining = limit - count
  local reset = count > 0 and state.newest + policy[2] - now or 0
  if cost == 0 and not strict then return true, remaining, 0, reset, NONE end
  if cost > limit then return false, remaining, NEVER, reset, COST end
  local wait, reason = 0, NONE
  if cost > 0 and count > 0 and at - state.newest < policy[3] then
    wait, reason = state.newest + policy[3] - now, INTERVAL
  end
  if count + cost > limit then
    local excess = count + cost - limit
    local arrived = excess > debt and arrival(state, policy[2], state.gone + excess - debt, at) or state.debt_at
    wait, reason = max(wait, arrived + policy[2] - now), LIMIT
  end
  return reason == NONE, remaining, wait, reset, reason
end

-- Turns the oldest n units into debt, so that `room` are left: stored ones first, then those arriving now. Returns how many of the latter.
local function into_debt(state, window, n, room, at)
  local of_stored = min(n, max(0, state.live - state.gone))
  if state.debt == 0 then state.debt_from = of_stored > 0 and arrival(state, window, state.gone + 1, at) or at end
  state.gone = state.gone + of_stored
  state.debt = state.debt + n
  if state.debt > MOST - room then state.debt, state.debt_from = MOST - room, at + 1 end
  state.debt_at = of_stored < n and at or arrival(state, window, state.gone, at)
  return n - of_stored
end

local function charge(state, policy, cost, member)
  local entries, debt, at = settle(state, policy)
  state.debt = debt
  local room, members = policy[1], state.members
  if cost > MOST_ENTRIES then room = 0 end
  local adding = cost
  if entries + cost > room then
    local arriving = into_debt(state, policy[2], entries + cost - room, room, at)
    -- Entries of one call arrive together: which of them become debt makes no difference.
    local of_added = min(arriving, state.added)
    for _ = 1, 2 * of_added do members[#members] = nil end
    state.added = state.added - of_added
    adding = cost - (arriving - of_added)
  end
  for i = 1, adding do
    members[#members + 1] = spell(at)
    members[#members + 1] = i == 1 and member or member .. ':' .. i
  end
  state.added = state.added + adding
  state.newest = at
  -- A look with other numbers may follow in the same call: entries leave by the window that was charged, the longest if there are several.
  state.kept = max(state.kept or 0, policy[2])
  return policy[1] - (state.live - state.gone + state.added) - state.debt, at + policy[2] - now
end

local function write_marker(key, state, score)
  local marker = state.debt > 0 and '~' .. spell(state.debt) .. ':' .. spell(state.debt_at) .. ':' .. spell(state.debt_from)
  -- Add first: a key that is empty for a moment would lose its expiry.
  if marker then call('ZADD', key, spell(score), marker) end
  if state.marker and state.marker ~= marker then call('ZREM', key, state.marker) end
end

local function take_from_debt(state, n)
  local taken = min(n, state.debt)
  state.debt = state.debt - taken
  if taken > 0 then write_marker(state.key, state, max(state.newest, state.debt_at)) end
  return taken
end

-- A counter whose clock is ahead keeps that clock when its last unit goes: see keepClock in rolling-window.ts. The clock is added before
-- that unit goes, because the key must not be deleted in between (reset.lua).
local function hold_clock(state)
  if state.newest <= now or state.marker and state.debt == 0 then return end
  local at = spell(state.newest)
  state.clock = '~0:' .. at .. ':' .. at
  call('ZADD', state.key, at, state.clock)
end

local function keep_clock(state)
  if not state.clock then return end
  if call('ZCARD', state.key) > 1 then
    call('ZREM', state.key, state.clock)
  else
    call('PEXPIREAT', state.key, spell(state.newest + 1))
  end
end

local function refund(state, _, cost, charged_at, member)
  state.refunded = true
  hold_clock(state)
  local taken, names = 0, {}
  -- A larger charge became debt as a whole. Names are removed a thousand at a time: one call per name would block Redis for milliseconds.
  for i = 1, cost <= MOST_ENTRIES and cost or 0 do
    names[#names + 1] = i == 1 and member or member .. ':' .. i
    if #names == 1000 or i == cost then
      taken, names = taken + call('ZREM', state.key, unpack(names)), {}
    end
  end
  if state.debt > 0 and charged_at >= state.debt_from and charged_at <= state.debt_at then take_from_debt(state, cost - taken) end
  keep_clock(state)
end

local function give_back(state, policy, cost)
  local entries, debt = settle(state, policy)
  if state.moved then
    state.debt = max(0, state.debt - cost)
    return debt > 0
  end
  state.refunded = true
  local taken = min(cost, entries)
  hold_clock(state)
  -- The marker sorts last, and so does the clock.
  local last = 1 + (state.marker and 1 or 0) + (state.clock and 1 or 0)
  if taken > 0 then call('ZREMRANGEBYRANK', state.key, -last - taken + 1, -last) end
  local of_debt = debt > 0 and taken < cost and take_from_debt(state, cost - taken) or 0
  keep_clock(state)
  return taken + of_debt > 0
end

local function save(key, state)
  if state.refunded then return end
  local members = state.members
  if state.moved then
    call('DEL', key)
    state.marker = nil
  else
    call('ZREMRANGEBYSCORE', key, '-inf', spell(state.newest - state.kept))
    if state.gone > 0 then call('ZREMRANGEBYRANK', key, '0', spell(state.gone - 1)) end
  end
  -- Lua's stack bounds how many arguments one call can take.
  for first = 1, #members, 2000 do
    local last = min(first + 1999, #members)
    local missing = (last - first + 1) / 2 - call('ZADD', key, unpack(members, first, last))
    -- Two processes drew the same request id: the entry must count anyway.
    for i = 1, missing do call('ZADD', key, state.newest, members[first + 1] .. '~' .. i) end
  end
  if state.marker or state.debt > 0 then write_marker(key, state, state.newest) end
  call('PEXPIREAT', key, spell(state.newest + state.kept + (state.leeway or 0)))
end

-- Until when a charge at an instant matters: that long, what was held is remembered beyond its end.
local function lasts_until(policy, at)
  return at + policy[2]
end

return { arity = arity, load = load, look = look, charge = charge, refund = refund, give_back = give_back, save = save, lasts_until = lasts_until, renames = true }
