--[[ prelude: opens every script. What the bodies share: the server's clock and the codes of a reply.
  Redis tells the time: a caller's clock may be wrong by more than the window. ]]
local call, max, min, floor, ceil = redis.call, math.max, math.min, math.floor, math.ceil
local NONE, LIMIT, INTERVAL, CONCURRENCY, COST, BLOCKED = 0, 1, 2, 3, 4, 5
local NEVER = 2147483647
-- As in model.ts: the most units that a counter holds; the longest wait reported and the longest that a counter is kept.
local MOST, LONGEST = 9007199254740991, 3155760000000
local clock = call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)
-- The order of changes: a server runs one script at a time, and each takes longer than a microsecond.
local now_us = clock[1] * 1000000 + clock[2]

-- A rule whose window grew must not see its count vanish at the old end: a refusal makes the key live on. Where the
-- numbers did not change, the key lives as long already, and a refusal writes nothing.
local function outlive(key, reset)
  if reset > call('PTTL', key) then call('PEXPIREAT', key, now + reset) end
end

-- A whole number as an argument. Redis spells a number of Lua's with seventeen digits, which takes as long as the command itself;
-- the counters of a batch mostly end at the same instant, so the last text is kept.
local format, spelled_number, spelled_text = string.format
local function spell(number)
  if number ~= spelled_number then spelled_number, spelled_text = number, format('%d', number) end
  return spelled_text
end
