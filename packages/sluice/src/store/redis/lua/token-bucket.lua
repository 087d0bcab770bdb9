--[[ token-bucket: one check of one key (paper, Algorithm 1); gcra is the same body with other numbers, see gcra.ts
  stored   string of three doubles: deficit, last_ms, scale_ms; and four bytes: how long before last_ms the bucket was last full (age.lua);
           if units were given back since: a double: how much, in the unit of the deficit; a double: when that last named no charge, in ms
           (0: it always did); and for the latest, three doubles each: whose charge it was (at_ms, owed), and how much
           after a refill of another amount than 1: that amount, modulo 2^32, in four bytes after the age; if units were given back, in
           three doubles before the places (0, amount, 0), which an older version reads as a place with nobody behind it. An older version
           does not write it: a counter that seems to be refilled at another rate gives less back
           deficit counts the missing tokens in units of 1/scale_ms token, so that refill (amount units per ms) stays in
           whole numbers: no drift, however many operations
  policy   capacity, amount, scale_ms (amount/scale_ms is the rate, a reduced fraction) ]]
local pack, unpack_string = struct.pack, struct.unpack
local arity, named = 3, false
local MOST_BEYOND_CAPACITY, MOST_GAPS, AMOUNTS = 2 ^ 43, 8, 2 ^ 32
include('age')

local function load(key)
  local raw = call('GET', key)
  if not raw then return { deficit = 0, last = 0, scale = 0, amount = 1, born = 0, given = 0, nameless = 0, gaps = '' } end
  local deficit, last, scale = unpack_string('<ddd', raw)
  local given, nameless = #raw < 36 and 0 or unpack_string('<d', raw, 29), #raw < 44 and 0 or unpack_string('<d', raw, 37)
  local amount, gaps_at = #raw == 32 and unpack_string('<I4', raw, 29) or 1, 45
  if #raw >= 68 and unpack_string('<d', raw, 45) == 0 then amount, gaps_at = unpack_string('<d', raw, 53), 69 end
  return {
    deficit = deficit, last = last, scale = scale, amount = amount, born = last - read_age(raw, 25), given = given, nameless = nameless,
    gaps = string.sub(raw, gaps_at),
  }
end

-- Whether the rule has had this rate ever since the first charge that can be refunded.
local function is_refilled_by(state, policy)
  return state.scale == policy[3] and state.amount == policy[2] % AMOUNTS
end

local function wait_for(units, policy)
  return min(LONGEST, ceil(units / policy[2]))
end

local function deficit_at(state, policy, at)
  local deficit = state.deficit
  -- The rule's numbers changed: the missing tokens are the same, counted in another unit.
  if state.scale ~= policy[3] and deficit > 0 then deficit = ceil(deficit / state.scale * policy[3]) end
  return max(0, deficit - (at - state.last) * policy[2])
end

-- The deficit at the key's own clock, which never goes back: time that passes twice refills once.
local function settle(state, policy)
  local at = max(now, state.last)
  if at > now and at - now > wait_for(policy[1] * policy[3], policy) + (policy.ahead or 0) then
    -- The refill of the time that the clock goes back: see clockAhead in token-bucket.ts.
    if is_refilled_by(state, policy) then
      state.given, state.nameless = state.given + (at - now) * policy[2], max(state.nameless, at)
      state.born = min(state.born, now + 1)
    else
      state.born = now + 1
    end
    at, state.last, state.moved = now, now, true
    state.ends = now + wait_for(deficit_at(state, policy, now), policy)
  end
  return deficit_at(state, policy, at), at
end

local function look(state, policy, cost, strict)
  local deficit, at = settle(state, policy)
  local capacity, scale = policy[1] * policy[3], policy[3]
  local remaining = min(policy[1], floor((capacity - deficit) / scale))
  local reset = wait_for(deficit, policy) + (at - now)
  if deficit == 0 then reset = 0 end
  if cost == 0 and not strict then return true, remaining, 0, reset, NONE end
  if cost > policy[1] then return false, remaining, NEVER, reset, COST end
  local over = deficit + cost * scale - capacity
  if over > 0 then return false, remaining, wait_for(over, policy) + (at - now), reset, LIMIT end
  return true, remaining, 0, reset, NONE
end

local function charge(state, policy, cost)
  local deficit, at = settle(state, policy)
  -- As from a full bucket: what refill at another rate has paid for is unknown, even after the rule was edited back.
  if deficit == 0 or not is_refilled_by(state, policy) then state.born = max(state.born, at) end
  -- See keepGiven in token-bucket.ts for the reason.
  if deficit == 0 and state.nameless ~= at then state.given, state.nameless, state.gaps = 0, 0, '' end
  -- If the rule's rate has changed, the places in line are no longer known.
  if not is_refilled_by(state, policy) then state.gaps = '' end
  if state.scale ~= policy[3] and state.given > 0 then state.given = ceil(state.given / state.scale * policy[3]) end
  state.deficit = deficit + cost * policy[3]
  state.last = at
  local most = min(MOST, policy[1] + MOST_BEYOND_CAPACITY) * policy[3]
  if state.deficit > most then state.deficit, state.born = most, at + 1 end
  state.scale, state.amount = policy[3], policy[2] % AMOUNTS
  state.ends = at + wait_for(state.deficit, policy)
  return min(policy[1], floor((policy[1] * policy[3] - state.deficit) / policy[3])), state.ends - now
