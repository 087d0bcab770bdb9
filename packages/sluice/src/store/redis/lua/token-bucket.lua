--[[ token-bucket: one check of one key (paper, Algorithm 1); gcra is the same body with other numbers, see gcra.ts
  stored   string of three doubles: deficit, last_ms, scale_ms; and four bytes: how long before last_ms the bucket was last full (age.lua);
           where anything was given back since, a double: how much, in the unit of the deficit
           deficit counts the missing tokens in units of 1/scale_ms token, so that refill (amount units a ms) stays in
           whole numbers: no drift, however many operations
  policy   capacity, amount, scale_ms (amount/scale_ms is the rate, a reduced fraction) ]]
local pack, unpack_string = struct.pack, struct.unpack
local arity, named = 3, false
local MOST_BEYOND_CAPACITY = 2 ^ 43
include('age')

local function load(key)
  local raw = call('GET', key)
  if not raw then return { deficit = 0, last = 0, scale = 0, born = 0, given = 0 } end
  local deficit, last, scale = unpack_string('<ddd', raw)
  return { deficit = deficit, last = last, scale = scale, born = last - read_age(raw, 25), given = #raw < 36 and 0 or unpack_string('<d', raw, 29) }
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

-- The deficit at the key's own clock, which never goes back: time that is lived twice refills once.
local function settle(state, policy)
  local at = max(now, state.last)
  if at > now and at - now > wait_for(policy[1] * policy[3], policy) + (policy.ahead or 0) then
    at, state.last, state.born, state.moved = now, now, min(state.born, now), true
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
  if deficit == 0 then state.born, state.given = max(state.born, at), 0 end
  if state.scale ~= policy[3] and state.given > 0 then state.given = ceil(state.given / state.scale * policy[3]) end
  state.deficit = deficit + cost * policy[3]
  state.last = at
  local most = min(MOST, policy[1] + MOST_BEYOND_CAPACITY) * policy[3]
  if state.deficit > most then state.deficit, state.born = most, at + 1 end
  state.scale = policy[3]
  state.ends = at + wait_for(state.deficit, policy)
  return min(policy[1], floor((policy[1] * policy[3] - state.deficit) / policy[3])), state.ends - now
end

local function lower(state, units)
  local given = min(units, state.deficit)
  state.deficit, state.given = state.deficit - given, state.given + given
end

-- In the unit of the counter itself: the rule's numbers may have changed since the charge. What was charged before the bucket was
-- full, or reset, is not in it any more.
local function refund(state, _, cost, charged_at)
  if charged_at >= state.born then lower(state, cost * state.scale) end
end

-- How much the bucket lacks, and has been given back so far. A hold keeps it, for repay.
local function owed(state)
  return state.deficit + state.given
end

-- Gives back units that a reservation held and did not use. Since the charge the bucket may have been nearly full; what came later must
-- stay charged. So no more than it can have lacked at any time since: what it lacked then, less refill and all that was given back.
-- given: before the first part of this reservation was, for its parts came one behind the other.
local function repay(state, policy, cost, charged_at, owed_then, given)
  if charged_at < state.born or state.scale ~= policy[3] then return end
  local least = owed_then - given - (max(now, state.last) - charged_at) * policy[2]
  lower(state, min(cost * state.scale, max(0, least)))
end

local function give_back(state, policy, cost)
  local owes = settle(state, policy) > 0
  lower(state, cost * state.scale)
  return owes
end

local function save(key, state)
  local value = pack('<ddd', state.deficit, state.last, state.scale) .. spell_age(state.last - state.born)
  if state.given > 0 then value = value .. pack('<d', state.given) end
  if state.ends then call('SET', key, value, 'PXAT', spell(max(state.ends, now + 1) + (state.leeway or 0))) else call('SET', key, value, 'KEEPTTL') end
end

-- Until when a charge at an instant matters: until then, what was held is remembered beyond its end.
local function lasts_until(policy, at)
  return at + wait_for(policy[1] * policy[3], policy)
end

return { arity = arity, load = load, look = look, charge = charge, refund = refund, give_back = give_back, repay = repay, owed = owed, save = save, lasts_until = lasts_until }
