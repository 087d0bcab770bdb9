--[[ concurrency: one check of one key, by leases (paper, Algorithm 5)
  stored   sorted set: score = when the lease ends by itself, in ms, member = lease id, '.', ttl_ms; then ':', n for its nth place
           the term is in the name, so that a renewal can only be for the term that was granted
  policy   limit, ttl_ms ]]
local arity, named = 2, true

local function load(key)
  local latest = call('ZREVRANGE', key, '0', '0', 'WITHSCORES')
  local state = { key = key, latest = tonumber(latest[2]) or 0, live = 0, added = 0, members = {} }
  if state.latest > now then state.live = call('ZCOUNT', key, '(' .. now, '+inf') end
  return state
end

local function look(state, policy, cost)
  local limit, count = policy[1], state.live + state.added
  local remaining = limit - count
  local reset = count > 0 and state.latest - now or 0
  if cost == 0 then return true, remaining, 0, reset, NONE end
  if cost > limit then return false, remaining, NEVER, reset, COST end
  if count + cost <= limit then return true, remaining, 0, reset, NONE end
  -- Nobody may release in time: then a place is free when the first leases end by themselves.
  local n = count + cost - limit
  local ends = now + policy[2]
  if n <= state.live then
    ends = call('ZRANGEBYSCORE', state.key, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', spell(n - 1), '1')[2]
  end
  return false, remaining, ends - now, reset, CONCURRENCY
end

local function name_of(lease, policy)
  return lease .. '.' .. format('%d', policy[2])
end

local function charge(state, policy, cost, lease)
  local members, ends, name = state.members, now + policy[2], name_of(lease, policy)
  for i = 1, cost do
    members[#members + 1] = spell(ends)
    members[#members + 1] = i == 1 and name or name .. ':' .. i
  end
  state.added = state.added + cost
  state.latest = max(state.latest, ends)
  return policy[1] - state.live - state.added, state.latest - now
end

local function refund(state, policy, cost, _, lease)
  local name = name_of(lease, policy)
  for i = 1, cost do call('ZREM', state.key, i == 1 and name or name .. ':' .. i) end
  state.refunded = true
end

-- Whose places end is not known. The oldest go: what stays then ends latest, so that no place is free before its holder is
-- done or its ttl is over.
local function give_back(state, _, cost)
  state.refunded = true
  call('ZREMRANGEBYSCORE', state.key, '-inf', now)
  return call('ZREMRANGEBYRANK', state.key, 0, cost - 1) > 0
end

local function save(key, state)
  if state.refunded then return end
  local members = state.members
  call('ZREMRANGEBYSCORE', key, '-inf', spell(now))
  for first = 1, #members, 2000 do
    call('ZADD', key, unpack(members, first, min(first + 1999, #members)))
  end
  call('PEXPIREAT', key, spell(state.latest))
end

return { arity = arity, leased = true, load = load, look = look, charge = charge, refund = refund, give_back = give_back, save = save }
