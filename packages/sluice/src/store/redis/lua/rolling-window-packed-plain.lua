--[[ rolling-window-packed, plain: rolling-window-packed.lua in the form that decide-plain.lua requires, with the same meaning
  stored   see packed-layout.lua
  policy   limit, window_ms, min_interval_ms
  An unusual log (slots of another width, debt, far ahead) is left to the script that can do anything. ]]
local limit, window, interval = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
include('packed-layout')
local width = width_for(window)
local slot, range, format = SLOT .. width, 2 ^ (8 * width), string.format

-- How long before the newest arrival the entry at a position of the ring arrived. For a long log, the bytes already read hold the first
-- few.
local function age_of(key, log, position, newest)
  local offset = HEADER_BYTES + position * width
  if offset + width > #log then
    log, offset = call('GETRANGE', key, format('%d', offset), format('%d', offset + width - 1)), 0
  end
  return (newest - struct.unpack(slot, log, offset + 1)) % range
end

-- for each counter
local key = KEYS[k]
local log = call('GETRANGE', key, '0', SHORT_END)
local at, newest, head, capacity, stored, dead = now, 0, 0, 0, 0, 0
if log ~= '' then
  local shape, last
  shape, head, stored, last = struct.unpack(HEADER, log)
  capacity = shape % CAPACITY_RANGE
  if (shape - capacity) / CAPACITY_RANGE + 2 ~= width or stored >= DEBT_FLAG then
    return redis.error_reply('LONG other slots, or debt')
  end
  newest = nearest(last)
  at = max(now, newest)
  if at - now > window then return redis.error_reply('LONG a counter far ahead') end
  -- The first entry that is in the window: nearly always the oldest; otherwise found by galloping search.
  local high, leap = stored - 1, 0
  if newest <= at - window then dead, high = stored, stored end
  while dead < high do
    local probe = min(dead + leap, floor((dead + high) / 2))
    if newest - age_of(key, log, (head + probe) % capacity, newest) > at - window then
      high = probe
    else
      dead, leap = probe + 1, leap * 2 + 1
    end
  end
end
local live = stored - dead
if live > 0 and at - newest < interval then retry, reason = newest + interval - now, INTERVAL end
if live >= limit then
  local arrived = newest - age_of(key, log, (head + stored - limit) % capacity, newest)
  retry, reason = max(retry or 0, arrived + window - now), LIMIT
end
if reason then
  remaining, reset = limit - live, newest + window - now
else
  ends_at = at + window
  remaining, reset = limit - live - 1, ends_at - now
  value = struct.pack(slot, at % range)
  local first = (head + dead) % max(capacity, 1)
  if #log == SHORT and live < capacity then
    -- A long log with room: only one slot and the header change.
    place, live = HEADER_BYTES + (head + stored) % capacity * width, live + 1
    header = struct.pack(HEADER, (width - 2) * CAPACITY_RANGE + capacity, first, live, at % EPOCH)
  else
    -- A short log, or one that has outgrown its capacity, is written whole, as `rewrite` does.
    local kept = ''
    if live > 0 and #log < SHORT then
      kept = string.sub(log, HEADER_BYTES + first * width + 1, HEADER_BYTES + (first + live) * width)
    elseif live > 0 then
      local straight = min(live, capacity - first)
      kept = call('GETRANGE', key, HEADER_BYTES + first * width, HEADER_BYTES + (first + straight) * width - 1)
      if straight < live then
        kept = kept .. call('GETRANGE', key, HEADER_BYTES, HEADER_BYTES + (live - straight) * width - 1)
      end
    end
    live = live + 1
    local room = live
    if HEADER_BYTES + live * width >= SHORT then room = max(live, min(limit, live + floor(live / 8))) end
    value = struct.pack(HEADER, (width - 2) * CAPACITY_RANGE + room, 0, live, at % EPOCH) .. kept .. value
    if room > live then value = value .. string.rep('\0', (room - live) * width) end
  end
end
