--[[ token-bucket: one check of one key (paper, Algorithm 1); gcra is the same body with other numbers, see gcra.ts
  stored   string of three doubles: deficit, last_ms, scale_ms
           deficit counts the missing tokens in units of 1/scale_ms token, so that refill (amount units a ms) stays in
           whole numbers: no drift, however many operations
  policy   capacity, amount, scale_ms (amount/scale_ms is the rate, a reduced fraction) ]]
local pack, unpack_string = struct.pack, struct.unpack
local arity, named = 3, false

local function load(key)
  local raw = call('GET', key)
  if not raw then return { deficit = 0, last = 0, scale = 0 } end
  local deficit, last, scale = unpack_string('<ddd', raw)
  return { deficit = deficit, last = last, scale = scale }
end

-- The deficit at the key's own clock, which never goes back: time that is lived twice refills once.
local function settle(state, policy)
  local at = max(now, state.last)
  local deficit = state.deficit
  -- The rule's numbers changed: the missing tokens are the same, counted in another unit.
  if state.scale ~= policy[3] and deficit > 0 then deficit = ceil(deficit / state.scale * policy[3]) end
  return max(0, deficit - (at - state.last) * policy[2]), at
end

local function look(state, policy, cost)
  local deficit, at = settle(state, policy)
  local capacity, amount, scale = policy[1] * policy[3], policy[2], policy[3]
  local remaining = max(0, floor((capacity - deficit) / scale))
  local reset = ceil(deficit / amount) + (at - now)
  if deficit == 0 then reset = 0 end
  if cost == 0 then return true, remaining, 0, reset, NONE end
  if cost > policy[1] then return false, remaining, NEVER, reset, COST end
  local over = deficit + cost * scale - capacity
  if over > 0 then return false, remaining, ceil(over / amount) + (at - now), reset, LIMIT end
  return true, remaining, 0, reset, NONE
end

local function charge(state, policy, cost)
  local deficit, at = settle(state, policy)
  state.deficit = deficit + cost * policy[3]
  state.last = at
  state.scale = policy[3]
  state.ends = at + ceil(state.deficit / policy[2])
  return max(0, floor((policy[1] * policy[3] - state.deficit) / policy[3])), state.ends - now
end

-- In the unit of the counter itself: the rule's numbers may have changed since the charge.
local function refund(state, _, cost)
  state.deficit = max(0, state.deficit - cost * state.scale)
end

local function give_back(state, policy, cost)
  local owed = settle(state, policy) > 0
  state.deficit = max(0, state.deficit - cost * state.scale)
  return owed
end

local function save(key, state)
  local value = pack('<ddd', state.deficit, state.last, state.scale)
  if state.ends then call('SET', key, value, 'PXAT', spell(max(state.ends, now + 1))) else call('SET', key, value, 'KEEPTTL') end
end

return { arity = arity, load = load, look = look, charge = charge, refund = refund, give_back = give_back, save = save }
