--[[ sliding-counter: one check of one key, APPROXIMATE: assumes that the previous cell's requests were evenly spread
  stored   string of four doubles: previous, current, last_ms (the last admission, from which the cells are derived), window_ms (of
           the last charge); and four bytes: how long before last_ms both cells were last empty (age.lua)
  policy   limit, window_ms ]]
local pack, unpack_string = struct.pack, struct.unpack
local arity, named = 2, false
include('age')

local function load(key)
  local raw = call('GET', key)
  if not raw then return { previous = 0, current = 0, last = 0, window = 0, born = 0 } end
  local previous, current, last, window = unpack_string('<dddd', raw)
  return { previous = previous, current = current, last = last, window = window, born = last - read_age(raw, 33) }
end

-- Counts are compared multiplied by the window: whole numbers, no rounding.
local function weighed(previous, current, elapsed, window)
  return previous * (window - elapsed) + current * window
end

local function until_empty(previous, current, elapsed, window)
  if current > 0 then return 2 * window - elapsed end
  if previous > 0 then return window - elapsed end
  return 0
end

-- The key's own clock.
local function clock_of(state, window)
  if state.last <= now then return now end
  if state.last - now <= window then return state.last end
  -- It is unknown where in the previous cell its requests arrived: what still counts of them counts from now on.
  state.current = ceil(weighed(state.previous, state.current, state.last % window, window) / window)
  -- How much is left of a weighted charge is unknown: none of them can be refunded.
  state.previous, state.last, state.window, state.born, state.moved = 0, now, window, now + 1, true
  state.ends = now + until_empty(0, state.current, now % window, window)
  return now
end

-- The two cells at the key's own clock, that clock, and its offset in the current cell.
local function settle(state, policy)
  local window = policy[2]
  local at = clock_of(state, window)
  local start, last_start = at - at % window, state.last - state.last % window
  if start == last_start then return state.previous, state.current, at, at - start end
  if start - last_start == window then return state.current, 0, at, at - start end
  return 0, 0, at, at - start
end

local function look(state, policy, cost, strict)
  local limit, window = policy[1], policy[2]
  local previous, current, at, elapsed = settle(state, policy)
  local ahead = at - now
  local remaining = min(limit, floor((limit * window - weighed(previous, current, elapsed, window)) / window))
  local reset = until_empty(previous, current, elapsed, window)
  if reset > 0 then reset = reset + ahead end
  if cost == 0 and not strict then return true, remaining, 0, reset, NONE end
  if cost > limit then return false, remaining, NEVER, reset, COST end
  if weighed(previous, current, elapsed, window) + cost * window <= limit * window then
    return true, remaining, 0, reset, NONE
  end
  if current + cost <= limit then
    -- Enough of the previous cell slides out before the current one ends.
    local leave = window - floor((limit - current - cost) * window / previous)
    return false, remaining, max(1, leave - elapsed) + ahead, reset, LIMIT
  end
  -- The current cell becomes the previous one, and then slides out.
  local leave = window - floor((limit - cost) * window / current)
  return false, remaining, window - elapsed + max(0, leave) + ahead, reset, LIMIT
end

local function charge(state, policy, cost)
  local limit, window = policy[1], policy[2]
  local previous, current, at, elapsed = settle(state, policy)
  -- As from an empty counter: the cell of a charge under another window is unknown, even after the rule was edited back.
  if previous + current == 0 or state.window ~= window then state.born = max(state.born, at) end
  current = current + cost
  if current > MOST then current, state.born = MOST, at + 1 end
  state.previous, state.current, state.last, state.window = previous, current, at, window
  state.ends = at + until_empty(previous, current, elapsed, window)
  return min(limit, floor((limit * window - weighed(previous, current, elapsed, window)) / window)), state.ends - now
end

-- Uses the cells as the last charge left them: see `refund` in sliding-counter.ts.
local function refund(state, policy, cost, charged_at)
  local window, start = policy[2], state.last - state.last % policy[2]
  -- Charged by a clock that was ahead: it counts with its weight from when the counter was moved to now.
  if window ~= state.window or charged_at < state.born or charged_at > state.last then return end
  if charged_at >= start then
    state.current = max(0, state.current - cost)
  elseif charged_at >= start - window then
    state.previous = max(0, state.previous - cost)
  end
end

local function give_back(state, policy, cost)
  local window = policy[2]
  local previous, current, at, elapsed = settle(state, policy)
  local of_current = min(cost, current)
  if state.window ~= window then state.born = max(state.born, at) end
  state.previous, state.current = max(0, previous - (cost - of_current)), current - of_current
  state.last, state.window = at, window
  state.ends = at + until_empty(state.previous, state.current, elapsed, window)
  return previous + current > 0
end

local function save(key, state)
  local value = pack('<dddd', state.previous, state.current, state.last, state.window) .. spell_age(state.last - state.born)
  if state.ends then call('SET', key, value, 'PXAT', spell(max(state.ends, now + 1))) else call('SET', key, value, 'KEEPTTL') end
end

return { arity = arity, load = load, look = look, charge = charge, refund = refund, give_back = give_back, save = save }
