--[[ prelude: opens every script. What the bodies share: the server's clock, the codes of a reply, the algorithms.
  Redis tells the time: a caller's clock may be wrong by more than the window. ]]
local call, max, min, floor, ceil = redis.call, math.max, math.min, math.floor, math.ceil
local NONE, LIMIT, INTERVAL, CONCURRENCY, COST = 0, 1, 2, 3, 4
local NEVER = 2147483647
local CALENDAR = 'calendar'
local REMEMBER_MS = 60000
local clock = call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)

-- A body is only run when a policy asks for it: a script that made every function of every algorithm on each call would
-- spend more time on that than on deciding.
local bodies, made = {}, {}
local function algorithm(letter)
  local body = made[letter]
  if not body then
    body = bodies[letter]()
    made[letter] = body
  end
  return body
end
