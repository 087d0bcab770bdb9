--[[ decide-plain: requests of one check of cost 1, each on its own counter, all under one policy of one algorithm
  Most checks are plain. The script is straight-line code: the cost of a short script is in the functions and tables that it creates.
  KEYS     the counters, each once
  ARGV     1; the policy's numbers: as decide-single reads them
  returns  as decide-single: now_us, then for each either 1, remaining, reset_after_ms (for a bucket with units given back: -1, given_back,
           remaining, reset_after_ms) or 0, remaining, retry_after_ms, reset_after_ms, reason; or the error LONG, with nothing written, for
           cases that decide-single must handle
  In an algorithm's plain file, the part above `for each counter` goes before the loop, the rest into it. The rest sets remaining and reset,
  and either value and ends_at (what to write, until when) or retry and reason; also given_back, if it is not 0. If place and header are
  set, value is written at that offset of the stored string, and the header at its start. ]]
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
  elseif ends[k] > call('PEXPIRETIME', KEYS[k]) then
    -- Like `outlive` in prelude.lua: if a rule's window grew, its count must not vanish at the old end.
    call('PEXPIREAT', KEYS[k], text)
  end
end
return reply
