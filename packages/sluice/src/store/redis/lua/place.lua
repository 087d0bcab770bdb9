--[[ place: on a cluster, under a request id alone: what it was sent for, and the tags that its records lie under
  KEYS     the place
  ARGV     fingerprint, tags (JSON), how long it lives in ms
  returns  now_ms; 1, or 0 if the id was sent for another request ]]
include('prelude')
local known = call('GET', KEYS[1])
if known and string.match(known, '^(%S+)\n') ~= ARGV[1] then return { now, 0 } end
call('SET', KEYS[1], ARGV[1] .. '\n' .. ARGV[2], 'PX', ARGV[3])
return { now, 1 }
