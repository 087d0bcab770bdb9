--[[ prelude: opens every script. What the bodies share: the server's clock and the codes of a reply.
  Time comes from Redis: a caller's clock may be wrong by more than the window. ]]
local call, max, min, floor, ceil = redis.call, math.max, math.min, math.floor, math.ceil
local NONE, LIMIT, INTERVAL, CONCURRENCY, COST, BLOCKED = 0, 1, 2, 3, 4, 5
local NEVER = 2147483647
-- As in model.ts: the most units that a counter holds; the longest wait reported, which is also the longest that a counter is kept.
local MOST, LONGEST = 9007199254740991, 3155760000000
local clock = call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)
-- Gives changes a total order: a server runs one script at a time, and each takes longer than a microsecond.
local now_us = clock[1] * 1000000 + clock[2]

-- If a rule's window grew, its count must not vanish at the old end: a refusal extends the key's life. If the numbers did not change, the
-- key already lives that long, and a refusal writes nothing. Ends are compared, not the time left: PTTL reads a later clock than this
-- script's, and in the millisecond of its end PEXPIREAT deletes a key that still counts.
local function outlive(key, reset)
  if now + reset > call('PEXPIRETIME', key) then call('PEXPIREAT', key, now + reset) end
end

-- Formats a whole number as an argument. Redis formats a Lua number with seventeen digits, which takes as long as the command itself. The
-- counters of a batch mostly end at the same instant, so the last text is cached.
local format, spelled_number, spelled_text = string.format
local function spell(number)
  if number ~= spelled_number then spelled_number, spelled_text = number, format('%d', number) end
  return spelled_text
end
