--[[ rolling-window, storage packed: one check of one key, exact; the meaning is that of rolling-window.lua
  stored   see packed-layout.lua
  policy   limit, window_ms, min_interval_ms
  A short log is read and written whole, in one call each, which is cheaper than navigating it. In a long one every decision reads and
  writes a few slots, whatever the limit: the ring is never read whole, except to grow. ]]
local pack, unpack_string, substring = struct.pack, struct.unpack, string.sub
local arity, named = 3, false
include('packed-layout')
local DEBT, DEBT_BYTES = '<dI5I5', 18
local CHUNK = 8
local formats = { nil, SLOT .. '2', SLOT .. '3', SLOT .. '4', SLOT .. '5' }
local ranges = { nil, 2 ^ 16, 2 ^ 24, 2 ^ 32, 2 ^ 40 }

local function load(key)
  local opening = call('GETRANGE', key, '0', SHORT_END)
  if #opening < HEADER_BYTES then
    return { key = key, width = 0, capacity = 0, head = 0, count = 0, newest = 0, pending = 0, first = 0, debt = 0, whole = '' }
  end
  local shape, head, count, newest = unpack_string(HEADER, opening)
  local capacity = shape % CAPACITY_RANGE
  local state = {
    key = key, width = (shape - capacity) / CAPACITY_RANGE + 2, capacity = capacity,
    head = head, count = count, newest = nearest(newest), pending = 0, first = 0, debt = 0,
    whole = #opening < SHORT and opening,
  }
  if count >= DEBT_FLAG then
    state.count = count - DEBT_FLAG
    local offset = HEADER_BYTES + capacity * state.width
    local raw = state.whole and substring(opening, offset + 1) or call('GETRANGE', key, spell(offset), spell(offset + DEBT_BYTES - 1))
    local units, at, from = unpack_string(DEBT, raw)
    state.debt, state.debt_at, state.debt_from = units, nearest(at), nearest(from)
  end
  return state
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

-- The arrival of the i-th oldest entry (0-based). The oldest few are read together, because nearly every lookup is among them.
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

-- How many of the oldest entries have left the window: nearly always none or a few; otherwise found by bisection.
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

local function live_debt(state, cutoff)
  return state.debt > 0 and state.debt_at > cutoff and state.debt or 0
end

-- Live entries and debt at the key's own clock, which never goes back.
local function settle(state, policy)
  local window = policy[2]
  if state.window ~= window then
    state.window = window
    state.at = max(now, state.newest)
    if state.at > now and state.at - now > window + (policy.ahead or 0) then
      -- All entries lie within a window of the newest, so all of them are ahead: they count as now.
      local cutoff = state.at - window
      state.debt = state.count - max(count_dead(state, cutoff), state.first) + state.pending + live_debt(state, cutoff)
      state.debt_at, state.debt_from, state.newest, state.at = now, now, now, now
      state.moved, state.kept, state.gone, state.limit, state.whole = true, window, 0, 0, ''
      state.capacity, state.head, state.count, state.first, state.pending = 0, 0, 0, 0, 0
    end
    -- Entries that a charge of this call turned into debt are no longer entries.
    state.dead = max(state.first, count_dead(state, state.at - window))
  end
  return state.count - state.dead + state.pending, live_debt(state, state.at - window), state.at
end

-- The arrival of the n-th oldest live entry.
local function live_arrival(state, n)
  local i = state.dead + n - 1
  return i < state.count and arrival(state, i) or state.at
end

local function look(state, policy, cost, strict)
  local entries, debt, at = settle(state, policy)
  local limit, window, count = policy[1], policy[2], entries + debt
  local last = state.charged and at or state.newest
  local remaining = limit - count
  local reset = count > 0 and last + window - now or 0
  if cost == 0 and not strict then return true, remaining, 0, reset, NONE end
  if cost > limit then return false, remaining, NEVER, reset, COST end
  local wait, reason = 0, NONE
  if cost > 0 and count > 0 and at - last < policy[3] then
    wait, reason = last + policy[3] - now, INTERVAL
  end
  if count + cost > limit then
    local excess = count + cost - limit
    local arrived = excess > debt and live_arrival(state, excess - debt) or state.debt_at
    wait, reason = max(wait, arrived + window - now), LIMIT
  end
  return reason == NONE, remaining, wait, reset, reason
end

-- Turns the oldest n units into debt, so that `room` are left: stored ones first, then those arriving now. Returns how many of the latter.
local function into_debt(state, n, room)
  local of_stored = min(n, state.count - state.dead)
  if state.debt == 0 then state.debt_from = of_stored > 0 and live_arrival(state, 1) or state.at end
  state.debt = state.debt + n
  if state.debt > MOST - room then state.debt, state.debt_from = MOST - room, state.at + 1 end
  state.debt_at = of_stored < n and state.at or live_arrival(state, of_stored)
  state.first = state.dead + of_stored
  state.dead = state.first
  return n - of_stored
end

