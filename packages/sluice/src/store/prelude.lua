--[[ prelude: opens every script. What the bodies share: the server's clock and the codes of a reply.
  Redis tells the time: a caller's clock may be wrong by more than the window. ]]
local call, max, min, floor, ceil = redis.call, math.max, math.min, math.floor, math.ceil
local NONE, LIMIT, INTERVAL, CONCURRENCY, COST = 0, 1, 2, 3, 4
local NEVER = 2147483647
local clock = call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)

-- A rule whose window grew must not see its count vanish at the old end: whoever is refused makes the key live on. Where the
-- numbers did not change, the key lives as long already, and a refusal writes nothing.
local function outlive(key, reset)
  if reset > call('PTTL', key) then call('PEXPIREAT', key, now + reset) end
end
