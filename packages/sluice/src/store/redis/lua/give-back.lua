--[[ give-back: gives units back to counters without naming a charge, never beyond an empty counter
  KEYS     counters, each once
  ARGV     for each key: letter, the policy's numbers, cost
  returns  now_us; 1 if any counter had something to give back, else 0 ]]
include('prelude')
include('algorithms')
local at, given = 1, 0
for k = 1, #KEYS do
  local key, body = KEYS[k], algorithm(ARGV[at])
  local policy = {}
  for n = 1, body.arity do policy[n] = tonumber(ARGV[at + n]) end
  local cost = tonumber(ARGV[at + body.arity + 1])
  at = at + body.arity + 2
  -- A counter that has expired is as good as new: there is nothing to give back.
  if call('EXISTS', key) == 1 then
    local state = body.load(key)
    if body.give_back(state, policy, cost) then given = 1 end
    body.save(key, state)
  end
end
return { now_us, given }