end

local function lower(state, units)
  local given = min(units, state.deficit)
  state.deficit, state.given = state.deficit - given, state.given + given
  return given
end

-- Whether one charge is certainly behind another in line: a place is known to within a millisecond of refill.
local function is_behind(at, owed, other_at, other_owed, policy)
  return owed - other_owed + (at - other_at) * policy[2] >= policy[2]
end

-- A lower bound on how much of a charge the refill has not paid for yet: see unpaidOf in token-bucket.ts.
local function unpaid_of(state, policy, whole_cost, charged_at, owed)
  local since = max(now, state.last) - charged_at
  -- Charged by a clock that was ahead: the real time is unknown.
  if since < 0 then return 0 end
  local from_front = state.given
  for i = 1, #state.gaps, 24 do
    local gap_at, gap_owed, units = unpack_string('<ddd', state.gaps, i)
    if is_behind(gap_at, gap_owed, charged_at, owed, policy) then from_front = from_front - units end
  end
  local refilled = since * policy[2]
  local of_whole = charged_at > state.nameless and whole_cost * state.scale or 0
  return max(0, owed - from_front - refilled, of_whole - refilled)
end

-- A gap at the end of the line has nobody behind it: the line ends where the gap began. Any charge behind it would be one unit or more.
local function without_end(state, policy, gaps)
  for g = 1, #gaps do
    local gap_at, gap_owed, units = unpack_string('<ddd', gaps[g])
    local behind = state.deficit + state.given - gap_owed + (state.last - gap_at) * policy[2]
    if behind >= 0 and behind < state.scale then
      state.given = state.given - units
      table.remove(gaps, g)
      return without_end(state, policy, gaps)
    end
  end
end

-- Gaps that the refill has reached are in front of everything unpaid, so they need no place. If there are too many, the foremost needs none
-- either.
local function leave_gap(state, policy, charged_at, owed, units)
  local at, gaps = max(now, state.last), {}
  for i = 1, #state.gaps, 24 do
    local gap_at, gap_owed = unpack_string('<dd', state.gaps, i)
    if gap_owed > (at - gap_at) * policy[2] then gaps[#gaps + 1] = string.sub(state.gaps, i, i + 23) end
  end
  gaps[#gaps + 1] = pack('<ddd', charged_at, owed, units)
  without_end(state, policy, gaps)
  if #gaps > MOST_GAPS then
    local front = 1
    for g = 2, #gaps do
      local front_at, front_owed = unpack_string('<dd', gaps[front])
      local gap_at, gap_owed = unpack_string('<dd', gaps[g])
      if is_behind(front_at, front_owed, gap_at, gap_owed, policy) then front = g end
    end
    table.remove(gaps, front)
  end
  state.gaps = table.concat(gaps)
end

-- owed: what the bucket lacked after the charge, plus what had been given back by then. whole_cost: the cost of the whole charge, if only a
-- part of it is given back. If the bucket was refilled at another rate, how much of the charge that paid for is unknown.
local function refund(state, policy, cost, charged_at, _, owed, whole_cost)
  if charged_at < state.born or not is_refilled_by(state, policy) then return end
  local whole = whole_cost or cost
  local units = lower(state, min(cost * state.scale, unpaid_of(state, policy, whole, charged_at, owed)))
  -- If a charge stands in part, its front was given back: the rest ends where the whole ended.
  if units > 0 then leave_gap(state, policy, charged_at, owed - (whole - cost) * state.scale, units) end
end

-- How much the bucket lacks now, plus what it has been given back so far. A hold keeps this for its refund.
local function owed(state, policy)
  return state.deficit + state.given + max(0, state.last - now) * policy[2]
end

local function give_back(state, policy, cost)
  local deficit, at = settle(state, policy)
  lower(state, cost * state.scale)
  if state.given > 0 then state.nameless = deficit_at(state, policy, at) == 0 and at or max(state.nameless, at) end
  return deficit > 0
end

local function save(key, state)
  local value = pack('<ddd', state.deficit, state.last, state.scale) .. spell_age(state.last - state.born)
  if state.given > 0 then
    local amount = state.amount == 1 and '' or pack('<ddd', 0, state.amount, 0)
    value = value .. pack('<dd', state.given, state.nameless) .. amount .. state.gaps
  elseif state.amount ~= 1 then
    value = value .. pack('<I4', state.amount)
  end
  if state.ends then call('SET', key, value, 'PXAT', spell(max(state.ends, now + 1) + (state.leeway or 0))) else call('SET', key, value, 'KEEPTTL') end
end

-- Until when a charge at an instant matters: that long, what was held is remembered beyond its end.
local function lasts_until(policy, at)
  return at + wait_for(policy[1] * policy[3], policy)
end

return { arity = arity, load = load, look = look, charge = charge, refund = refund, give_back = give_back, owed = owed, save = save, lasts_until = lasts_until }
