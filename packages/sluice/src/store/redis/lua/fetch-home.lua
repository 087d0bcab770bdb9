--[[ fetch-home: the two steps of a region's fetch from the global store, for one pool (pool.ts)
  KEYS     pool, what instances hold of it
  ARGV     'ask', before the fetch is sent: a name for a new pool, only_seq, what goes back (no, if-idle, all), lease in ms; or
           'fill', after it: seq, 1 if it was answered; then units, kept, ends_ms, low_part, renew_ms, refused_for_ms, refused_cost,
             retry_after_ms, reset_after_ms, rate, share
  returns  ask: now_ms, 1 if the fetch may be sent, arrived, elapsed_ms, what instances hold, then the pool's numbers as texts; fill: now_ms, 1 if it counted ]]
include('prelude')
include('algorithms')
local body = algorithm('u')
local state, pool, held_key = body.load(KEYS[1]), KEYS[1], KEYS[2]

local function number(i)
  return tonumber(ARGV[i])
end

local function ask()
  local known, arrived = state.seq > 0, state.arrived
  -- If the clock went back since the last ask, it is unknown how long ago that was, and nothing can be measured by it.
  local elapsed = known and max(0, now - state.asked) or 0
  local only = number(3)
  local mine = not (now >= state.last and now < state.fetching) and (only == 0 or only == state.seq)
  local head = call('HGET', held_key, '')
  local held = head and struct.unpack('<d', head) or 0
  if mine then
    if not known then state.name = number(2) end
    if now >= state.ends or now < state.last then
      -- Units held by instances ended with the pool's: they may have been used.
      state.used, state.units, held = state.used + held, 0, 0
      call('DEL', held_key)
    elseif ARGV[4] == 'all' or (ARGV[4] == 'if-idle' and arrived == 0) then
      state.units = min(state.units, held)
    end
    -- The fetch reports all use to the global store, which holds the debt from now on.
    state.units = max(0, state.units)
    body.touch(state)
    -- At least the time, so that a store that lost its last writes does not reuse a number.
    state.seq = max(state.seq + 1, now)
    state.told, state.asked, state.arrived, state.fetching = state.units, now, 0, now + number(5)
    body.save(pool, state)
  end
  local reply = { now, mine and 1 or 0, arrived, elapsed, held }
  for i = 1, #body.fields do reply[5 + i] = string.format('%.17g', state[body.fields[i]]) end
  return reply
end

local function fill()
  local told = state.told
  if state.seq == 0 or number(2) ~= state.seq or told < 0 or now < state.last then return { now, 0 } end
  state.fetching, state.told = 0, -1
  body.touch(state)
  if ARGV[3] == '1' then
    -- Units that expired on the way were counted as used: those used since the ask too, so none of them is refunded.
    if number(5) < told then state.units, state.asked, state.arrived = 0, now, 0 end
    state.units = state.units + number(4)
    state.ends, state.renew = number(6), number(8)
    state.low = number(7) < 0 and -1 or floor(state.units * number(7))
    state.refused = number(9) > 0 and now + number(9) or 0
    state.refused_cost, state.retry_at, state.reset_at = number(10), now + number(11), now + number(12)
    state.rate, state.share = number(13), number(14)
  end
  body.save(pool, state)
  return { now, 1 }
end

return ARGV[1] == 'ask' and ask() or fill()
