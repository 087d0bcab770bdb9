--[[ decide-plain: requests of one check of cost 1, each on a counter of its own, all under one policy of one algorithm
  Most checks are plain. The script is straight code: what a short script costs is the functions and tables that it makes.
  KEYS     the counters, each once
  ARGV     1; the policy's numbers: as decide-single reads them
  returns  as decide-single: now_us, then for each either 1, remaining, reset_after_ms (-1, given_back, remaining, reset_after_ms of a
           bucket to which anything had been given back) or 0, remaining, retry_after_ms, reset_after_ms, reason; the error LONG, and nothing written, for what decide-single must do
  Of an algorithm's plain file, what stands before `for each counter` comes before the loop, the rest into it. The latter sets
  remaining, reset and either value and ends_at (what to write, until when) or retry and reason; and given_back, if it is not 0. With place and header, value
  is written at that place of what is stored, and the header at its start. ]]
local call, max, min, floor, ceil = redis.call, math.max, math.min, math.floor, math.ceil
local LIMIT, INTERVAL = 1, 2
local clock = call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)
include('before the loop')
local reply, values, ends, places, headers, n = { clock[1] * 1000000 + clock[2] }, {}, {}, {}, {}, 1
for k = 1, #KEYS do
  local remaining, retry, reset, reason, value, ends_at, place, header, given_back
  include('for each counter')
  if value then
    if given_back then
      reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = -1, given_back, remaining, reset
      n = n + 1
    else
      reply[n + 1], reply[n + 2], reply[n + 3] = 1, remaining, reset
    end
    values[k], ends[k] = value, ends_at
    if place then places[k], headers[k] = place, header end
    n = n + 3
  else
    reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = 0, remaining, retry, reset, reason
    ends[k] = now + reset
    n = n + 5
  end
end
-- Written only now: an error before this line leaves nothing half-charged. Most counters of a batch end at the same instant.
local spelled, text
for k = 1, #KEYS do
  if ends[k] ~= spelled then spelled, text = ends[k], string.format('%d', ends[k]) end
  if places[k] then
    call('SETRANGE', KEYS[k], string.format('%d', places[k]), values[k])
    call('SETRANGE', KEYS[k], '0', headers[k])
    call('PEXPIREAT', KEYS[k], text)
  elseif values[k] then
    call('SET', KEYS[k], values[k], 'PXAT', text)
  elseif ends[k] - now > call('PTTL', KEYS[k]) then
    -- As `outlive` in prelude.lua: a rule whose window grew must not see its count vanish at the old end.
    call('PEXPIREAT', KEYS[k], text)
  end
end
return reply
