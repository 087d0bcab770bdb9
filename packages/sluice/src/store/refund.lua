--[[ refund: gives back what one decision charged, once, never above the limit
  KEYS     the request-id record, if there is one; then the counters
  ARGV     1 if KEYS[1] is a record, else 0
           how many charges; each: position in KEYS, letter, the policy's numbers, cost, charged_at_ms, request id
  returns  now_ms; 1 given back, or 0 not (the record is gone, or says that it happened before) ]]
local at = 3
local function take()
  at = at + 1
  return ARGV[at - 1]
end

local record
if ARGV[1] == '1' then
  record = call('GET', KEYS[1])
  if not record or string.sub(record, 1, 1) == 'R' then return { now, 0 } end
end

for _ = 1, tonumber(ARGV[2]) do
  local key, body = KEYS[tonumber(take())], algorithm(take())
  local policy = {}
  for n = 1, body.arity do policy[n] = tonumber(take()) end
  local cost, charged_at, request_id = tonumber(take()), tonumber(take()), take()
  -- A counter that has expired is as good as new: there is nothing to give back.
  if call('EXISTS', key) == 1 then
    local state = body.load(key)
    body.refund(state, policy, cost, charged_at, request_id)
    body.save(key, state)
  end
end
if record then call('SET', KEYS[1], 'R' .. record, 'KEEPTTL') end
return { now, 1 }
