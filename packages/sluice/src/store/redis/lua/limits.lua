--[[ limits: the limits of adaptive rules, one number for all instances; one instance at a time moves them (leader election)
  KEYS     hash: field = rule id, value = the limit and when it was moved, in ms; field '' = the leader and when its term ends
  ARGV     this instance, how long a leader leads in ms, then for each rule: its id, and the limit that this instance would set
  returns  now_ms, 1 if this instance leads, then the limit of each rule ('' if there is none)
  Only the leader's limits are written. ]]
include('prelude')
local KEPT_MS = 86400000
local held = call('HGETALL', KEYS[1])
local limits, leader, ends = {}
for i = 1, #held, 2 do
  if held[i] == '' then
    leader, ends = string.match(held[i + 1], '^(%S+) (%d+)$')
  else
    local limit, moved_at = string.match(held[i + 1], '^(%S+) (%d+)$')
    -- Nobody moves the limits of rules that are gone.
    if moved_at and now - tonumber(moved_at) < KEPT_MS then limits[held[i]] = limit else call('HDEL', KEYS[1], held[i]) end
  end
end
local left = ends and tonumber(ends) - now or 0
-- A term longer than any can be was written before the clock stepped back.
local leads = leader == ARGV[1] or left <= 0 or left > tonumber(ARGV[2])
local reply = { now, leads and 1 or 0 }
if leads then
  call('HSET', KEYS[1], '', ARGV[1] .. ' ' .. string.format('%.0f', now + tonumber(ARGV[2])))
  call('PEXPIRE', KEYS[1], KEPT_MS)
end
for at = 3, #ARGV, 2 do
  -- A new leader takes over the limit that it finds.
  if leads and (leader == ARGV[1] or not limits[ARGV[at]]) then
    limits[ARGV[at]] = ARGV[at + 1]
    call('HSET', KEYS[1], ARGV[at], ARGV[at + 1] .. ' ' .. string.format('%.0f', now))
  end
  reply[#reply + 1] = limits[ARGV[at]] or ''
end
return reply
