--[[ utilisation: writes one report, if there is one, and lists those that hold
  KEYS     hash: field = source and key of a report, as JSON; value = its utilisation and when it ends, in ms
  ARGV     the most reports that are held, then for a report: field, utilisation, how long it holds in ms
  returns  now_ms, then field, utilisation and ms left of each report
  Redis tells the time: reporters and readers need not agree on it. ]]
include('prelude')
local held = call('HGETALL', KEYS[1])
local reply, count = { now }, 0
local longest = 0
for i = 1, #held, 2 do
  local value, ends = string.match(held[i + 1], '^(%S+) (%d+)$')
  local left = ends and tonumber(ends) - now or 0
  -- A report that ends later than any may was written before the clock stepped back.
  if left <= 0 or left > 300000 then
    call('HDEL', KEYS[1], held[i])
  elseif held[i] ~= ARGV[2] then
    count = count + 1
    longest = math.max(longest, left)
    local at = #reply
    reply[at + 1], reply[at + 2], reply[at + 3] = held[i], value, left
  end
end
if ARGV[2] and count < tonumber(ARGV[1]) then
  local left = tonumber(ARGV[4])
  longest = math.max(longest, left)
  call('HSET', KEYS[1], ARGV[2], ARGV[3] .. ' ' .. string.format('%.0f', now + left))
  call('PEXPIRE', KEYS[1], longest)
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3] = ARGV[2], ARGV[3], left
end
return reply