local function charge(state, policy, cost)
  local entries, debt, at = settle(state, policy)
  local limit = policy[1]
  state.debt = debt
  local overflow = entries + cost - limit
  state.pending = state.pending + cost - (overflow > 0 and into_debt(state, overflow, limit) or 0)
  state.charged = true
  -- A look with other numbers may follow in the same call: entries leave by the window that was charged, the longest if there are several.
  if policy[2] >= (state.kept or 0) then state.kept, state.gone, state.limit = policy[2], state.dead, limit end
  return limit - (state.count - state.dead + state.pending) - state.debt, at + policy[2] - now
end

local function header(state, newest)
  local count = state.debt > 0 and state.count + DEBT_FLAG or state.count
  return pack(HEADER, (state.width - 2) * CAPACITY_RANGE + state.capacity, state.head, count, newest % EPOCH)
end

local function packed_debt(state)
  return pack(DEBT, state.debt, state.debt_at % EPOCH, state.debt_from % EPOCH)
end

local function write_debt(state)
  call('SETRANGE', state.key, spell(HEADER_BYTES + state.capacity * state.width), packed_debt(state))
end

local function stamps(width, at, n)
  local stamp = pack(formats[width], at % ranges[width])
  return n == 1 and stamp or string.rep(stamp, n)
end

-- Writes the live entries into a new ring: for a short log, one that has outgrown its capacity, or one whose slots are too narrow or too
-- wide for a changed window. Growing by an eighth wastes little memory; a whole SET, unlike SETRANGE, allocates no more than needed.
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
  if state.debt > 0 then value = value .. packed_debt(state) end
  call('SET', key, value, 'PXAT', spell(state.at + state.kept + (state.leeway or 0)))
end

local function save(key, state)
  if state.refunded then return end
  state.gone = max(state.gone, state.first)
  local width, live = width_for(state.kept), state.count - state.gone
  if state.whole or width ~= state.width or live + state.pending > state.capacity then
    return rewrite(key, state, width)
  end
  local tail = (state.head + state.count) % state.capacity
  local first = min(state.pending, state.capacity - tail)
  if first > 0 then call('SETRANGE', key, spell(HEADER_BYTES + tail * width), stamps(width, state.at, first)) end
  if first < state.pending then call('SETRANGE', key, spell(HEADER_BYTES), stamps(width, state.at, state.pending - first)) end
  state.head = (state.head + state.gone) % state.capacity
  state.count = live + state.pending
  call('SETRANGE', key, '0', header(state, state.at))
  if state.debt > 0 then write_debt(state) end
  call('PEXPIREAT', key, spell(state.at + state.kept + (state.leeway or 0)))
end

-- The lowest index of an entry that arrived after an instant.
local function first_after(state, instant)
  local low, high = 0, state.count
  while low < high do
    local middle = floor((low + high) / 2)
    if arrival(state, middle) > instant then high = middle else low = middle + 1 end
  end
  return low
end

-- Updates header and debt after entries were removed in place. A counter with nothing left is deleted, unless its clock is ahead: see
-- keepClock in rolling-window.ts.
local function write_rest(state)
  if state.count + state.debt == 0 then
    if state.newest <= now then return call('DEL', state.key) end
    return call('SET', state.key, pack(HEADER, 0, 0, 0, state.newest % EPOCH), 'PXAT', spell(state.newest + 1))
  end
  state.chunk, state.whole = nil, nil
  if state.debt > 0 then write_debt(state) end
  call('SETRANGE', state.key, 0, header(state, state.count > 0 and arrival(state, state.count - 1) or state.debt_at))
end

-- Takes back up to `cost` entries that arrived at charged_at, the rest from the debt. Later entries move up, in one piece.
local function refund(state, _, cost, charged_at)
  state.refunded = true
  local after = first_after(state, charged_at)
  local taken = min(cost, after - first_after(state, charged_at - 1))
  local of_debt = 0
  if state.debt > 0 and charged_at >= state.debt_from and charged_at <= state.debt_at then
    of_debt = min(cost - taken, state.debt)
  end
  if taken + of_debt == 0 then return end
  local width, moved = state.width, state.count - after
  if taken > 0 and moved > 0 then
    local raw = slots(state, after, moved)
    local position = (state.head + after - taken) % state.capacity
    local first = min(moved, state.capacity - position)
    call('SETRANGE', state.key, HEADER_BYTES + position * width, substring(raw, 1, first * width))
    if first < moved then call('SETRANGE', state.key, HEADER_BYTES, substring(raw, first * width + 1)) end
  end
  state.count, state.debt = state.count - taken, state.debt - of_debt
  write_rest(state)
end

-- The newest go: nothing moves but the end of the ring.
local function give_back(state, policy, cost)
  local entries, debt = settle(state, policy)
  local taken = min(cost, entries)
  local of_debt = min(cost - taken, debt)
  if state.moved then
    state.debt = state.debt - of_debt
    return of_debt > 0
  end
  state.refunded = true
  if taken + of_debt == 0 then return false end
  state.count, state.debt = state.count - taken, state.debt - of_debt
  write_rest(state)
  return true
end

-- Until when a charge at an instant matters: that long, what was held is remembered beyond its end.
local function lasts_until(policy, at)
  return at + policy[2]
end

return { arity = arity, load = load, look = look, charge = charge, refund = refund, give_back = give_back, save = save, lasts_until = lasts_until }
