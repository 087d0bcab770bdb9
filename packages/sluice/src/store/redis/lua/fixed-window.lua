--[[ fixed-window: one check of one key (paper, Algorithm 2)
  stored   string of three doubles: count, last_ms (the last charge), born_ms (the first charge that can be refunded)
           The window is derived from last_ms instead of stored, so that a changed window keeps as much of the count as it can.
  policy   limit, window_ms, then the five calendar boundaries (all 0 for windows aligned to the epoch) ]]
local pack, unpack_string = struct.pack, struct.unpack
local arity, named = 7, false

local function load(key)
  local raw = call('GET', key)
  if not raw then return { count = 0, last = 0, born = 0 } end
  local count, last, born = unpack_string('<ddd', raw)
  return { count = count, last = last, born = born }
end

-- Start and end of the window that contains an instant. Calendar boundaries come from the caller, because Redis has no time zones; a caller
-- whose clock is so far off that they do not contain the present is asked to compute them again.
local function window_at(policy, at)
  if policy[3] == 0 then
    local start = at - at % policy[2]
    return start, start + policy[2]
  end
  if at < policy[3] or at >= policy[7] then error('CALENDAR ' .. now, 0) end
  for i = 4, 7 do
    if at < policy[i] then return policy[i - 1], policy[i] end
  end
end

-- The key's own clock. Ahead by more than a window means beyond the window after the present one. In the last of the calendar windows that
-- the caller sent, the next one is unknown.
local function clock_of(state, policy)
  if state.last <= now then return now end
  local _, finish = window_at(policy, now)
  local _, next_finish = window_at(policy, finish)
  if state.last < next_finish + (policy.ahead or 0) then return state.last end
  state.last, state.born, state.ends, state.moved = now, min(state.born, now), finish, true
  return now
end

local function settle(state, policy)
  local at = clock_of(state, policy)
  local start, finish = window_at(policy, at)
  return state.last >= start and state.count or 0, at, finish
end

local function look(state, policy, cost, strict)
  local count, _, finish = settle(state, policy)
  local remaining = policy[1] - count
  local reset = count > 0 and finish - now or 0
  if cost == 0 and not strict then return true, remaining, 0, reset, NONE end
  -- A deny list: no wait helps, whatever the cost.
  if policy[1] == 0 then return false, remaining, NEVER, reset, LIMIT end
  if cost > policy[1] then return false, remaining, NEVER, reset, COST end
  if count + cost > policy[1] then return false, remaining, finish - now, reset, LIMIT end
  return true, remaining, 0, reset, NONE
end

local function charge(state, policy, cost)
  local count, at, finish = settle(state, policy)
  if count == 0 then state.born = max(state.born, at) end
  state.count = count + cost
  state.last = at
  if state.count > MOST then state.count, state.born = MOST, at + 1 end
  state.ends = finish
  return policy[1] - state.count, finish - now
end

-- What was charged in an earlier window was given back when that window ended.
local function refund(state, _, cost, charged_at)
  if charged_at >= state.born then state.count = max(0, state.count - cost) end
end

local function give_back(state, policy, cost)
  local counted = settle(state, policy) > 0
  state.count = max(0, state.count - cost)
  return counted
end

local function save(key, state)
  local value = pack('<ddd', state.count, state.last, state.born)
  if state.ends then call('SET', key, value, 'PXAT', spell(max(state.ends, now + 1) + (state.leeway or 0))) else call('SET', key, value, 'KEEPTTL') end
end

-- Until when a charge at an instant matters: that long, what was held is remembered beyond its end.
local function lasts_until(policy, at)
  local _, finish = window_at(policy, at)
  return finish
end

return { arity = arity, load = load, look = look, charge = charge, refund = refund, give_back = give_back, save = save, lasts_until = lasts_until, ends_with_window = true }
