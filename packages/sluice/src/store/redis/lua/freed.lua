--[[ freed: notes counters that have room again, and lists those noted recently
  KEYS     sorted set: member = a counter's key, or '*' for every counter; score = when, in ms of this server's clock
  ARGV     since when to list, in ms of this server's clock, or how long ago if below 0; then the keys to note
  returns  now_ms, then the keys
  The set is bounded: beyond that, all counters count as freed. ]]
include('prelude')
local KEEP_MS, MOST_KEYS = 10000, 4096
local freed = KEYS[1]
if #ARGV > 1 then
  call('ZREMRANGEBYSCORE', freed, '-inf', spell(now - KEEP_MS))
  for i = 2, #ARGV do call('ZADD', freed, spell(now), ARGV[i]) end
  if call('ZCARD', freed) > MOST_KEYS then
    call('DEL', freed)
    call('ZADD', freed, spell(now), '*')
  end
  call('PEXPIRE', freed, spell(KEEP_MS))
end
local since = tonumber(ARGV[1])
if since < 0 then since = now + since end
local reply = call('ZRANGEBYSCORE', freed, spell(since), '+inf')
table.insert(reply, 1, now)
return reply
