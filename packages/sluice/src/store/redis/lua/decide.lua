--[[ decide: a batch of requests of any kind, each all-or-nothing over its checks
  KEYS     counters and request-id records, each once
  ARGV     policies: how many; each: the letter of its stored form (keys.ts), then as many numbers as the algorithm takes
           requests: how many; when they were sent, in ms of this server's clock, at the earliest; each:
             shape: checks * 32 + (16 if units are held until it is settled) + (8 if it is a part of a request) + (4 if entries are named)
               + (2 if it has an id record) + (1 to charge, 0 only looks)
             the entry id, if named; position of the record in KEYS, fingerprint and receipt, if there is a record;
             position of the hold in KEYS, its digest and how long it lives, in ms, if units are held
             checks, each ((position in KEYS * 65536 + position of the policy) * 65536 + mode), negative if a cost other than 1 follows;
             a cost below 0 is a charge of -cost - 1 units: counted in full, then reported as refused if the counter is past its limit
             mode: 0 enforce, 1 shadow, n >= 2 the candidate of the check at position n - 1 of this request; plus 32768 if it has a block:
             then its position in KEYS * 16 + how many lengths, and the lengths in ms follow; plus 16384 if its units are held
  returns  now_us (the time in microseconds), then for each request either
             for each check: reason * 4 + (2 if charged) + (1 if allowed), remaining, reset_after_ms,
             and retry_after_ms if refused; if units had been given back to a charged bucket, the first code is 64 higher,
             and how many follows, one number per check, in the unit of the bucket; or
             one string: the record of a request id seen before, or '!\n' if that id was sent for another request,
             or '<\n' if it was sent before the id's record was dropped: nothing was charged
  fetch.lua is this script with held units, turns.lua with turns in the future: they fill the includes that are empty here.
  Requests are decided in order; a key that several of them touch is read once and written once. Arguments pack several values, and lists
  are reused for every request: arguments and tables are what a script call costs. ]]
include('prelude')
include('algorithms')
include('id-record')
include('block-state')
include('hold')
local states, owners, touched, refused, records, is_new = {}, {}, {}, {}, {}, {}
local keys, policy_of, modes, costs, charges, blocks, lengths = {}, {}, {}, {}, {}, {}, {}
local block_states, begun = {}, {}
local are_held, charged_units, holds = {}, {}, {}
local allowed, remaining, retry, reset, reason = {}, {}, {}, {}, {}
local given_back, any_given = {}, false

local function state_of(key, body)
  local state = states[key]
  if not state then
    state = body.load(key)
    states[key], owners[key] = state, body
  end
  return state
end

include('held units')

local policies, at = {}, 2
for p = 1, tonumber(ARGV[1]) do
  local policy = { algorithm = algorithm(ARGV[at]) }
  for n = 1, policy.algorithm.arity do policy[n] = tonumber(ARGV[at + n]) end
  at = at + 1 + policy.algorithm.arity
  include('term of a policy')
  policies[p] = policy
end

-- The verdict of a charge is that of a look after it: refused if the counter is past its limit.
local function charge_in_full(i, charging, entry_id)
  local key, policy = keys[i], policy_of[i]
  local body = policy.algorithm
  local state = state_of(key, body)
  if charging and costs[i] > 0 then
    body.charge(state, policy, costs[i], entry_id)
    touched[key] = true
  end
  allowed[i], remaining[i], retry[i], reset[i], reason[i] = body.look(state, policy, 0, true)
  if not allowed[i] then refused[key] = max(refused[key] or 0, reset[i]) end
  if state.moved then touched[key] = true end
end

-- Refuses a key that is blocked; begins a block if its traffic is refused.
local function apply_block(i, charging)
  local key = blocks[i]
  local state = block_states[key] or load_block(key)
  block_states[key] = state
  if state.moved then begun[key] = true end
  local left = block_left(state)
  if left > 0 then
    if costs[i] == 0 then return end
    allowed[i], remaining[i], reason[i] = false, min(remaining[i], 0), BLOCKED
  elseif allowed[i] or reason[i] ~= LIMIT and reason[i] ~= INTERVAL then
    return
  else
    left = next_block(state, lengths[i])
    if charging then
      begin_block(state, lengths[i])
      begun[key] = true
    end
  end
  retry[i], reset[i] = max(retry[i], left), max(reset[i], left)
end

-- Makes the charges, looks at every other check, then charges all of these or none; appends its numbers to `out`.
local function decide(count, any_charge, charging, entry_id, out)
  local refusals, refuser = 0, 0
  any_given = false
  include('settlements')
  if any_charge then
    for i = 1, count do
      if charges[i] then
        charge_in_full(i, charging, entry_id)
        if not allowed[i] and modes[i] == 0 then refusals, refuser = refusals + 1, i end
      end
    end
  end
  for i = 1, count do
    if not charges[i] then
      local key, policy = keys[i], policy_of[i]
      local body = policy.algorithm
      local state = state_of(key, body)
      allowed[i], remaining[i], retry[i], reset[i], reason[i] = body.look(state, policy, costs[i])
      if state.moved then touched[key] = true end
      if not allowed[i] then refused[key] = max(refused[key] or 0, reset[i]) end
      if blocks[i] then apply_block(i, charging) end
      if not allowed[i] then
        if modes[i] == 0 then refusals, refuser = refusals + 1, i end
      end
    end
  end
  local n = #out
  for i = 1, count do
    local body = policy_of[i].algorithm
    -- A candidate is decided as if it replaced its live check, so that check's refusal does not count against it. Concurrency is the
    -- exception: a refused request does not run, so nobody would release the places.
    local passes = refusals == 0 or (modes[i] > 1 and refusals == 1 and refuser == modes[i] - 1 and not body.leased)
    local charged = charging and costs[i] > 0 and (charges[i] or passes and allowed[i])
    charged_units[i] = charged and costs[i] or 0
    if charged and not charges[i] then
      remaining[i], reset[i] = body.charge(states[keys[i]], policy_of[i], costs[i], entry_id)
      touched[keys[i]] = true
    end
    given_back[i] = charged and states[keys[i]].given or 0
    -- Omitted if it is beyond what a number holds exactly.
    if given_back[i] > MOST then given_back[i] = 0 end
    if given_back[i] > 0 then any_given = true end
    if allowed[i] then
      out[n + 1], out[n + 2], out[n + 3] = charged and 3 or 1, remaining[i], reset[i]
      n = n + 3
    else
      out[n + 1], out[n + 2], out[n + 3], out[n + 4] = reason[i] * 4 + (charged and 2 or 0), remaining[i], reset[i], retry[i]
      n = n + 4
    end
    include('grants of a check')
  end
  return refusals == 0
