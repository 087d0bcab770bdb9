--[[ turns: decide, for requests with a rule that has maxWait: what does not fit now is charged at the instant at which it fits
  KEYS     as decide; and the vacant turns of counters
  ARGV     as decide, but: a policy ends with how far away a turn may be, in ms (0: none is handed out), and if one may, with how
           far away a turn this caller accepts; a check of a policy with turns ends with the position of its vacant turns in KEYS (0: out
           of reach)
  returns  as decide; the numbers of a check with turns end with how long until its turn comes, in ms
  stored   vacant turns: sorted set beside the counter: score = instant in ms, member = cost:name of the charge
  turns.ts explains the concept. Each part below is inserted into decide.lua at the include of its name. ]]
-- held units
local vacant_keys = {}

-- The latest instant at which the counter holds a charge. The turns of a fixed window all come at its start.
local function tail_of(state, body, policy)
  if not body.ends_with_window then return state.newest or state.last end
  return state.last > 0 and body.lasts_until(policy, state.last) - policy[2] or 0
end

local function read_turns(found)
  local turns = {}
  for i = 1, #found, 2 do
    local units, name = string.match(found[i], '^(%d+):(.+)$')
    turns[#turns + 1] = { at = tonumber(found[i + 1]), units = tonumber(units), name = name, member = found[i] }
  end
  return turns
end

local function seen_vacant(key)
  local turns_key, vacant, passed = vacant_keys[key], {}, {}
  if not turns_key then return vacant, passed end
  local turns = read_turns(call('ZRANGE', turns_key, '0', '63', 'WITHSCORES'))
  for i = 1, #turns do
    local list = turns[i].at <= now and passed or vacant
    list[#list + 1] = turns[i]
  end
  -- Those to come may be behind more passed ones than are settled at once.
  if #passed > 0 then
    vacant = read_turns(call('ZRANGEBYSCORE', turns_key, '(' .. spell(now), '+inf', 'WITHSCORES', 'LIMIT', '0', '64'))
  end
  return vacant, passed
end

-- Entries of a sorted set have names: those of the vacant turn get the new owner's. A charge may have turned them into debt.
local function rename(key, turn, cost, member)
  for i = 1, cost do
    local place = turn.units - cost + i
    if call('ZREM', key, place == 1 and turn.name or turn.name .. ':' .. place) == 1 then
      call('ZADD', key, spell(turn.at), i == 1 and member or member .. ':' .. i)
    end
  end
end

-- Wraps the algorithm of a policy with turns: the same, but a request may be charged later than now.
local function pacing(body, policy)
  local most = policy.waits

  local function load(key)
    local vacant, passed = seen_vacant(key)
    local state = body.load(key)
    for i = 1, #passed do
      call('ZREM', vacant_keys[key], passed[i].member)
      if not state.deficit and call('EXISTS', key) == 1 then
        body.refund(state, policy, passed[i].units, passed[i].at, passed[i].name)
        body.save(key, state)
        state = body.load(key)
      end
    end
    state.vacant = vacant
    return state
  end

  local function look(state, _, cost, strict)
    local allowed, remaining, retry, reset, reason = body.look(state, policy, cost, strict)
    state.turn = nil
    local is_too_early = (reason == LIMIT or reason == INTERVAL) and retry < NEVER
    local ahead = max(0, tail_of(state, body, policy) - now)
    local wait = allowed and ahead or retry
    -- What is left belongs to those already waiting.
    if ahead > 0 then remaining = min(remaining, 0) end
    if cost == 0 or wait == 0 or not allowed and not is_too_early then return allowed, remaining, retry, reset, reason end
    local turn = { at = now + wait }
    for i = 1, #state.vacant do
      if state.vacant[i].units >= cost then
        if state.vacant[i].at < turn.at then turn = { at = state.vacant[i].at, vacant = state.vacant[i] } end
        break
      end
    end
    wait = turn.at - now
    if wait > most then return false, min(remaining, 0), wait - most, reset, allowed and LIMIT or reason end
    state.turn = turn
    return true, min(remaining, 0), 0, reset, NONE
  end

  local function charge(state, _, cost, member)
    local turn = state.turn
    if not turn then
      state.changed = true
      return body.charge(state, policy, cost, member)
    end
    if turn.vacant then
      turn.cost, turn.member = cost, member
      local _, remaining, _, reset = body.look(state, policy, 0)
      return min(remaining, 0), reset
    end
    local present = now
    -- What was counted at another instant must be counted again.
    now, state.window, state.changed = turn.at, nil, true
    local remaining, reset = body.charge(state, policy, cost, member)
    now = present
    return min(remaining, 0), reset + turn.at - now
  end

  local function save(key, state)
    -- Redis deletes a key whose expiry has passed meanwhile; the next request of this call reads it again.
    state.leeway = 1000
    if state.changed or state.moved then body.save(key, state) end
    local turn = state.turn
    if not turn or not turn.vacant or not turn.member then return end
    local taken, left = turn.vacant, turn.vacant.units - turn.cost
    call('ZREM', vacant_keys[key], taken.member)
    if left > 0 then
      call('ZADD', vacant_keys[key], spell(taken.at), spell(left) .. ':' .. taken.name)
      outlive(vacant_keys[key], body.lasts_until(policy, taken.at) - now + 1000)
    end
    if body.renames then rename(key, taken, turn.cost, turn.member) end
  end

  return { arity = body.arity, load = load, look = look, charge = charge, save = save, body = body }
end

-- term of a policy
local ahead = tonumber(ARGV[at])
at = at + 1
if ahead > 0 then
  policy.ahead, policy.waits = ahead, tonumber(ARGV[at])
  at = at + 1
  policy.algorithm = pacing(policy.algorithm, policy)
end

-- fetch of a check
if policy_of[i].ahead then
  vacant_keys[keys[i]] = KEYS[tonumber(ARGV[at])]
  at = at + 1
end

-- grants of a check
if policy_of[i].ahead then
  local turn = allowed[i] and states[keys[i]].turn
  out[n + 1] = turn and turn.at - now or 0
  n = n + 1
end

-- end of a request
for i = 1, count do
  if policy_of[i].ahead and states[keys[i]] and not touched[keys[i]] then states[keys[i]].turn = nil end
end
for key in pairs(touched) do
  -- A packed log gives everything that one call adds the same timestamp: the next request must find what this one wrote.
  if states[key].vacant then
    owners[key].save(key, states[key])
    states[key], touched[key], refused[key] = nil, nil, nil
  end
end
