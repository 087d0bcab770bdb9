--[[ rolling-window, storage packed: one check of one key, exact; the meaning is that of rolling-window.lua
  stored   string: a header of 14 bytes, then a ring of `capacity` slots, oldest entry at `head`
             bytes 1-3   slot width minus 2 (two bits), capacity (22 bits)
             bytes 4-6   head;  7-9  count;  10-14  newest arrival in ms, modulo 2^40
           A slot holds an arrival in ms modulo 2^(8*width). All entries lie less than a window before the newest (each
           write evicts first), so a width with 2^(8*width) >= window_ms tells them apart: 2 bytes up to 65 s, 3 up to
           4.6 h, 4 up to 49 d, else 5.
  policy   limit, window_ms, min_interval_ms
  A short log is read and written whole, in one call each: that is cheaper than to find one's way in it. In a long one every
  decision reads and writes a few slots, whatever the limit: the ring is never read whole, except to grow. ]]
local pack, unpack_string, substring = struct.pack, struct.unpack, string.sub
local arity, named = 3, false
local HEADER, HEADER_BYTES, EPOCH = '>I3I3I3I5', 14, 2 ^ 40
local CAPACITY_RANGE = 2 ^ 22
local CHUNK = 8
-- Up to this many bytes a log is short. Measured: at 512 one GETRANGE and one SET beat the ring's five calls.
local SHORT, SHORT_END = 512, '511'
local formats = { nil, '>I2', '>I3', '>I4', '>I5' }
local ranges = { nil, 2 ^ 16, 2 ^ 24, 2 ^ 32, 2 ^ 40 }

local function width_for(window)
  if window <= ranges[2] then return 2 end
  if window <= ranges[3] then return 3 end
  if window <= ranges[4] then return 4 end
  return 5
end

local function load(key)
  local opening = call('GETRANGE', key, '0', SHORT_END)
  if #opening < HEADER_BYTES then
    return { key = key, width = 0, capacity = 0, head = 0, count = 0, newest = 0, pending = 0, whole = '' }
  end
  local shape, head, count, newest = unpack_string(HEADER, opening)
  -- The newest arrival is the instant nearest to now that has these 40 bits (it may lie ahead, if the clock stepped back).
  local age = (now - newest) % EPOCH
  if age >= EPOCH / 2 then age = age - EPOCH end
  local capacity = shape % CAPACITY_RANGE
  return {
    key = key, width = (shape - capacity) / CAPACITY_RANGE + 2, capacity = capacity,
    head = head, count = count, newest = now - age, pending = 0,
    whole = #opening < SHORT and opening,
  }
end

local function bytes(state, first, last)
  if state.whole then return substring(state.whole, first + 1, last + 1) end
  return call('GETRANGE', state.key, spell(first), spell(last))
end

-- The raw bytes of n entries from the i-th oldest (0-based), across the ring's seam.
local function slots(state, i, n)
  local width, position = state.width, (state.head + i) % state.capacity
  local first = min(n, state.capacity - position)
  local offset = HEADER_BYTES + position * width
  local raw = bytes(state, offset, offset + first * width - 1)
  if first < n then raw = raw .. bytes(state, HEADER_BYTES, HEADER_BYTES + (n - first) * width - 1) end
  return raw
end

local function time_of(state, raw, i)
  local stamp = unpack_string(formats[state.width], raw, i * state.width + 1)
  return state.newest - (state.newest - stamp) % ranges[state.width]
end

-- The arrival of the i-th oldest entry (0-based). The oldest few are read together: nearly every question is about them.
local function arrival(state, i)
  if state.whole then
    -- A short log begins with its oldest entry.
    local stamp = unpack_string(formats[state.width], state.whole, HEADER_BYTES + i * state.width + 1)
    return state.newest - (state.newest - stamp) % ranges[state.width]
  end
  if i < CHUNK then
    if not state.chunk then state.chunk = slots(state, 0, min(CHUNK, state.count)) end
    return time_of(state, state.chunk, i)
  end
  return time_of(state, slots(state, i, 1), 0)
end

-- How many of the oldest entries have left the window: none or a few, nearly always; else found by bisection.
local function count_dead(state, cutoff)
  local count = state.count
  if count == 0 or state.newest <= cutoff then return count end
  local low = 0
  while low < min(CHUNK, count) do
    if arrival(state, low) > cutoff then return low end
    low = low + 1
  end
  local high = count - 1
  while low < high do
    local middle = floor((low + high) / 2)
    if arrival(state, middle) > cutoff then high = middle else low = middle + 1 end
  end
  return low
end

-- Live entries at the key's own clock, which never goes back.
local function settle(state, policy)
  if state.window ~= policy[2] then
    state.at = max(now, state.newest)
    state.window = policy[2]
    state.dead = count_dead(state, state.at - policy[2])
  end
  return state.count - state.dead + state.pending, state.at
end

