--[[ pool: a region's units of a counter in the global store (pool.ts)
  stored   string of eighteen doubles, in the order of FIELDS
  policy   capacity of the global counter
  A refusal without a wait means that nobody has asked the global store yet; a reset below 0 means that the next fetch is due. ]]
local arity, named = 1, false
local FORMAT, POOL_MS = '<' .. string.rep('d', 18), 60000
local FIELDS = { 'units', 'ends', 'used', 'low', 'renew', 'last', 'arrived', 'fetching', 'refused', 'refused_cost', 'retry_at',
  'reset_at', 'seq', 'name', 'told', 'asked', 'rate', 'share' }

local function load(key)
  local raw, state = call('GET', key), {}
  if not raw then
    for i = 1, #FIELDS do state[FIELDS[i]] = 0 end
    state.share = -1
    return state
  end
  local values = { struct.unpack(FORMAT, raw) }
  for i = 1, #FIELDS do state[FIELDS[i]] = values[i] end
  return state
end

local function left(state)
  return now < state.ends and now >= state.last and state.units or 0
end

-- beside: units that instances hold.
local function look(state, policy, cost, strict, beside)
  local units, current = left(state), now >= state.last
  local remaining = units - (beside or 0)
  local refused = current and now < state.refused and cost >= state.refused_cost
  local due = not (current and now < state.fetching) and not refused and (units <= state.low or now >= state.renew)
  local reset = max(0, state.reset_at - now)
  local hint = due and -1 - reset or reset
  if cost == 0 and not strict then return true, remaining, 0, hint, NONE end
  if cost > policy[1] then return false, remaining, NEVER, reset, COST end
  if remaining >= max(1, cost) then return true, remaining, 0, hint, NONE end
  if not refused then return false, remaining, 0, hint, LIMIT end
  return false, remaining, max(1, state.retry_at - now), reset, LIMIT
end

-- A clock that went back ends the units: it is no longer known how long ago they were fetched.
local function touch(state)
  if now < state.last then state.ends, state.fetching, state.refused = 0, 0, 0 end
  state.last = now
end

local function charge(state, _, cost)
  state.units = left(state) - cost
  state.used, state.arrived = state.used + cost, state.arrived + cost
  touch(state)
  local units, reset = left(state), max(0, state.reset_at - now)
  local due = now >= state.fetching and (units <= state.low or now >= state.renew)
  return units, due and -1 - reset or reset
end

-- What was reported to the global store stays used there.
local function refund(state, _, cost, charged_at)
  if charged_at <= state.asked or now < state.last or now >= state.ends then return end
  local back = min(cost, state.arrived)
  state.units, state.used, state.arrived = state.units + back, state.used - back, state.arrived - back
end

local function give_back()
  return false
end

local function save(key, state)
  local values = {}
  for i = 1, #FIELDS do values[i] = state[FIELDS[i]] end
  call('SET', key, struct.pack(FORMAT, unpack(values)), 'PX', POOL_MS)
end

-- Units of instances that nobody settled count as used, however late that is noticed.
local function lasts_until(_, at)
  return max(at, now) + POOL_MS
end

local function ends_of(state)
  return now >= state.last and state.ends or 0
end

return { arity = arity, load = load, look = look, charge = charge, refund = refund, give_back = give_back, save = save, lasts_until = lasts_until, ends_of = ends_of, touch = touch, fields = FIELDS }
