--[[ settle: one step with a reservation's hold
  KEYS     the hold; then, if counters are changed, the reservation's counters
  ARGV     step, digest, the reservation's new term in ms, how many counters, the name of the settlement; each counter:
             letter, the policy's numbers, those that the rule has now, amount (-1: unknown), mode (0 enforce, 1 reported only),
             1 if its rule lets work finish. What is charged from now on is charged by the rule's numbers now
           step: 'settle'  charges or gives back the difference from the amounts, once. Its name, in letters, identifies a repeated one
                 'extend'  holds up to the amounts, of all counters or of none
                 'claim'   as 'settle', but changes no counter: for migrating slots, where a script can have only one key. Each counter
                           then has only its amount, and the answer ends with the rows of the hold
                 'state'   only reads, of no counters
                 'put'     writes a hold without changing counters: ARGV has rows instead of counters, each of
                           entry id, at_ms, units and owed
  returns  now_us (the time in microseconds), state: 0 unknown, 1 open (this step was done), 2 settled before, 3 expired, 4 settled before
           under this name; for each counter units held, units charged;
           for 'extend' on an open one: for each counter units held, reason * 4 + (2 if charged) + (1 if allowed), remaining,
           reset_after_ms, retry_after_ms
  The hold is written before the counters: after an error halfway nothing is given back twice. ]]
include('prelude')
include('algorithms')
include('hold')
local UNKNOWN, OPEN, SETTLED, EXPIRED, OWN = 0, 1, 2, 3, 4
local step, digest, term, count, name = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]

if step == 'put' then
  local rows = {}
  for at = 6, #ARGV, 2 + 2 * count do
    local units, owed = {}, {}
    for i = 1, count do units[i], owed[i] = tonumber(ARGV[at + 1 + i]), tonumber(ARGV[at + 1 + count + i]) end
    rows[#rows + 1] = { entry = ARGV[at], at = tonumber(ARGV[at + 1]), units = units, owed = owed }
  end
  save_hold(KEYS[1], { digest = digest, ends = now + term, rows = rows })
  return { now_us, OPEN }
end

local hold = read_hold(call('GET', KEYS[1]))
if not hold or hold.digest ~= digest then return { now_us, UNKNOWN } end
local state = hold.charged and (hold.by == name and OWN or SETTLED) or now >= hold.ends and EXPIRED or OPEN
local held = {}
for i = 1, count do held[i] = held_of(hold, i) end

local function answer()
  local reply = { now_us, state }
  for i = 1, count do
    reply[#reply + 1] = held[i]
    reply[#reply + 1] = hold.charged and hold.charged[i] or held[i]
  end
  return reply
end

if state ~= OPEN or step == 'state' then return answer() end

if step == 'claim' then
  hold.charged, hold.by = {}, name
  for i = 1, count do
    local amount = tonumber(ARGV[5 + i])
    hold.charged[i] = amount < 0 and held[i] or amount
  end
  save_hold(KEYS[1], hold)
  local reply = answer()
  for r = 1, #hold.rows do
    reply[#reply + 1] = hold.rows[r].entry .. ' ' .. spell(hold.rows[r].at) .. ' ' .. spell_units(hold.rows[r].units) .. ' ' .. spell_units(hold.rows[r].owed)
  end
  return reply
end

local counters, at = {}, 6
for i = 1, count do
  local letter = ARGV[at]
  local body = algorithm(letter)
  local policy, policy_now = {}, {}
  for n = 1, body.arity do
    policy[n], policy_now[n] = tonumber(ARGV[at + n]), tonumber(ARGV[at + body.arity + n])
  end
  at = at + 2 * body.arity + 1
  counters[i] = {
    key = KEYS[i + 1], letter = letter, body = body, policy = policy, policy_now = policy_now,
    amount = tonumber(ARGV[at]), enforced = ARGV[at + 1] == '0', finishes = ARGV[at + 2] == '1',
  }
  at = at + 3
end

local function give_back(counter, i, units)
  local body = counter.body
  for r = #hold.rows, 1, -1 do
    local row = hold.rows[r]
    local taken = min(units, row.units[i])
    units = units - taken
    -- A counter that has expired is as good as new: there is nothing to give back.
    if taken > 0 and call('EXISTS', counter.key) == 1 then
      local stored = body.load(counter.key)
      body.refund(stored, counter.policy, taken, row.at, row.entry, row.owed[i], row.units[i])
      body.save(counter.key, stored)
    end
  end
end

if step == 'settle' then
  hold.charged, hold.by = {}, name
  for i = 1, count do
    local counter = counters[i]
    hold.charged[i] = counter.amount < 0 and held[i] or counter.amount
    if hold.charged[i] > held[i] then
      counter.state = counter.body.load(counter.key)
      -- Outdated calendar boundaries must fail before anything is written.
      counter.body.look(counter.state, counter.policy_now, 0)
    end
  end
  save_hold(KEYS[1], hold)
  for i = 1, count do
    local counter, more = counters[i], hold.charged[i] - held[i]
    if more > 0 then
      counter.body.charge(counter.state, counter.policy_now, more, hold.rows[1].entry .. ':o')
      counter.body.save(counter.key, counter.state)
    elseif more < 0 then
      give_back(counter, i, -more)
    end
  end
  return answer()
end

-- extend
local refused = false
for i = 1, count do
  local counter = counters[i]
  counter.wanted = max(0, counter.amount - held[i])
  counter.state = counter.body.load(counter.key)
  counter.allowed, counter.remaining, counter.retry, counter.reset, counter.reason = counter.body.look(counter.state, counter.policy_now, counter.wanted)
  if counter.finishes and not counter.allowed then
    counter.allowed, counter.retry, counter.reason = true, 0, NONE
  end
  if counter.enforced and not counter.allowed then refused = true end
end
local units, any = {}, false
for i = 1, count do
  local counter = counters[i]
  units[i] = 0
  if not refused and counter.allowed and counter.wanted > 0 then
    units[i], any = counter.wanted, true
    held[i] = held[i] + counter.wanted
  end
end
if not refused then
  local entry, owed = extension_name(hold), {}
  for i = 1, count do
    local counter = counters[i]
    if units[i] > 0 then
      counter.remaining, counter.reset = counter.body.charge(counter.state, counter.policy_now, units[i], entry)
    end
    owed[i] = counter.body.owed and counter.body.owed(counter.state, counter.policy_now) or 0
  end
  if any then add_row(hold, units, owed) end
  hold.ends = now + term
  save_hold(KEYS[1], hold)
  for i = 1, count do
    if units[i] > 0 then counters[i].body.save(counters[i].key, counters[i].state) end
  end
end
local reply = { now_us, state }
for i = 1, count do
  local counter = counters[i]
  reply[#reply + 1] = held[i]
  reply[#reply + 1] = counter.reason * 4 + (units[i] > 0 and 2 or 0) + (counter.allowed and 1 or 0)
  reply[#reply + 1] = counter.remaining
  reply[#reply + 1] = counter.reset
  reply[#reply + 1] = counter.retry
end
return reply
