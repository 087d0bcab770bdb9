--[[ decide-single: requests of one check each, all of one algorithm; the script for a letter contains only that algorithm
  Most requests are of this kind. A script that only creates what it uses costs a third of one that can do anything.
  KEYS     one counter per group; a group is a number of identical requests: same counter, policy and cost
  ARGV     policies: how many; then their numbers
           groups: for each, position of its policy, cost, how many requests, then (if the algorithm keeps ids) their entry ids;
           nothing at all if every group is one request of cost 1 under the first policy, without ids
  returns  now_us (the time in microseconds), then for each group: how many passed (negative for a bucket with units given back; how many
           follows); remaining, reset_after_ms of each that passed; and, if some did not,
           remaining, retry_after_ms, reset_after_ms, reason of those
  Identical requests are decided one after the other; once one is refused, so are the rest, because nothing changes any more. ]]
include('prelude')
include('algorithm')
local policies, at = {}, 2
for p = 1, tonumber(ARGV[1]) do
  local policy = {}
  for n = 1, arity do policy[n] = tonumber(ARGV[at + n - 1]) end
  at = at + arity
  policies[p] = policy
end
local plain = at > #ARGV

-- A single group needs no tables to look up its state.
local alone = #KEYS == 1
local states, touched, refused, reply = not alone and {}, not alone and {}, not alone and {}, { now_us }
for g = 1, #KEYS do
  local key, policy, cost, count = KEYS[g], policies[1], 1, 1
  if not plain then
    policy, cost, count = policies[tonumber(ARGV[at])], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    at = at + 3
  end
  local state = states and states[key]
  if not state then
    state = load(key)
    if states then states[key] = state end
  end
  local place, passed = #reply + 1, 0
  reply[place] = 0
  for i = 1, count do
    local allowed, remaining, retry, reset, reason = look(state, policy, cost)
    local n = #reply
    if not allowed then
      reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = remaining, retry, reset, reason
      if state.moved then
        if alone and passed == 0 then save(key, state) elseif not alone then touched[key] = state end
      elseif alone and passed == 0 then
        outlive(key, reset)
      elseif not alone then
        refused[key] = max(refused[key] or 0, reset)
      end
      break
    end
    remaining, reset = charge(state, policy, cost, named and ARGV[at + i - 1])
    reply[n + 1], reply[n + 2] = remaining, reset
    passed = i
  end
  reply[place] = passed
  if passed > 0 and state.given and state.given > 0 and state.given <= MOST then
    reply[place] = -passed
    table.insert(reply, place + 1, state.given)
  end
  if passed > 0 then
    if alone then save(key, state) else touched[key] = state end
  end
  if named then at = at + count end
end
-- Several groups are written only now: an error before this line leaves nothing half-charged.
if not alone then
  for key, state in pairs(touched) do save(key, state) end
  for key, reset in pairs(refused) do
    if not touched[key] then outlive(key, reset) end
  end
end
return reply