local function look(state, policy, cost)
  local count, at = settle(state, policy)
  local limit, window = policy[1], policy[2]
  local last = state.pending > 0 and at or state.newest
  local remaining = max(0, limit - count)
  local reset = count > 0 and last + window - now or 0
  if cost == 0 then return true, remaining, 0, reset, NONE end
  if cost > limit then return false, remaining, NEVER, reset, COST end
  local wait, reason = 0, NONE
  if count > 0 and at - last < policy[3] then
    wait, reason = last + policy[3] - now, INTERVAL
  end
  if count + cost > limit then
    local i = state.dead + count + cost - limit - 1
    local arrived = i < state.count and arrival(state, i) or at
    wait, reason = max(wait, arrived + window - now), LIMIT
  end
  return reason == NONE, remaining, wait, reset, reason
end

local function charge(state, policy, cost)
  local count, at = settle(state, policy)
  state.pending = state.pending + cost
  -- A look under other numbers may follow in the same call: entries leave by the window that was charged, the longest if several.
  if policy[2] >= (state.kept or 0) then state.kept, state.gone, state.limit = policy[2], state.dead, policy[1] end
  return max(0, policy[1] - count - cost), at + policy[2] - now
end

local function header(state, newest)
  return pack(HEADER, (state.width - 2) * CAPACITY_RANGE + state.capacity, state.head, state.count, newest % EPOCH)
end

local function stamps(width, at, n)
  local stamp = pack(formats[width], at % ranges[width])
  return n == 1 and stamp or string.rep(stamp, n)
end

-- Writes the live entries into a new ring: a short one, one that has outgrown its capacity, or one whose slots are too narrow
-- or too wide for a changed window. Growth by an eighth wastes little memory; a whole SET, unlike SETRANGE, allocates no more than asked.
local function rewrite(key, state, width)
  local live = state.count - state.gone
  local raw = ''
  if live > 0 then
    local first = HEADER_BYTES + state.gone * state.width + 1
    raw = state.whole and substring(state.whole, first, first + live * state.width - 1) or slots(state, state.gone, live)
  end
  if width ~= state.width and live > 0 then
    local recoded = {}
    for i = 0, live - 1 do recoded[i + 1] = pack(formats[width], time_of(state, raw, i) % ranges[width]) end
    raw = table.concat(recoded)
  end
  local total = live + state.pending
  local capacity = total
  if HEADER_BYTES + total * width >= SHORT then capacity = max(total, min(state.limit, total + floor(total / 8))) end
  state.width, state.capacity, state.head, state.count = width, capacity, 0, total
  local value = header(state, state.at) .. raw .. stamps(width, state.at, state.pending)
  if capacity > total then value = value .. string.rep('\0', (capacity - total) * width) end
  call('SET', key, value, 'PXAT', spell(state.at + state.kept))
end

local function save(key, state)
  if state.refunded then return end
  local width, live = width_for(state.kept), state.count - state.gone
  if state.whole or width ~= state.width or live + state.pending > state.capacity then
    return rewrite(key, state, width)
  end
  local tail = (state.head + state.count) % state.capacity
  local first = min(state.pending, state.capacity - tail)
  call('SETRANGE', key, spell(HEADER_BYTES + tail * width), stamps(width, state.at, first))
  if first < state.pending then call('SETRANGE', key, spell(HEADER_BYTES), stamps(width, state.at, state.pending - first)) end
  state.head = (state.head + state.gone) % state.capacity
  state.count = live + state.pending
  call('SETRANGE', key, '0', header(state, state.at))
  call('PEXPIREAT', key, spell(state.at + state.kept))
end

-- The lowest index whose entry arrived after an instant.
local function first_after(state, instant)
  local low, high = 0, state.count
  while low < high do
    local middle = floor((low + high) / 2)
    if arrival(state, middle) > instant then high = middle else low = middle + 1 end
  end
  return low
end

-- Takes back up to `cost` entries that arrived at charged_at. What came later moves up, in one piece.
local function refund(state, _, cost, charged_at)
  state.refunded = true
  local after = first_after(state, charged_at)
  local taken = min(cost, after - first_after(state, charged_at - 1))
  if taken == 0 then return end
  if taken == state.count then return call('DEL', state.key) end
  local width, moved = state.width, state.count - after
  if moved > 0 then
    local raw = slots(state, after, moved)
    local position = (state.head + after - taken) % state.capacity
    local first = min(moved, state.capacity - position)
    call('SETRANGE', state.key, HEADER_BYTES + position * width, substring(raw, 1, first * width))
    if first < moved then call('SETRANGE', state.key, HEADER_BYTES, substring(raw, first * width + 1)) end
  end
  state.chunk, state.whole = nil, nil
  state.count = state.count - taken
  local newest = arrival(state, state.count - 1)
  call('SETRANGE', state.key, 0, header(state, newest))
end

-- The newest go: nothing moves but the ring's end.
local function give_back(state, policy, cost)
  state.refunded = true
  local taken = min(cost, (settle(state, policy)))
  if taken == 0 then return false end
  local kept = state.count - taken
  if kept == 0 then return call('DEL', state.key) > 0 end
  local newest = arrival(state, kept - 1)
  state.count = kept
  call('SETRANGE', state.key, 0, header(state, newest))
  return true
end

return { arity = arity, load = load, look = look, charge = charge, refund = refund, give_back = give_back, save = save }
