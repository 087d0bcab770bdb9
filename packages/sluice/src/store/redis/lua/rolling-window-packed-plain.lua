--[[ rolling-window-packed, plain: rolling-window-packed.lua as decide-plain.lua asks for it; the meaning is the same
  stored   as in rolling-window-packed.lua
  policy   limit, window_ms, min_interval_ms
  A log that is out of the ordinary (slots of another width, debt, far ahead) is left to the script that can do anything. ]]
local limit, window, interval = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local width = window <= 2 ^ 16 and 2 or window <= 2 ^ 24 and 3 or window <= 2 ^ 32 and 4 or 5
local slot, range, format = '>I' .. width, 2 ^ (8 * width), string.format

-- How long before the newest arrival the entry at a position of the ring came. What was read of a long log holds the first few.
local function age_of(key, log, position, newest)
  local offset = 14 + position * width
  if offset + width > #log then
    log, offset = call('GETRANGE', key, format('%d', offset), format('%d', offset + width - 1)), 0
  end
  return (newest - struct.unpack(slot, log, offset + 1)) % range
end

-- for each counter
local key = KEYS[k]
local log = call('GETRANGE', key, '0', '511')
local at, newest, head, capacity, stored, dead = now, 0, 0, 0, 0, 0
if log ~= '' then
  local shape, last, age
  shape, head, stored, last = struct.unpack('>I3I3I3I5', log)
  capacity = shape % 2 ^ 22
  if (shape - capacity) / 2 ^ 22 + 2 ~= width or stored >= 2 ^ 23 then return redis.error_reply('LONG other slots, or debt') end
  -- The newest arrival is the instant nearest to now that has these 40 bits (it may lie ahead, if the clock stepped back).
  age = (now - last) % 2 ^ 40
  if age >= 2 ^ 39 then age = age - 2 ^ 40 end
  newest = now - age
  at = max(now, newest)
  if at - now > window then return redis.error_reply('LONG a counter far ahead') end
  -- The first entry that is in the window: the oldest, nearly always; else found in leaps that grow.
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
  if #log == 512 and live < capacity then
    -- A long log with room: one slot and the header change.
    place, live = 14 + (head + stored) % capacity * width, live + 1
    header = struct.pack('>I3I3I3I5', (width - 2) * 2 ^ 22 + capacity, first, live, at % 2 ^ 40)
  else
    -- A short log, or one that has outgrown its capacity, is written whole, as `rewrite` does.
    local kept = ''
    if live > 0 and #log < 512 then
      kept = string.sub(log, 15 + first * width, 14 + (first + live) * width)
    elseif live > 0 then
      local straight = min(live, capacity - first)
      kept = call('GETRANGE', key, 14 + first * width, 13 + (first + straight) * width)
      if straight < live then kept = kept .. call('GETRANGE', key, 14, 13 + (live - straight) * width) end
    end
    live = live + 1
    local room = live
    if 14 + live * width >= 512 then room = max(live, min(limit, live + floor(live / 8))) end
    value = struct.pack('>I3I3I3I5', (width - 2) * 2 ^ 22 + room, 0, live, at % 2 ^ 40) .. kept .. value
    if room > live then value = value .. string.rep('\0', (room - live) * width) end
  end
end
