--[[ decide: a batch of requests of any kind, each all-or-nothing over its checks
  KEYS     counters and request-id records, each once
  ARGV     policies: how many; each: the letter of its stored form (keys.ts), then as many numbers as the algorithm takes
           requests: how many; each:
             shape: checks * 8 + (4 if entries are named) + (2 if it has an id record) + (1 to charge, 0 only looks)
             the entry id, if named; position of the record in KEYS and the receipt, if there is a record
             checks, each ((position in KEYS * 65536 + position of the policy) * 65536 + mode), negative if a cost other than 1 follows
             mode: 0 enforce, 1 shadow, n >= 2 the candidate of the check at position n - 1 of this request
  returns  now_ms, then for each request either
             for each check: reason * 4 + (2 if charged) + (1 if allowed), remaining, reset_after_ms,
             and retry_after_ms if refused; or
             one string: the record of a request id seen before
  Requests are decided in order; a key that several of them touch is read once and written once. Several things in one argument,
  and lists that are used again for every request: arguments and tables are what a script call costs. ]]
local REMEMBER_MS = '60000'
local states, owners, touched, refused, records = {}, {}, {}, {}, {}
local keys, policy_of, modes, costs = {}, {}, {}, {}
local allowed, remaining, retry, reset, reason = {}, {}, {}, {}, {}

local policies, at = {}, 2
for p = 1, tonumber(ARGV[1]) do
  local policy = { algorithm = algorithm(ARGV[at]) }
  for n = 1, policy.algorithm.arity do policy[n] = tonumber(ARGV[at + n]) end
  at = at + 1 + policy.algorithm.arity
  policies[p] = policy
end

-- Looks at every check, then charges all or none; leaves its numbers in `out`.
local function decide(count, charging, entry_id, out)
  local refusals, refuser = 0, 0
  for i = 1, count do
    local key, policy = keys[i], policy_of[i]
    local body = policy.algorithm
    local state = states[key]
    if not state then
      state = body.load(key)
      states[key], owners[key] = state, body
    end
    allowed[i], remaining[i], retry[i], reset[i], reason[i] = body.look(state, policy, costs[i])
    if not allowed[i] then
      refused[key] = reset[i]
      if modes[i] == 0 then refusals, refuser = refusals + 1, i end
    end
  end
  local n = #out
  for i = 1, count do
    local body = policy_of[i].algorithm
    -- A candidate is judged as if it stood in its live check's place: that check's refusal does not count against it. Places
    -- are the exception: a request that was refused does not run, so nobody would give them back.
    local passes = refusals == 0 or (modes[i] > 1 and refusals == 1 and refuser == modes[i] - 1 and not body.leased)
    local charged = charging and passes and allowed[i] and costs[i] > 0
    if charged then
      remaining[i], reset[i] = body.charge(states[keys[i]], policy_of[i], costs[i], entry_id)
      touched[keys[i]] = true
    end
    if allowed[i] then
      out[n + 1], out[n + 2], out[n + 3] = charged and 3 or 1, remaining[i], reset[i]
      n = n + 3
    else
      out[n + 1], out[n + 2], out[n + 3], out[n + 4] = reason[i] * 4, remaining[i], reset[i], retry[i]
      n = n + 4
    end
  end
end

-- Reads one request's checks into the lists.
local function read_checks(count)
  for i = 1, count do
    local packed = tonumber(ARGV[at])
    costs[i] = 1
    if packed < 0 then
      packed = -packed
      at = at + 1
      costs[i] = tonumber(ARGV[at])
    end
    at = at + 1
    modes[i] = packed % 65536
    packed = (packed - modes[i]) / 65536
    policy_of[i] = policies[packed % 65536]
    keys[i] = KEYS[floor(packed / 65536)]
  end
end

local reply = { now }
local requests = tonumber(ARGV[at])
at = at + 1
for _ = 1, requests do
  local shape = tonumber(ARGV[at])
  local charging, recorded, named = shape % 2 == 1, shape % 4 > 1, shape % 8 > 3
  local entry_id, record, receipt
  at = at + 1
  if named then
    entry_id = ARGV[at]
    at = at + 1
  end
  if recorded then
    record, receipt = tonumber(ARGV[at]), ARGV[at + 1]
    at = at + 2
  end
  local count = floor(shape / 8)
  read_checks(count)
  local seen = recorded and (records[record] or call('GET', KEYS[record]))
  if seen then
    reply[#reply + 1] = seen
  elseif recorded and charging then
    local out = {}
    decide(count, charging, entry_id, out)
    for i = 1, #out do
      reply[#reply + 1] = out[i]
      out[i] = string.format('%.0f', out[i])
    end
    records[record] = table.concat({ now, ' ', table.concat(out, ' '), '\n', receipt })
  else
    decide(count, charging, entry_id, reply)
  end
end

-- Written only now: an error before this line leaves nothing half-charged.
for key in pairs(touched) do owners[key].save(key, states[key]) end
for key, reset_after in pairs(refused) do
  if not touched[key] then outlive(key, reset_after) end
end
for record, text in pairs(records) do call('SET', KEYS[record], text, 'PX', REMEMBER_MS) end
return reply
