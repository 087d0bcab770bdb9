--[[ reset: forgets counters
  KEYS     counters and what is stored beside them
  ARGV     for each key the letter of its stored form (keys.ts); '^' if it holds vacant turns, '' for what else is beside a counter
  returns  now_us
  Counters identify charges by their millisecond. A reset leaves an empty counter for the rest of this millisecond, with its clock in the
  next one: charges made meanwhile are stamped there, so a refund of an earlier charge finds none of them. Sorted sets identify charges by
  name, except for their debt; places always have names.
  Turns that were booked before may be given back when others lie about them: a member of no units behind all vacant turns tells when the
  reset was (refund.lua).
  A key that will hold an empty counter is never deleted first: in a migrating slot, Redis assumes that a deleted key is on the other node,
  and does not let the script use it. ]]
include('prelude')
include('packed-layout')
local ahead, RESET_KNOWN = now + 1, '3600000'
local bucket = struct.pack('<dddI4', 0, ahead, 0, 0)
local empty = {
  b = bucket, g = bucket,
  f = struct.pack('<ddd', 0, ahead, ahead),
  s = struct.pack('<ddddI4', 0, 0, ahead, 0, 0),
  p = struct.pack(HEADER, 0, 0, 0, ahead % EPOCH),
}
for k = 1, #KEYS do
  local key, letter = KEYS[k], ARGV[k]
  local last = letter == 'z' and call('ZREVRANGE', key, '0', '0')[1]
  if empty[letter] then
    call('SET', key, empty[letter], 'XX', 'PXAT', spell(ahead + 1))
  elseif last and string.byte(last) == 126 then
    local marker = '~0:' .. spell(ahead) .. ':' .. spell(ahead)
    -- Put last, so that all others can be removed; then where it belongs.
    call('ZADD', key, '+inf', marker)
    call('ZREMRANGEBYRANK', key, '0', '-2')
    call('ZADD', key, spell(ahead), marker)
    call('PEXPIREAT', key, spell(ahead + 1))
  elseif letter == '^' then
    call('ZADD', key, '+inf', '0:reset:' .. spell(ahead))
    call('ZREMRANGEBYRANK', key, '0', '-2')
    call('PEXPIRE', key, RESET_KNOWN)
  else
    call('DEL', key)
  end
end
return { now_us }
