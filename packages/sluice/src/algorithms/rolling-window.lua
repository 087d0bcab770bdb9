--[[ rolling-window, storage sorted-set: one check of one key, exact (paper, Algorithm 4)
  stored   sorted set: score = arrival in ms, member = request id, so that two arrivals in one millisecond count twice;
           a request of cost n has n members
  policy   limit, window_ms, min_interval_ms
  Clean-up happens with the insert: a refused request writes nothing, and so costs the replicas nothing. ]]
local arity, named = 3, true

local function load(key)
  local newest = call('ZREVRANGE', key, '0', '0', 'WITHSCORES')
  return { key = key, newest = tonumber(newest[2]) or 0, stored = newest[2] ~= nil, added = 0, members = {} }
end

-- Live entries at the key's own clock, which never goes back. Counted once per call and window.
local function settle(state, policy)
  local at = max(now, state.newest)
  if state.window ~= policy[2] then
    state.window = policy[2]
    state.live = state.stored and call('ZCOUNT', state.key, '(' .. (at - policy[2]), '+inf') or 0
  end
  return state.live + state.added, at
end

-- When the n-th oldest live entry leaves the window.
local function leaves_at(state, policy, n, at)
  if n > state.live then return at + policy[2] end
  local entry = call('ZRANGEBYSCORE', state.key, '(' .. (at - policy[2]), '+inf', 'WITHSCORES', 'LIMIT', spell(n - 1), '1')
  return entry[2] + policy[2]
end

local function look(state, policy, cost)
  local count, at = settle(state, policy)
  local limit = policy[1]
  local remaining = max(0, limit - count)
  local reset = count > 0 and state.newest + policy[2] - now or 0
  if cost == 0 then return true, remaining, 0, reset, NONE end
  if cost > limit then return false, remaining, NEVER, reset, COST end
  local wait, reason = 0, NONE
  if count > 0 and at - state.newest < policy[3] then
    wait, reason = state.newest + policy[3] - now, INTERVAL
  end
  if count + cost > limit then
    wait, reason = max(wait, leaves_at(state, policy, count + cost - limit, at) - now), LIMIT
  end
  return reason == NONE, remaining, wait, reset, reason
end

local function charge(state, policy, cost, member)
  local count, at = settle(state, policy)
  local members = state.members
  for i = 1, cost do
    members[#members + 1] = spell(at)
    members[#members + 1] = i == 1 and member or member .. ':' .. i
  end
  state.added = state.added + cost
  state.newest = at
  -- A look under other numbers may follow in the same call: entries leave by the window that was charged, the longest if several.
  state.kept = max(state.kept or 0, policy[2])
  return max(0, policy[1] - count - cost), at + policy[2] - now
end

local function refund(state, _, cost, _, member)
  for i = 1, cost do call('ZREM', state.key, i == 1 and member or member .. ':' .. i) end
  state.refunded = true
end

local function give_back(state, policy, cost)
  state.refunded = true
  local taken = min(cost, (settle(state, policy)))
  return taken > 0 and call('ZREMRANGEBYRANK', state.key, -taken, -1) > 0
end

local function save(key, state)
  if state.refunded then return end
  local members = state.members
  call('ZREMRANGEBYSCORE', key, '-inf', spell(state.newest - state.kept))
  -- Lua's stack bounds how many arguments one call can take.
  for first = 1, #members, 2000 do
    local last = min(first + 1999, #members)
    local missing = (last - first + 1) / 2 - call('ZADD', key, unpack(members, first, last))
    -- Two processes drew the same request id: the entry must count all the same.
    for i = 1, missing do call('ZADD', key, state.newest, members[first + 1] .. '~' .. i) end
  end
  call('PEXPIREAT', key, spell(state.newest + state.kept))
end

return { arity = arity, load = load, look = look, charge = charge, refund = refund, give_back = give_back, save = save }
