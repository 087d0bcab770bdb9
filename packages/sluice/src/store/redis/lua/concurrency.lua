--[[ concurrency: one check of one key, by leases (paper, Algorithm 5)
  stored   sorted set: score = when the lease expires, in ms, member = lease id, '.', ttl_ms; then ':', n for its nth place
           the term is in the name, so that a renewal can only be for the term that was granted
  policy   limit, ttl_ms ]]
local arity, named = 2, true

local function load(key)
  local latest = call('ZREVRANGE', key, '0', '0', 'WITHSCORES')
  local state = { key = key, latest = tonumber(latest[2]) or 0, last = latest[1], live = 0, added = 0, members = {} }
  if state.latest > now then state.live = call('ZCOUNT', key, '(' .. now, '+inf') end
  return state
end

local function is_ahead(member, ends)
  local term = tonumber(string.match(member, '%.(%d+)'))
  return term and ends - now > term, term
end

-- A lease that ends later than its term from now was taken by a clock that was ahead: it counts as taken now. The one that ends last shows
-- whether there are any. Written at once: it remains true even if the rest of the call fails.
local function settle(state, ttl)
  if state.latest - now <= ttl or not is_ahead(state.last, state.latest) then return end
  local latest, moved = 0, {}
  for i = 1, #state.members, 2 do latest = max(latest, tonumber(state.members[i])) end
  local live = call('ZRANGEBYSCORE', state.key, '(' .. now, '+inf', 'WITHSCORES')
  for i = 1, #live, 2 do
    local ends = tonumber(live[i + 1])
    local ahead, term = is_ahead(live[i], ends)
    if ahead then
      ends = now + term
      moved[#moved + 1], moved[#moved + 2] = spell(ends), live[i]
    end
    latest = max(latest, ends)
  end
  for first = 1, #moved, 2000 do call('ZADD', state.key, unpack(moved, first, min(first + 1999, #moved))) end
  call('PEXPIREAT', state.key, spell(latest))
  state.latest, state.last = latest, nil
end

local function look(state, policy, cost)
  settle(state, policy[2])
  local limit, count = policy[1], state.live + state.added
  local remaining = limit - count
  local reset = count > 0 and state.latest - now or 0
  if cost == 0 then return true, remaining, 0, reset, NONE end
  if cost > limit then return false, remaining, NEVER, reset, COST end
  if count + cost <= limit then return true, remaining, 0, reset, NONE end
  -- If nobody releases in time, a place is free when the first leases expire.
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

-- It is unknown whose places to free, so the oldest go: those that remain end last, so that no place is free before its holder is done or
-- its ttl is over.
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
