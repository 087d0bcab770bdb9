--[[ rolling-window-packed, plain: rolling-window-packed.lua as decide-plain.lua asks for it, for short logs; the meaning is the same
  stored   as in rolling-window-packed.lua
  policy   limit, window_ms, min_interval_ms
  A log that is not short, or whose slots have another width, is left to the script that can do anything. ]]
local limit, window, interval = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local width = window <= 2 ^ 16 and 2 or window <= 2 ^ 24 and 3 or window <= 2 ^ 32 and 4 or 5
local slot, range = '>I' .. width, 2 ^ (8 * width)
-- What will not stay short is not begun here.
if 14 + limit * width >= 512 then return redis.error_reply('LONG limit') end

-- for each counter
local log = call('GETRANGE', KEYS[k], '0', '511')
local at, newest, stored, dead = now, 0, 0, 0
if log ~= '' then
  local shape, _, count, last = struct.unpack('>I3I3I3I5', log)
  if #log == 512 or floor(shape / 2 ^ 22) + 2 ~= width then return redis.error_reply('LONG log') end
  -- The newest arrival is the instant nearest to now that has these 40 bits (it may lie ahead, if the clock stepped back).
  local age = (now - last) % 2 ^ 40
  if age >= 2 ^ 39 then age = age - 2 ^ 40 end
  stored, newest = count, now - age
  at = max(now, newest)
  -- The first entry that is in the window: the oldest, nearly always; else found by bisection.
  local middle, high = 0, stored - 1
  if newest <= at - window then dead, high = stored, stored end
  while dead < high do
    local arrived = newest - (newest - struct.unpack(slot, log, 15 + middle * width)) % range
    if arrived > at - window then high = middle else dead = middle + 1 end
    middle = floor((dead + high) / 2)
  end
end
local live = stored - dead
if live > 0 and at - newest < interval then retry, reason = newest + interval - now, INTERVAL end
if live >= limit then
  local arrived = newest - (newest - struct.unpack(slot, log, 15 + (stored - limit) * width)) % range
  retry, reason = max(retry or 0, arrived + window - now), LIMIT
end
if reason then
  remaining, reset = max(0, limit - live), newest + window - now
else
  live = live + 1
  ends_at = at + window
  remaining, reset = limit - live, ends_at - now
  value = struct.pack('>I3I3I3I5', (width - 2) * 2 ^ 22 + live, 0, live, at % 2 ^ 40)
    .. string.sub(log, 15 + dead * width, 14 + stored * width)
    .. struct.pack(slot, at % range)
end
