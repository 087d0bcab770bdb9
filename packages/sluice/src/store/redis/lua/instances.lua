--[[ instances: the heartbeat of one instance, or its last one, and how many are alive
  KEYS     sorted set: score = its last heartbeat, in ms, member = instance id
  ARGV     'beat' or 'leave', instance id, after how many ms of silence an instance counts as gone
  returns  now_ms, how many are alive
  A score far ahead was written before the clock stepped back; an instance that is alive writes again. ]]
include('prelude')
local patience = tonumber(ARGV[3])
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - patience)
call('ZREMRANGEBYSCORE', KEYS[1], now + patience, '+inf')
if ARGV[1] == 'beat' then call('ZADD', KEYS[1], now, ARGV[2]) else call('ZREM', KEYS[1], ARGV[2]) end
call('PEXPIRE', KEYS[1], patience)
return { now, call('ZCARD', KEYS[1]) }
