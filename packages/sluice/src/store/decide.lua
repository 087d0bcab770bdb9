--[[ decide: a batch of requests of any kind, each all-or-nothing over its checks
  KEYS     counters and request-id records, each once
  ARGV     policies: how many; each: the letter of its stored form (keys.ts), then as many numbers as the algorithm takes
           requests: how many; each:
             id record (position in KEYS, 0 = none), receipt (only with an id record),
             charge (1) or only look (0), entry id for the forms that keep one, how many checks; each check:
               position in KEYS, position of the policy, mode, cost
             mode: 0 enforce, 1 shadow, n >= 2 the candidate of the check at position n - 1 of this request
  returns  now_ms, then for each request either
             six numbers a check: allowed, remaining, retry_after_ms, reset_after_ms, reason, charged; or
             one string: the record of a request id seen before
  Requests are decided in order; a key that several of them touch is read once and written once. ]]
local REMEMBER_MS = 60000
local states, owners, touched, refused, records = {}, {}, {}, {}, {}

local at = 0
local function take()
  at = at + 1
  return ARGV[at]
end
local function take_number()
  at = at + 1
  return tonumber(ARGV[at])
end

local policies = {}
for p = 1, take_number() do
  local policy = { algorithm = algorithm(take()) }
  for n = 1, policy.algorithm.arity do policy[n] = take_number() end
  policies[p] = policy
end

-- Looks at every check, then charges all or none; leaves six numbers a check in `out`.
local function decide(checks, charging, entry_id, out)
  local refusals, refuser = 0, 0
  for i = 1, #checks do
    local check = checks[i]
    local key, policy = check.key, check.policy
    if not states[key] then states[key], owners[key] = policy.algorithm.load(key), policy.algorithm end
    check.allowed, check.remaining, check.retry, check.reset, check.reason = policy.algorithm.look(states[key], policy, check.cost)
    if not check.allowed then refused[key] = check.reset end
    if check.mode == 0 and not check.allowed then refusals, refuser = refusals + 1, i end
  end
  for i = 1, #checks do
    local check = checks[i]
    local policy = check.policy
    -- A candidate is judged as if it stood in its live check's place: that check's refusal does not count against it. Places
    -- are the exception: a request that was refused does not run, so nobody would give them back.
    local passes = refusals == 0
      or (check.mode > 1 and refusals == 1 and refuser == check.mode - 1 and not policy.algorithm.leased)
    local charged = charging and passes and check.allowed and check.cost > 0
    if charged then
      check.remaining, check.reset = policy.algorithm.charge(states[check.key], policy, check.cost, entry_id)
      touched[check.key] = true
    end
    local n = #out
    out[n + 1], out[n + 2], out[n + 3] = check.allowed and 1 or 0, check.remaining, check.retry
    out[n + 4], out[n + 5], out[n + 6] = check.reset, check.reason, charged and 1 or 0
  end
end

local reply = { now }
for _ = 1, take_number() do
  local record, receipt = take_number(), nil
  if record > 0 then receipt = take() end
  local charging, entry_id, checks = take() == '1', take(), {}
  for i = 1, take_number() do
    checks[i] = { key = KEYS[take_number()], policy = policies[take_number()], mode = take_number(), cost = take_number() }
  end
  local seen = record > 0 and (records[record] or call('GET', KEYS[record]))
  if seen then
    reply[#reply + 1] = seen
  else
    local out = {}
    decide(checks, charging, entry_id, out)
    for i = 1, #out do reply[#reply + 1] = out[i] end
    if record > 0 and charging then
      for i = 1, #out do out[i] = string.format('%.0f', out[i]) end
      records[record] = table.concat({ now, ' ', table.concat(out, ' '), '\n', receipt })
    end
  end
end

-- Written only now: an error before this line leaves nothing half-charged.
for key in pairs(touched) do owners[key].save(key, states[key]) end
for key, reset in pairs(refused) do
  if not touched[key] then outlive(key, reset) end
end
for record, text in pairs(records) do call('SET', KEYS[record], text, 'PX', REMEMBER_MS) end
return reply
