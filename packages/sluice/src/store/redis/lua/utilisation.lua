--[[ utilisation: writes one report, or lists the current ones
  KEYS     hash: field = source and key of a report, as JSON; value = its utilisation and when it expires, in ms
  ARGV     to write: the most reports that are held, field, utilisation, its time to live in ms; to list: nothing
  returns  now_ms; when listing, then field, utilisation and remaining ms of each report
  Time comes from Redis: reporters and readers need not agree on it.
  Writing costs the same however many reports are held: backends may report as often as they like. Listing deletes expired reports. ]]
include('prelude')
if ARGV[2] then
  if call('HLEN', KEYS[1]) < tonumber(ARGV[1]) or call('HGET', KEYS[1], ARGV[2]) then
    local left = tonumber(ARGV[4])
    call('HSET', KEYS[1], ARGV[2], ARGV[3] .. ' ' .. string.format('%.0f', now + left))
    call('PEXPIRE', KEYS[1], math.max(left, call('PTTL', KEYS[1])))
  end
  return { now }
end
local held = call('HGETALL', KEYS[1])
local reply = { now }
for i = 1, #held, 2 do
  local value, ends = string.match(held[i + 1], '^(%S+) (%d+)$')
  local left = ends and tonumber(ends) - now or 0
  -- A report with a later end than any can have was written before the clock stepped back.
  if left <= 0 or left > 300000 then
    call('HDEL', KEYS[1], held[i])
  else
    local at = #reply
    reply[at + 1], reply[at + 2], reply[at + 3] = held[i], value, left
  end
end
return reply