end

-- For refunds of this request. Appended to its numbers, where an older version ignores them in a record.
local function add_given(count, out)
  for i = 1, count do out[#out + 1] = given_back[i] end
end

-- What was held is remembered until it is settled.
local function open_hold(hold, count, entry_id)
  local units, owed = {}, {}
  for i = 1, count do
    if are_held[i] then
      local state = states[keys[i]]
      units[#units + 1] = charged_units[i]
      local body = policy_of[i].algorithm
      body = body.body or body
      owed[#owed + 1] = body.owed and body.owed(state, policy_of[i]) or 0
    end
  end
  hold.rows = { { entry = entry_id, at = now, units = units, owed = owed } }
  holds[#holds + 1] = hold
end

-- Reads one request's checks into the lists; returns whether any of them is a charge.
local function read_checks(count)
  local any_charge = false
  for i = 1, count do
    local packed = tonumber(ARGV[at])
    costs[i], charges[i] = 1, false
    if packed < 0 then
      packed = -packed
      at = at + 1
      costs[i] = tonumber(ARGV[at])
      if costs[i] < 0 then costs[i], charges[i], any_charge = -1 - costs[i], true, true end
    end
    at = at + 1
    local mode = packed % 65536
    packed = (packed - mode) / 65536
    blocks[i] = false
    local has_block = mode >= 32768
    if has_block then mode = mode - 32768 end
    are_held[i] = mode >= 16384
    if are_held[i] then mode = mode - 16384 end
    if has_block then
      local block = tonumber(ARGV[at])
      blocks[i], lengths[i] = KEYS[floor(block / 16)], {}
      for n = 1, block % 16 do lengths[i][n] = tonumber(ARGV[at + n]) end
      at = at + 1 + block % 16
    end
    modes[i] = mode
    policy_of[i] = policies[packed % 65536]
    keys[i] = KEYS[floor(packed / 65536)]
    include('fetch of a check')
  end
  return any_charge
end

local reply = { now_us }
local requests, sent_at = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
at = at + 2
for _ = 1, requests do
  local shape = tonumber(ARGV[at])
  local charging, recorded, named, is_part = shape % 2 == 1, shape % 4 > 1, shape % 8 > 3, shape % 16 > 7
  local entry_id, record, fingerprint, receipt, hold
  at = at + 1
  if named then
    entry_id = ARGV[at]
    at = at + 1
  end
  if recorded then
    record, fingerprint, receipt = tonumber(ARGV[at]), ARGV[at + 1], ARGV[at + 2]
    at = at + 3
  end
  if shape % 32 > 15 then
    hold = { key = KEYS[tonumber(ARGV[at])], digest = ARGV[at + 1], ends = now + tonumber(ARGV[at + 2]) }
    at = at + 3
  end
  local count = floor(shape / 32)
  local any_charge = read_checks(count)
  local seen = recorded and (records[record] or call('GET', KEYS[record]))
  local dropped_at = seen and read_tombstone(seen)
  if dropped_at and charging and is_late(dropped_at, sent_at) then
    reply[#reply + 1] = LATE
  elseif seen and not dropped_at then
    local alike = read_record(seen) == fingerprint
    reply[#reply + 1] = alike and seen or CONFLICT
    -- Other parts of this request may fail or refuse: what it relies on must be known when its first attempt is undone.
    if alike and is_part and charging then records[record] = claim(seen, entry_id) end
  elseif recorded and charging then
    local out, first = {}, #reply + 1
    if decide(count, any_charge, charging, entry_id, out) and hold then open_hold(hold, count, entry_id) end
    if any_given then add_given(count, out) end
    for i = 1, #out do
      reply[#reply + 1] = out[i]
      out[i] = string.format('%.0f', out[i])
    end
    if any_given then reply[first] = reply[first] + 64 end
    records[record] = spell_record(fingerprint, entry_id, now .. ' ' .. table.concat(out, ' '), receipt)
    is_new[record] = true
  else
    local first = #reply + 1
    if decide(count, any_charge, charging, entry_id, reply) and hold then open_hold(hold, count, entry_id) end
    if any_given then
      reply[first] = reply[first] + 64
      add_given(count, reply)
    end
  end
  include('end of a request')
end

-- Written only now: an error before this line leaves nothing half-charged.
for key in pairs(touched) do owners[key].save(key, states[key]) end
for key, reset_after in pairs(refused) do
  if not touched[key] then outlive(key, reset_after) end
end
include('writes of grants')
for h = 1, #holds do save_hold(holds[h].key, holds[h]) end
for key in pairs(begun) do save_block(key, block_states[key]) end
for record, text in pairs(records) do
  if is_new[record] then call('SET', KEYS[record], text, 'PX', REMEMBER_MS) else call('SET', KEYS[record], text, 'KEEPTTL') end
end
return reply
