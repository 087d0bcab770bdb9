--[[ fixed-window, plain: fixed-window.lua in the form that decide-plain.lua requires, with the same meaning
  stored   as in fixed-window.lua
  policy   limit, window_ms, then the five calendar boundaries
  All counters of a batch are in one window, found once. A counter whose clock is in a later one is left to the script that can do
  anything. ]]
local limit, window = tonumber(ARGV[2]), tonumber(ARGV[3])
local NEVER = 2147483647
local start, finish = tonumber(ARGV[4])
if start == 0 then
  start = now - now % window
  finish = start + window
else
  if now < start or now >= tonumber(ARGV[8]) then error('CALENDAR ' .. now, 0) end
  for i = 5, 8 do
    finish = tonumber(ARGV[i])
    if now < finish then break end
    start = finish
  end
end
local left = finish - now

-- for each counter
local count, last, born = 0, now, 0
local raw = call('GET', KEYS[k])
if raw then
  count, last, born = struct.unpack('<ddd', raw)
  if last < start then count = 0 end
  if last < now then last = now elseif last >= finish then return redis.error_reply('LONG a counter ahead') end
end
if count >= limit then
  remaining, reset = limit - count, count > 0 and left or 0
  retry, reason = limit == 0 and NEVER or left, LIMIT
else
  if count == 0 then born = max(born, last) end
  remaining, reset = limit - count - 1, left
  value, ends_at = struct.pack('<ddd', count + 1, last, born), finish
end
